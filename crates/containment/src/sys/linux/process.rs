//! Processes held by pidfd: the number may pass to another process, the pidfd does not.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Resource, Signal, WaitId, WaitIdOptions, getpid, getrlimit, pidfd_open,
    pidfd_send_signal, waitid,
};

/// A process, held.
#[derive(Debug)]
pub(crate) struct ProcessFd(OwnedFd);

impl ProcessFd {
    /// Opens the process that has this number now; the caller checks that it is the one that is meant.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self(pidfd_open(pid, PidfdFlags::empty())?))
    }

    pub(crate) fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Whether it has not ended. So long its number is its own, and what was read by that number since it was opened was
    /// about it. "Could not look" is a no.
    pub(crate) fn is_alive(&self) -> bool {
        wait_readable(self.0.as_fd(), Some(Duration::ZERO)).is_ok_and(|ended| !ended)
    }

    pub(crate) fn send(&self, signal: i32) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.0, named(signal)?)?)
    }

    /// To the group whose leader it is, or was. To it alone on a kernel that does not know how (before 6.9).
    pub(crate) fn send_to_group(&self, signal: i32) -> io::Result<()> {
        const PIDFD_SIGNAL_PROCESS_GROUP: libc::c_uint = 1 << 2;
        let number = named(signal)?.as_raw();
        // SAFETY: the descriptor is open as long as `self` lives, and no information comes with the signal.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
                number,
                std::ptr::null::<libc::siginfo_t>(),
                PIDFD_SIGNAL_PROCESS_GROUP,
            )
        };
        match sent {
            0 => Ok(()),
            _ => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::EINVAL) => self.send(signal),
                error => Err(error),
            },
        }
    }
}

fn named(signal: i32) -> io::Result<Signal> {
    Signal::from_named_raw(signal)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("{signal} is no signal")))
}

impl From<ProcessFd> for OwnedFd {
    fn from(held: ProcessFd) -> Self {
        held.0
    }
}

impl AsRawFd for ProcessFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for ProcessFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The outer guardian: our own child.
#[derive(Debug)]
pub(crate) struct GuardianChild(ProcessFd);

impl GuardianChild {
    pub(super) fn new(pidfd: OwnedFd) -> Self {
        Self(ProcessFd(pidfd))
    }

    pub(crate) fn process(&self) -> &ProcessFd {
        &self.0
    }

    /// Waits for its end, but not for ever, and collects it. Whether it has ended. An owner that collects every child
    /// itself may have been quicker, and a debugger may hold it back.
    pub(crate) fn reap(&self, patience: Duration) -> bool {
        // One that was stopped would never come to its end.
        let _ = self.0.send(libc::SIGCONT);
        let ended = wait_readable(self.0.as_fd(), Some(patience)).unwrap_or(false);
        if ended {
            let end = || waitid(WaitId::PidFd(self.0.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
            while matches!(end(), Err(rustix::io::Errno::INTR)) {}
        }
        ended
    }
}

/// This process, held: to be handed to those who watch us.
pub(crate) fn own_pidfd() -> io::Result<OwnedFd> {
    Ok(pidfd_open(getpid(), PidfdFlags::empty())?)
}

/// The number of a held process as this process sees it, whatever namespace it lives in.
pub(crate) fn pid_of_pidfd(fd: BorrowedFd<'_>) -> io::Result<u32> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()))?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:")).and_then(|pid| pid.trim().parse().ok());
    // "-1": it has been reaped already.
    pid.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Our own mark in RLIMIT_LOCKS: what an enclosing session set, or an administrator; `None` for no limit.
pub(crate) fn inherited_cookie() -> Option<u64> {
    getrlimit(Resource::Locks).maximum
}

/// How long a file that we write may become; `None` for no limit.
pub(crate) fn file_size_limit() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// Whether a Landlock domain can shut signals in: the kernel has it, and we are not root.
pub(crate) fn sealing_is_available() -> Result<(), String> {
    const LANDLOCK_CREATE_RULESET_VERSION: libc::c_uint = 1;
    const SCOPED_SIGNALS: libc::c_long = 6;
    if rustix::process::geteuid().is_root() {
        return Err(
            "a sealed containment needs a user other than root: `kill(-1)` as root has no bounds".into()
        );
    }
    // SAFETY: with a null ruleset and this flag the call only returns a version.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    match version {
        SCOPED_SIGNALS.. => Ok(()),
        0.. => Err(format!(
            "Landlock of this kernel is version {version}, scoped signals came with version 6 (Linux 6.12)"
        )),
        _ => Err("this kernel has no Landlock".into()),
    }
}

/// Nothing is blocked in this thread any more.
pub(crate) fn unblock_signals() {
    // SAFETY: the mask is written by sigemptyset before it is read; pthread_sigmask only touches this thread.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Waits until there is something to read, an end or an error; `None` waits for ever. Whether it came.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, patience: Option<Duration>) -> io::Result<bool> {
    Ok(wait_first_readable([fd], patience)?.is_some())
}

/// The same for several files: the first of them that has something, or `None` after that time.
pub(crate) fn wait_first_readable<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    patience: Option<Duration>,
) -> io::Result<Option<usize>> {
    // Longer than the clock goes is for ever.
    let until = patience.and_then(|patience| std::time::Instant::now().checked_add(patience));
    let mut polled = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    loop {
        let left = until.map(|until| until.saturating_duration_since(std::time::Instant::now()));
        let seconds = |left: Duration| i64::try_from(left.as_secs()).unwrap_or(i64::MAX);
        let time = left.map(|left| Timespec { tv_sec: seconds(left), tv_nsec: left.subsec_nanos().into() });
        match poll(&mut polled, time.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(polled.iter().position(|fd| !fd.revents().is_empty())),
            Err(error) => return Err(error.into()),
        }
    }
}
