//! Sending signals to a server from wherever it is needed, without its handle.

use std::io;
use std::sync::Arc;

use crate::sys;

/// Signals a contained server, or all of its process group. It holds the server by pidfd, so a signal never reaches
/// another process that got its number later; it keeps nothing alive, and may outlive the session.
///
/// ```
/// use moored_containment::{Command, Ladder, Stdio};
///
/// let mut server = Command::new("sleep").arg("600").stdin(Stdio::Null).spawn()?;
/// let signals = server.signaller();
/// signals.group(15)?;
/// assert_eq!(server.wait()?.exit_code(), 128 + 15);
/// server.end(Ladder::default())?;
/// assert!(signals.server(15).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Signaller(Arc<sys::ProcessFd>);

impl Signaller {
    pub(crate) fn new(server: Arc<sys::ProcessFd>) -> Self {
        Self(server)
    }

    /// To the server itself.
    ///
    /// # Errors
    /// If it has ended, or the signal is none.
    pub fn server(&self, signal: i32) -> io::Result<()> {
        self.0.send(signal)
    }

    /// To everybody in the server's process group, as a terminal does for its job. A kernel before 6.9 cannot do that
    /// without a doubt about who is meant: there it goes to the server alone.
    ///
    /// # Errors
    /// If no process is left in the group, or the signal is none.
    pub fn group(&self, signal: i32) -> io::Result<()> {
        self.0.send_to_group(signal)
    }
}
