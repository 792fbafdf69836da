//! Who asked for the server: the ancestor that holds the other end of our stdin, else the process that started us; and how we
//! learn of its death. The end of the input may never come: a sibling may hold the writing end too, by accident.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll, ready};

use moored_containment::ProcessIdentity;
use rustix::fs::FileType;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::event::Client;
use crate::relay::watch;
use moored_launch::server_name;
use moored_registry::hold;

/// How far up a holder is looked for: client, package runner, shells between.
const GENERATIONS: usize = 8;

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
        let ancestors = ancestors();
        if let Some(holder) = holder(stdin, &ancestors) {
            return Some(Self::watched(holder, StdinHold::Seen));
        }
        let parent = *ancestors.first()?;
        if has_other_end(stdin) && is_hidden(parent) {
            return Some(Self::watched(parent, StdinHold::Hidden));
        }
        // Shells between us and the client come and go.
        let starter = *ancestors.iter().find(|pid| !is_shell(**pid)).unwrap_or(&parent);
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
    match hold(identity) {
        Ok(fd) => watch(fd, Interest::READABLE).map_or(Death::Unseen, Death::Watched),
        Err(Errno::SRCH) => Death::Already,
        // No pidfd to be had: the end of the input is all there is.
        Err(_) => Death::Unseen,
    }
}

/// Our ancestors, the parent first.
pub(super) fn ancestors() -> Vec<u32> {
    let parent = |pid: &u32| parent_of(*pid).filter(|parent| *parent != 0);
    std::iter::successors(parent(&std::process::id()), parent).take(GENERATIONS).collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything, brackets too.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
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

/// Whether somebody can be at the other end of this file.
fn has_other_end(stdin: BorrowedFd<'_>) -> bool {
    let kind = rustix::fs::fstat(stdin).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket))
}

/// Whether its files cannot be read: another user's, or one that is not dumpable.
fn is_hidden(pid: u32) -> bool {
    task_with_files(pid).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// The folder in `/proc` of a thread of it whose files can be read. That of the process is its first thread's, which has none
/// once that thread has ended (and is denied to a plain user then), while the others live on.
fn task_with_files(pid: u32) -> io::Result<PathBuf> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let has_files = |task: &Path| Ok::<_, io::Error>(fs::read_dir(task.join("fd"))?.next().is_some());
    let first = has_files(&process);
    if matches!(first, Ok(true)) {
        return Ok(process);
    }
    let mut tasks = fs::read_dir(process.join("task"))?.flatten().map(|task| task.path());
    match tasks.find(|task| has_files(task).is_ok_and(|has| has)) {
        Some(task) => Ok(task),
        None => first.map(|_| process),
    }
}

/// One of the two ends of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PipeEnd {
    Reading,
    Writing,
}

/// Whether it can be seen to hold that end of the pipe.
pub(super) fn holds_pipe(pid: u32, inode: u64, end: PipeEnd) -> bool {
    let name = format!("pipe:[{inode}]");
    let Ok(task) = task_with_files(pid) else { return false };
    let Ok(files) = fs::read_dir(task.join("fd")) else { return false };
    files.flatten().any(|file| {
        fs::read_link(file.path()).is_ok_and(|link| link.as_os_str() == name.as_str())
            && is_end(&task.join("fdinfo").join(file.file_name()), end)
    })
}

fn is_end(info: &Path, end: PipeEnd) -> bool {
    const ACCESS: u32 = 0o3;
    const READ_ONLY: u32 = 0;
    let Ok(info) = fs::read_to_string(info) else { return false };
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| match end {
        PipeEnd::Reading => flags & ACCESS == READ_ONLY,
        PipeEnd::Writing => flags & ACCESS != READ_ONLY,
    })
}

fn is_shell(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| {
        matches!(name.trim_end(), "sh" | "bash" | "dash" | "zsh" | "env" | "setpriv" | "npm exec")
    })
}

fn describe(pid: u32) -> Client {
    Client { pid, identity: ProcessIdentity::of(pid).ok(), name: name_of(pid) }
}

/// What people call it: for a script its name, not the interpreter's.
fn name_of(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let args: Vec<OsString> = line
        .split(|byte| *byte == 0)
        .filter(|arg| !arg.is_empty())
        .map(|arg| OsString::from_vec(arg.to_vec()))
        .collect();
    if args.is_empty() {
        return fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned();
    }
    server_name(&args)
}
