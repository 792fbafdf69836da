//! Who asked for the server: the ancestor that holds the other end of our stdin, else the process that started us; and how we
//! learn of its death. The end of the input may never come: a sibling may hold the writing end too, by accident.

use std::ffi::OsString;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use moored_containment::ProcessIdentity;
use moored_containment::process::{
    HeldProcess, PipeEnd, ancestors, command_line, files_are_denied, holds_pipe, is_shell, short_name,
};
use rustix::fs::FileType;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::event::Client;
use crate::relay::watch;
use moored_launch::server_name;

/// How far up a holder is looked for: client, package runner, shells between.
pub(super) const GENERATIONS: usize = 8;

/// The process that asked for the server.
#[derive(Debug)]
pub(super) struct ClientProcess {
    pub(super) client: Client,
    pub(super) stdin: StdinHold,
    death: Death,
}

/// Whether the client holds the other end of our stdin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StdinHold {
    /// It was seen to.
    Seen,
    /// It started us over a pipe or a socket, and its files cannot be read: another user's process, or one that is not dumpable.
    Hidden,
    /// It does not: the writer is no ancestor of ours, has left, or our stdin is a terminal or a file.
    Not,
}

impl StdinHold {
    /// It does, or nothing speaks against it.
    pub(super) fn is_possible(self) -> bool {
        self != Self::Not
    }
}

/// How its death is learnt of.
#[derive(Debug)]
enum Death {
    /// Its death says nothing, or cannot be seen.
    Unseen,
    /// It was dead when we looked.
    Already,
    Watched(AsyncFd<OwnedFd>),
}

impl ClientProcess {
    /// Looks for it: by the other end of that stdin, else the parent.
    #[must_use]
    pub(super) fn find(stdin: BorrowedFd<'_>) -> Option<Self> {
        let ancestors = ancestors(GENERATIONS);
        if let Some(holder) = holder(stdin, &ancestors) {
            return Some(Self::watched(holder, StdinHold::Seen));
        }
        let parent = *ancestors.first()?;
        if has_other_end(stdin) && files_are_denied(parent) {
            return Some(Self::watched(parent, StdinHold::Hidden));
        }
        // Shells between us and the client come and go.
        let starter = *ancestors.iter().find(|pid| !is_launcher(**pid)).unwrap_or(&parent);
        Some(Self { client: describe(starter), stdin: StdinHold::Not, death: Death::Unseen })
    }

    /// One whose death is the end of the session.
    fn watched(pid: u32, stdin: StdinHold) -> Self {
        let client = describe(pid);
        let death = client.identity.map_or(Death::Already, |identity| watch_death(&identity));
        Self { client, stdin, death }
    }

    /// Ready when it is dead; never, if its death says nothing or cannot be seen.
    pub(super) fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.death {
            Death::Already => Poll::Ready(()),
            Death::Watched(watched) => match ready!(watched.poll_read_ready(cx)) {
                Ok(_) => Poll::Ready(()),
                Err(_) => Poll::Pending,
            },
            Death::Unseen => Poll::Pending,
        }
    }

    /// Its death is known now.
    pub(super) fn forget(&mut self) {
        self.death = Death::Unseen;
    }
}

fn watch_death(identity: &ProcessIdentity) -> Death {
    match HeldProcess::of(identity) {
        Ok(Some(held)) => watch(held.into(), Interest::READABLE).map_or(Death::Unseen, Death::Watched),
        Ok(None) => Death::Already,
        // No pidfd to be had: the end of the input is all there is.
        Err(_) => Death::Unseen,
    }
}

/// The nearest ancestor that holds the other end of this file.
fn holder(stdin: BorrowedFd<'_>, ancestors: &[u32]) -> Option<u32> {
    let stat = rustix::fs::fstat(stdin).ok()?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => {
            ancestors.iter().copied().find(|pid| holds_pipe(*pid, stat.st_ino, PipeEnd::Writing))
        }
        // Who made the pair of sockets: the client itself, before it forked.
        FileType::Socket => {
            let maker = rustix::net::sockopt::socket_peercred(stdin).ok()?.pid.as_raw_nonzero().get();
            let maker = u32::try_from(maker).ok()?;
            ancestors.contains(&maker).then_some(maker)
        }
        _ => None,
    }
}

/// Whether this file has another end, which a process can hold.
fn has_other_end(stdin: BorrowedFd<'_>) -> bool {
    let kind = rustix::fs::fstat(stdin).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket))
}

/// Whether it only starts other programs: a shell, or a program that sets something up and becomes another.
fn is_launcher(pid: u32) -> bool {
    let name = short_name(pid);
    is_shell(name.as_ref()) || matches!(name.as_str(), "env" | "setpriv" | "npm exec")
}

fn describe(pid: u32) -> Client {
    Client { pid, identity: ProcessIdentity::of(pid).ok(), name: name_of(pid) }
}

/// What people call it: for a script its name, not the interpreter's.
fn name_of(pid: u32) -> String {
    let args: Vec<OsString> = command_line(pid).into_iter().filter(|arg| !arg.is_empty()).collect();
    if args.is_empty() { short_name(pid) } else { server_name(&args) }
}
