//! A process that is held, so that what is done to it is done to nobody else.

use std::os::fd::OwnedFd;

use moored_containment::ProcessIdentity;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Opened first and looked at then: whoever has the number now is who we mean, or it is gone (`Errno::SRCH`).
pub(super) fn hold(process: &ProcessIdentity) -> Result<OwnedFd, Errno> {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).ok_or(Errno::INVAL)?;
    let fd = pidfd_open(pid, PidfdFlags::empty())?;
    if ProcessIdentity::of(process.pid).is_ok_and(|now| now == *process) { Ok(fd) } else { Err(Errno::SRCH) }
}
