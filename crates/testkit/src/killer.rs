//! The bin `killer`: runs the owner of a session, and kills one of the session's processes at its N-th system call.
//!
//! ```text
//! killer WHO N ALSO TOLD PROGRAM [ARG]...
//! ```
//!
//! WHO is whose calls are counted: `owner` (PROGRAM itself, from its exec on), `outer` (its first child) or `inner` (that
//! one's first child). At the entry to its N-th call it gets SIGKILL, before the call is made, and so does ALSO, another of
//! the three or `nobody`. The file TOLD gets how many calls WHO made, and `killed` or `ended`.
//!
//! Why this is not `strace --inject`: that counts each system call by its own number (`when=3` of `all` is the third `mmap`
//! here, not the third call), and with `-f` it counts in every process of the tree and kills all of them. Guardians are run
//! from memory by their owner, so there is no place to put a strace of one of them.
//!
//! Everybody else runs free of us: what the inner guardian starts is let go at its birth.

#![expect(clippy::disallowed_methods, reason = "the owner is waited for, and the mark finds what is left")]

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use nix::errno::Errno;
use nix::libc::PTRACE_SYSCALL_INFO_ENTRY;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// Stops itself until it is traced, then becomes the program.
const WAITS_FOR_ITS_TRACER: &str = r#"kill -STOP $$; exec "$@""#;

