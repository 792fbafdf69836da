//! Holding a process by a pidfd, so that a signal cannot reach another process that got its number.

use std::os::fd::OwnedFd;

use moored_containment::{ProcessIdentity, ProcessTable};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Opens a pidfd of that process. The identity is checked after the pidfd is open, and that it lives after that: so the pidfd
/// is of the process that is meant.
///
/// # Errors
/// `Errno::SRCH` if it is gone; else what the kernel says.
pub fn hold(process: &ProcessIdentity) -> Result<OwnedFd, Errno> {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).ok_or(Errno::INVAL)?;
    let fd = pidfd_open(pid, PidfdFlags::empty())?;
    let is_it = ProcessIdentity::of(process.pid).is_ok_and(|now| now == *process);
    // A readable pidfd is that of a dead process: its number may have been another's when we checked.
    let ended =
        || poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&Timespec::default())).is_ok_and(|n| n > 0);
    if is_it && !ended() { Ok(fd) } else { Err(Errno::SRCH) }
}

/// Sends SIGCONT to a process that is stopped. The caller has checked that it is one of ours.
pub(crate) fn resume_if_stopped(process: &ProcessIdentity) {
    let is_stopped =
        ProcessTable::read().is_ok_and(|table| table.get(process).is_some_and(|row| row.state == 'T'));
    if is_stopped && let Ok(held) = hold(process) {
        // It may have ended just now.
        let _ = pidfd_send_signal(held, Signal::CONT);
    }
}
