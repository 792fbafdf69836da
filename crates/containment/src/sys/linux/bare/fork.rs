//! Making a process, and becoming another program.

use core::ffi::{CStr, c_char};

use super::arch::{nr, syscall};
use super::call::{Errno, Fd, SIGCHLD, SIGCONT, result};
use super::map;

/// The new process is put into namespaces of its own.
#[derive(Clone, Copy)]
pub(crate) struct Namespaces(u64);

impl Namespaces {
    pub(crate) const NONE: Self = Self(0);
    const MOUNTS: u64 = 0x0002_0000;
    const USERS: u64 = 0x1000_0000;
    const PIDS: u64 = 0x2000_0000;

    /// A process table of its own, with the mounts that showing it at /proc takes; a plain user needs a user
    /// namespace for either.
    pub(crate) fn strict(own_users: bool) -> Self {
        Self(Self::PIDS | Self::MOUNTS | if own_users { Self::USERS } else { 0 })
    }
}

/// Whether the parent goes on at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParentWaits {
    No,
    /// Until the child has become another program or has ended.
    UntilExec,
}

/// What the kernel sends the parent when the new process ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtDeath {
    /// SIGCHLD, which a stopped parent does not hear.
    Tell,
    /// SIGCONT: a stopped parent goes on, and sees by pidfd what happened.
    Continue,
}

/// Which of the two we are.
pub(crate) enum Forked {
    Child,
    Parent { pid: i32, pidfd: Fd },
}

#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const CLONE_PIDFD: u64 = 0x1000;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// A copy of this process, born into `cgroup` if one is given.
pub(crate) fn fork(
    namespaces: Namespaces,
    waits: ParentWaits,
    at_death: AtDeath,
    cgroup: Option<Fd>,
) -> Result<Forked, Errno> {
    let mut pidfd = -1_i32;
    let exit_signal = if at_death == AtDeath::Tell { SIGCHLD } else { SIGCONT } as u64;
    let mut args = CloneArgs {
        flags: CLONE_PIDFD | namespaces.0,
        pidfd: (&raw mut pidfd) as u64,
        exit_signal,
        ..CloneArgs::default()
    };
    if waits == ParentWaits::UntilExec {
        args.flags |= CLONE_VFORK;
    }
    if let Some(cgroup) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = cgroup.0 as u64;
    }
    // SAFETY: without CLONE_VM the child runs on a copy of all memory, this stack included, so returning twice is
    // sound; the process has one thread, so no lock can be caught half-way. The kernel writes the pidfd.
    let made = unsafe { syscall(nr::CLONE3, [(&raw mut args) as usize, size_of::<CloneArgs>(), 0, 0, 0, 0]) };
    let pid = match result(made) {
        // Containers often forbid the newer call, whose arguments their filters cannot read.
        Err(Errno::NOSYS) if cgroup.is_none() => older_clone(args.flags | exit_signal, &mut pidfd)?,
        other => other?,
    };
    Ok(if pid == 0 { Forked::Child } else { Forked::Parent { pid: pid as i32, pidfd: Fd(pidfd) } })
}

fn older_clone(flags: u64, pidfd: &mut i32) -> Result<usize, Errno> {
    // SAFETY: as for clone3: no CLONE_VM, so the child has its own copy of this stack (a null stack means that), and the
    // process has one thread. With CLONE_PIDFD the third argument is where the kernel writes the pidfd.
    result(unsafe { syscall(nr::CLONE, [flags as usize, 0, (&raw mut *pidfd) as usize, 0, 0, 0]) })
}

/// A NULL-terminated list of strings, as exec wants it, with one free place before the first.
pub(crate) struct Strings(&'static mut [*const c_char]);

impl Strings {
    /// Takes `count` NUL-terminated strings off the front of `block`.
    pub(crate) fn take(block: &mut &'static [u8], count: usize) -> Result<Self, Errno> {
        let list = map::scratch::<*const c_char>(count + 2)?;
        for place in list.iter_mut().skip(1).take(count) {
            *place = take_string(block)?.as_ptr();
        }
        Ok(Self(list))
    }

    fn as_exec(&self) -> usize {
        self.0.as_ptr().wrapping_add(1) as usize
    }

    /// Puts a shell in front, with the file it shall read in place of the first string.
    fn with_interpreter(&mut self, shell: &'static CStr, script: &CStr) -> usize {
        self.0[0] = shell.as_ptr();
        self.0[1] = script.as_ptr();
        self.0.as_ptr() as usize
    }
}

/// Takes one NUL-terminated string off the front of `block`.
pub(crate) fn take_string(block: &mut &'static [u8]) -> Result<&'static CStr, Errno> {
    let string = CStr::from_bytes_until_nul(block).map_err(|_| Errno::INVAL)?;
    *block = block.get(string.count_bytes() + 1..).unwrap_or(&[]);
    Ok(string)
}

/// Becomes the program at `path`; comes back only if that fails.
pub(crate) fn exec(path: &CStr, args: &Strings, env: &Strings) -> Errno {
    exec_list(path, args.as_exec(), env)
}

/// Becomes a shell that reads the file at `path`: what execvp does with a script that names no interpreter.
pub(crate) fn exec_script(path: &CStr, args: &mut Strings, env: &Strings) -> Errno {
    let list = args.with_interpreter(c"/bin/sh", path);
    exec_list(c"/bin/sh", list, env)
}

fn exec_list(path: &CStr, list: usize, env: &Strings) -> Errno {
    // SAFETY: both lists are NULL-terminated and hold NUL-terminated strings that outlive the call.
    let r = unsafe { syscall(nr::EXECVE, [path.as_ptr() as usize, list, env.as_exec(), 0, 0, 0]) };
    result(r).err().unwrap_or(Errno::NOEXEC)
}
