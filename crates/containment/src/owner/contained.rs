//! The blocking handle of a contained server.

use std::io;
use std::time::Duration;

use crate::owner::link::{EndError, Link};
use crate::owner::report::{EndReport, ServerExit};
use crate::owner::signaller::Signaller;
use crate::owner::start::Started;
use crate::owner::stdio::{Stderr, Stdin, Stdout};
use crate::owner::strength::Strength;
use crate::process::identity::ProcessIdentity;
use crate::record::cookie::SessionId;
use crate::shared::board::reason;
use crate::shared::ladder::Ladder;

/// A running server, and everything that it ever starts.
///
/// Dropping it ends the tree before the drop returns, without any runtime, also in a panic. If this process ends in any
/// other way, the guardians end the tree.
#[derive(Debug)]
pub struct Contained {
    // Dropped in this order: the server's input ends first, then the tree, and its outputs are open until then.
    /// The server's input, if it was piped.
    pub stdin: Option<Stdin>,
    link: Link,
    /// The server's output, if it was piped.
    pub stdout: Option<Stdout>,
    /// The server's errors, if they were piped.
    pub stderr: Option<Stderr>,
}

impl Contained {
    pub(crate) fn new(started: Started) -> Self {
        Self {
            stdin: started.stdin.map(Stdin::from),
            stdout: started.stdout.map(Stdout::from),
            stderr: started.stderr.map(Stderr::from),
            link: started.link,
        }
    }

    /// The session's name.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.link.id()
    }

    /// The server itself.
    #[must_use]
    pub fn identity(&self) -> ProcessIdentity {
        self.link.identity()
    }

    /// The outer and the inner guardian.
    #[must_use]
    pub fn guardians(&self) -> [ProcessIdentity; 2] {
        self.link.guardians()
    }

    /// Which layers hold it.
    #[must_use]
    pub fn strength(&self) -> &Strength {
        self.link.strength()
    }

    /// Sends a signal to the server itself, never to another process that got its number later.
    ///
    /// # Errors
    /// If it has ended, or the signal is none.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        self.link.signaller().server(signal)
    }

    /// A handle that sends signals to the server, or to all of its process group.
    #[must_use]
    pub fn signaller(&self) -> Signaller {
        self.link.signaller()
    }

    /// How the server ended, if it has. What else it started is being ended then.
    ///
    /// # Errors
    /// If both guardians were killed before they saw it.
    pub fn try_wait(&mut self) -> Result<Option<ServerExit>, EndError> {
        self.link.try_exit()
    }

    /// Waits until the server has ended. What else it started is being ended then; [`Contained::wait_ended`] waits for
    /// that too.
    ///
    /// # Errors
    /// If both guardians were killed before they saw it.
    pub fn wait(&mut self) -> Result<ServerExit, EndError> {
        loop {
            if let Some(exit) = self.try_wait()? {
                return Ok(exit);
            }
            self.link.wait_for_word(None)?;
        }
    }

    /// How it ended within that time; a server that takes longer is ended with this value.
    pub(crate) fn wait_at_most(mut self, patience: Duration) -> Option<ServerExit> {
        self.link.wait_for_report(Some(patience)).ok()?;
        self.link.exit()
    }

    /// Waits until the whole session has ended, without asking for it.
    ///
    /// # Errors
    /// If the guardians cannot be heard.
    pub fn wait_ended(&mut self) -> Result<EndReport, EndError> {
        self.link.wait_for_report(None)?;
        self.link.report().cloned().ok_or_else(|| self.link.stuck())
    }

    /// Ends the tree by that ladder, and waits until it is gone and `on_end` has run. The server's input is closed at
    /// once; its output stays open to be read. Asked again, it gives the same report.
    ///
    /// # Errors
    /// If the guardians cannot be heard. They end the tree all the same.
    pub fn end(&mut self, ladder: Ladder) -> Result<EndReport, EndError> {
        self.link.announce(reason::REQUESTED);
        self.stdin = None;
        self.link.end(reason::REQUESTED, &ladder)
    }

    /// Asks for what dropping it does, and does not wait: for an owner of several, who asks all of them before waiting for
    /// any.
    ///
    /// ```
    /// use moored_containment::{Command, Stdio};
    ///
    /// let start = || Command::new("cat").stdin(Stdio::Pipe).spawn();
    /// let mut servers = [start()?, start()?];
    /// servers.iter_mut().for_each(|server| server.ask_to_end());
    /// for server in &mut servers {
    ///     assert!(server.wait_ended()?.verified);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ask_to_end(&mut self) {
        if self.link.owns() {
            self.link.announce(reason::DROPPED);
            self.stdin = None;
            self.link.ask_dropped();
        }
    }
}
