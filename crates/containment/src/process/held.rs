//! A process that is held by pidfd: what is done to it is done to no later process of the same number.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::identity::ProcessIdentity;
use super::table::Process;
use crate::sys;

/// A process that is held.
///
/// ```
/// use moored_containment::process::{HeldProcess, ProcessIdentity};
/// use std::time::Duration;
///
/// let me = ProcessIdentity::of(std::process::id())?;
/// let held = HeldProcess::of(&me)?.expect("this process lives");
/// assert!(!held.is_dead_within(Duration::ZERO));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct HeldProcess {
    pid: u32,
    fd: sys::ProcessFd,
}

impl HeldProcess {
    /// Holds that very process; `None` if it is gone, zombies included.
    ///
    /// # Errors
    /// If it cannot be told, or the kernel gives no pidfd.
    pub fn of(process: &ProcessIdentity) -> io::Result<Option<Self>> {
        Ok(process.hold()?.map(|fd| Self { pid: process.pid, fd }))
    }

    /// Holds the process that has this number, if `is_it` says after that that it is the one that is meant. `is_it` may read what
    /// it likes by the number: the process was alive after it, so the number was its own.
    pub fn with_pid(pid: u32, is_it: impl FnOnce() -> bool) -> Option<Self> {
        let fd = sys::ProcessFd::open(pid).ok()?;
        (is_it() && fd.is_alive()).then_some(Self { pid, fd })
    }

    /// Its number, which is its own until its parent has collected it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for its end, but not for longer than that; whether it is dead. "Could not look" is a no.
    #[must_use]
    pub fn is_dead_within(&self, patience: Duration) -> bool {
        sys::wait_readable(self.fd.as_fd(), Some(patience)).unwrap_or(false)
    }
}

impl AsFd for HeldProcess {
    /// Readable when the process is dead.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<HeldProcess> for OwnedFd {
    fn from(held: HeldProcess) -> Self {
        held.fd.into()
    }
}

/// SIGCONT to that process if it was stopped; one that runs gets no signal. The caller knows that it is one of ours.
pub fn resume_if_stopped(process: &ProcessIdentity) {
    const SIGCONT: i32 = 18;
    let is_stopped = Process::of(process.pid).is_ok_and(|row| row.identity == *process && row.state == 'T');
    if is_stopped && let Ok(Some(held)) = HeldProcess::of(process) {
        // It may have ended just now.
        let _ = held.fd.send(SIGCONT);
    }
}
