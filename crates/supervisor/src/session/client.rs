//! Who asked for the server: the process that holds the other end of our stdin, else our parent; and how we learn of its
//! death. The end of the input may never come: a sibling may hold the writing end too, by accident.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;

use moored_containment::ProcessIdentity;
use rustix::fs::FileType;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::event::Client;
use crate::held_process::hold;
use crate::relay::watch;
use moored_launch::server_name;

/// How far up a holder is looked for: client, package runner, shells between.
const GENERATIONS: usize = 8;

/// The process that asked for the server.
#[derive(Debug)]
pub(super) struct ClientProcess {
    /// Who.
    pub(super) client: Client,
    /// Whether it may hold the other end of our stdin: it does, or is not to be looked at. If it does not, whoever wrote has
    /// left, or writes from a terminal or a file.
    pub(super) may_hold_stdin: bool,
    death: Death,
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
            let client = describe(holder);
            let death = client.identity.map_or(Death::Already, |identity| watch_death(&identity));
            return Some(Self { client, may_hold_stdin: true, death });
        }
        let may_hold_stdin =
            has_other_end(stdin) && ancestors.first().is_some_and(|parent| is_hidden(*parent));
        // Shells between us and the client come and go.
        let parent = ancestors.iter().find(|pid| !is_shell(**pid)).or(ancestors.first())?;
        Some(Self { client: describe(*parent), may_hold_stdin, death: Death::Unseen })
    }

    /// Until it is dead; for ever, if its death says nothing or cannot be seen.
    pub(super) async fn gone(&self) {
        match &self.death {
            Death::Already => {}
            Death::Watched(watched) if watched.readable().await.is_ok() => {}
            Death::Watched(_) | Death::Unseen => std::future::pending().await,
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
fn ancestors() -> Vec<u32> {
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
        FileType::Fifo => ancestors.iter().copied().find(|pid| writes_to_pipe(*pid, stat.st_ino)),
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

/// Whether its files are not to be looked at: another user's, or one that guards itself.
fn is_hidden(pid: u32) -> bool {
    fs::read_dir(format!("/proc/{pid}/fd"))
        .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

fn writes_to_pipe(pid: u32, inode: u64) -> bool {
    let name = format!("pipe:[{inode}]");
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    files.flatten().any(|file| {
        fs::read_link(file.path()).is_ok_and(|link| link.as_os_str() == name.as_str())
            && is_writable(pid, &file.file_name().to_string_lossy())
    })
}

fn is_writable(pid: u32, fd: &str) -> bool {
    const ACCESS: u32 = 0o3;
    let Ok(info) = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")) else { return false };
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).is_some_and(|flags| flags & ACCESS != 0)
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