/// The whole bin.
pub fn main() -> ExitCode {
    match parse(std::env::args_os().skip(1).collect()).and_then(|(killer, argv)| killer.run(&argv)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "killer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut args: Vec<OsString>) -> io::Result<(Killer, Vec<OsString>)> {
    let usage = || io::Error::other("usage: killer WHO N ALSO TOLD PROGRAM [ARG]...");
    let argv = if args.len() > 4 { args.split_off(4) } else { return Err(usage()) };
    let word = |at: usize| args[at].to_str().unwrap_or_default();
    let at = word(1).parse().map_err(|_| usage())?;
    let (counted, also, told) = (Role::named(word(0)), Role::named(word(2)), PathBuf::from(&args[3]));
    let counted = counted.ok_or_else(usage)?;
    let killer = Killer {
        counted,
        also,
        at,
        told,
        pids: HashMap::new(),
        given: HashSet::new(),
        met: HashSet::new(),
        calls: 0,
        killed: false,
    };
    Ok((killer, argv))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Role {
    Owner,
    Outer,
    Inner,
}

impl Role {
    fn named(name: &str) -> Option<Self> {
        match name {
            "owner" => Some(Self::Owner),
            "outer" => Some(Self::Outer),
            "inner" => Some(Self::Inner),
            _ => None,
        }
    }

    fn of_first_child(self) -> Option<Self> {
        match self {
            Self::Owner => Some(Self::Outer),
            Self::Outer => Some(Self::Inner),
            Self::Inner => None,
        }
    }
}

fn options() -> Options {
    Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
}

struct Killer {
    counted: Role,
    also: Option<Role>,
    at: usize,
    told: PathBuf,
    /// Who lives, and who is dead and not collected yet: a number in it is nobody else's.
    pids: HashMap<Role, Pid>,
    /// The roles that somebody has or had.
    given: HashSet<Role>,
    /// Those who were met once.
    met: HashSet<Pid>,
    calls: usize,
    killed: bool,
}

impl Killer {
    fn run(mut self, argv: &[OsString]) -> io::Result<()> {
        let child = Command::new("sh").args(["-c", WAITS_FOR_ITS_TRACER, "sh"]).args(argv).spawn()?;
        let owner = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
        waitpid(owner, Some(WaitPidFlag::WUNTRACED))?;
        ptrace::seize(owner, options())?;
        kill(owner, Signal::SIGCONT)?;
        self.watch(owner)?;
        let fate = if self.killed { "killed" } else { "ended" };
        fs::write(&self.told, format!("{} {fate}\n", self.calls))
    }

    /// Until all whom we trace are dead. A process that dies under us needs no more of us: then a request fails with ESRCH.
    fn watch(&mut self, owner: Pid) -> io::Result<()> {
        loop {
            let status = match waitpid(None, Some(WaitPidFlag::__WALL)) {
                Ok(status) => status,
                Err(Errno::ECHILD) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let handled = match status {
                WaitStatus::PtraceSyscall(pid) => self.at_call(pid),
                WaitStatus::PtraceEvent(pid, _, event) => self.at_event(owner, pid, event),
                WaitStatus::Stopped(pid, signal) => self.resume(pid, Some(signal)),
                WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..) => {
                    // Collected just now: from here on the number may be anybody's.
                    self.pids.retain(|_, known| *known != pid);
                    Ok(())
                }
                _ => Ok(()),
            };
            match handled {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn at_call(&mut self, pid: Pid) -> nix::Result<()> {
        if ptrace::syscall_info(pid)?.op == PTRACE_SYSCALL_INFO_ENTRY {
            self.calls += 1;
            if self.calls == self.at {
                self.killed = true;
                // The other one first: it must not see this one die.
                for pid in self.also.and_then(|role| self.pids.get(&role)).into_iter().chain([&pid]) {
                    kill(*pid, Signal::SIGKILL)?;
                }
                return Ok(());
            }
        }
        self.resume(pid, None)
    }

    fn at_event(&mut self, owner: Pid, pid: Pid, event: i32) -> nix::Result<()> {
        let role = self.role_of(pid);
        match event {
            // Of the stub in front of the program, which starts nobody and executes once.
            ptrace_event::EXEC if pid == owner => {
                self.pids.insert(Role::Owner, owner);
            }
            ptrace_event::FORK | ptrace_event::VFORK | ptrace_event::CLONE => {
                let child = Pid::from_raw(i32::try_from(ptrace::getevent(pid)?).map_err(|_| Errno::ERANGE)?);
                if let Some(role) = role.and_then(Role::of_first_child)
                    && self.given.insert(role)
                {
                    self.pids.insert(role, child);
                }
                self.meet(child)?;
            }
            ptrace_event::STOP if pid != owner && (role.is_none() || self.met.contains(&pid)) => {
                return self.meet(pid);
            }
            _ => {}
        }
        self.resume(pid, None)
    }

    /// A child is met twice, in either order: its parent's event tells who it is, and it stops for us itself. Then it runs.
    fn meet(&mut self, child: Pid) -> nix::Result<()> {
        if !self.met.remove(&child) {
            self.met.insert(child);
            return Ok(());
        }
        match self.role_of(child) {
            None => ptrace::detach(child, None),
            Some(role) => {
                if role == Role::Outer {
                    // The inner guardian is cloned with another signal at its end than SIGCHLD: no fork to ptrace. An owner's
                    // clones would be its threads.
                    ptrace::setoptions(child, options() | Options::PTRACE_O_TRACECLONE)?;
                }
                self.resume(child, None)
            }
        }
    }

    fn role_of(&self, pid: Pid) -> Option<Role> {
        self.pids.iter().find(|(_, known)| **known == pid).map(|(role, _)| *role)
    }

    fn resume(&self, pid: Pid, signal: Option<Signal>) -> nix::Result<()> {
        let is_counted = !self.killed && self.pids.get(&self.counted) == Some(&pid);
        if is_counted { ptrace::syscall(pid, signal) } else { ptrace::cont(pid, signal) }
    }
}

/// `PTRACE_EVENT_…`, as `waitpid` tells them.
mod ptrace_event {
    pub(super) const FORK: i32 = nix::libc::PTRACE_EVENT_FORK;
    pub(super) const VFORK: i32 = nix::libc::PTRACE_EVENT_VFORK;
    pub(super) const CLONE: i32 = nix::libc::PTRACE_EVENT_CLONE;
    pub(super) const EXEC: i32 = nix::libc::PTRACE_EVENT_EXEC;
    pub(super) const STOP: i32 = nix::libc::PTRACE_EVENT_STOP;
}
