//! How a session ended, or why there was nothing to run.

use std::io;

use moored_containment::StartError;

use crate::event::Ended;
use moored_registry::NoRoom;

/// How a session ended.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// What to exit with.
    pub exit_code: i32,
    /// All that is known of it.
    pub ended: Ended,
}

/// Why there was nothing to run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The server could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There are too many of it.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// Our own stdio cannot be used.
    #[error("cannot use our own {what}: {source}")]
    Stdio {
        /// `stdin`, `stdout` or `stderr`.
        what: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
    /// Our own process is not to be seen in `/proc`.
    #[error("cannot tell who we are by /proc: {0}")]
    NoProc(#[source] io::Error),
    /// There are not enough files even for the reactor.
    #[error("out of file descriptors (raise `ulimit -n`, or close some)")]
    OutOfFiles(#[source] io::Error),
    /// There is no reactor to be had.
    #[error("cannot watch for anything: {0}")]
    Reactor(#[source] io::Error),
}

impl RunError {
    /// What to exit with.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Start(error) => error.exit_code(),
            _ => 125,
        }
    }
}
