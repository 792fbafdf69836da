//! Processes below us that are held, so that a signal to one of them cannot reach another that got its number later.
//!
//! This file owns the proof that a process belongs to the session; `tree` goes from one to the next. The argument, and
//! what may be trusted of a number, is in docs/design/identity.md. In short:
//!
//! - A child of our own keeps its number until we collect it, and we collect none during a walk. `waitid` says whether
//!   a number is a child's, whatever `/proc` shows.
//! - Everybody deeper down is held by a pidfd that was opened before anything was read about it. It belongs to the session
//!   if its parent does, and the parent is held and was still alive after the child's parent was read.
//!
//! Any doubt is a no. A process that is passed over falls to us when its parent ends, and is then a child of our own.

use crate::bare::call::{self, Errno, Fd, PollFd};
use crate::proc;

/// One process of the session.
pub(crate) struct Held {
    pub(crate) pid: i32,
    /// `None` for a child of our own, which needs no more than its number.
    pidfd: Option<Fd>,
}

impl Held {
    /// A child of our own; `None` if that number is not one's.
    pub(crate) fn own_child(pid: i32) -> Option<Self> {
        call::is_child(pid).then_some(Self { pid, pidfd: None })
    }

    /// The process with that number, if one of these is its parent, and both are alive.
    fn child_of<'a>(parents: impl Iterator<Item = &'a Self>, pid: i32) -> Option<Self> {
        let pidfd = call::pidfd_open(pid).ok()?;
        let child = Self { pid, pidfd: Some(pidfd) };
        // The kernel tells the parent of the very process that is held, or (before Linux 6.13) of who has its number; that
        // is the same while the held one is alive. The parent's number is the parent's own while that one is alive.
        let named = call::pidfd_parent(pidfd).ok().or_else(|| proc::stat(pid).map(|stat| stat.ppid));
        let mut parents = parents.filter(|parent| Some(parent.pid) == named);
        if parents.next().is_some_and(|parent| child.is_alive() && parent.is_alive()) {
            return Some(child);
        }
        child.release();
        None
    }

    /// Whether it has not ended: so long its number is its own, and what was read by that number was about it.
    pub(crate) fn is_alive(&self) -> bool {
        let Some(pidfd) = self.pidfd else { return !call::has_ended(self.pid) };
        let mut fds = [PollFd::readable(Some(pidfd))];
        call::poll(&mut fds, Some(0));
        !fds[0].is_ready()
    }

    pub(crate) fn signal(&self, signal: i32) -> Result<(), Errno> {
        match self.pidfd {
            Some(pidfd) => call::pidfd_send(pidfd, signal),
            None => call::kill(self.pid, signal),
        }
    }

    pub(crate) fn release(self) {
        if let Some(pidfd) = self.pidfd {
            call::close(pidfd);
        }
    }

    /// Who it is on the board's lists; `None` if it cannot be told, or not any more.
    pub(crate) fn identity(&self) -> Option<Identity> {
        let stat = proc::stat(self.pid)?;
        let serial = match self.pidfd {
            Some(pidfd) => call::pidfd_serial(pidfd),
            None => serial_of_child(self.pid),
        };
        self.is_alive().then_some(Identity { pid: self.pid, ticks: stat.ticks, serial })
    }
}

/// The way from a child of our own down to where a walk is.
pub(crate) struct Path<'a> {
    pub(crate) held: &'a Held,
    pub(crate) above: Option<&'a Self>,
}

impl Path<'_> {
    /// The process with that number, if it is a child of the last one on the path. That one may have ended since its
    /// children were listed: then the kernel has given them to us, or to a subreaper further up.
    pub(crate) fn child(&self, pid: i32) -> Option<Held> {
        let mut at = Some(self);
        let upwards = core::iter::from_fn(|| {
            let here = at?;
            at = here.above;
            Some(here.held)
        });
        Held::own_child(pid).or_else(|| Held::child_of(upwards, pid))
    }

    /// The same, without those that the kernel has given to another parent: for processes below a kept one, which are kept for it.
    pub(crate) fn child_of_last(&self, pid: i32) -> Option<Held> {
        Held::child_of(core::iter::once(self.held), pid)
    }
}

/// A process as the board's lists have it: its number, when it started, and the kernel's own serial number of it, which is
/// never given out twice in a boot (Linux 6.9 and later; 0 before). Ticks are 10 ms wide, and a small table of processes
/// can give a number out again within one.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    pub(crate) ticks: u64,
    pub(crate) serial: u64,
}

fn serial_of_child(pid: i32) -> u64 {
    let Ok(pidfd) = call::pidfd_open(pid) else { return 0 };
    let serial = call::pidfd_serial(pidfd);
    call::close(pidfd);
    serial
}
