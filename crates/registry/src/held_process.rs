//! A process that is held, so that what is done to it is done to nobody else.

use std::os::fd::OwnedFd;

use moored_containment::{ProcessIdentity, ProcessTable};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Opened first, looked at then, and alive after that: whoever has the number now is who we mean, or it is gone
/// (`Errno::SRCH`).
pub fn hold(process: &ProcessIdentity) -> Result<OwnedFd, Errno> {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).ok_or(Errno::INVAL)?;
    let fd = pidfd_open(pid, PidfdFlags::empty())?;
    let is_it = ProcessIdentity::of(process.pid).is_ok_and(|now| now == *process);
    // Readable is dead: then its number may have been another's when we looked.
    let ended =
        || poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&Timespec::default())).is_ok_and(|n| n > 0);
    if is_it && !ended() { Ok(fd) } else { Err(Errno::SRCH) }
}

/// Lets a process go on that somebody stopped. Whether it is one of ours is the caller's to know.
pub fn set_going(process: &ProcessIdentity) {
    let is_stopped =
        ProcessTable::read().is_ok_and(|table| table.get(process).is_some_and(|row| row.state == 'T'));
    if is_stopped && let Ok(held) = hold(process) {
        // It may have ended just now.
        let _ = pidfd_send_signal(held, Signal::CONT);
    }
}
