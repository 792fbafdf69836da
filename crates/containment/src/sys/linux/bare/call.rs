//! System calls with slices, values and `Result` in place of pointers and minus signs.

use core::ffi::CStr;

use super::arch::{nr, syscall};

/// An error number of the kernel's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

impl Errno {
    pub(crate) const PERM: Self = Self(1);
    pub(crate) const NOENT: Self = Self(2);
    pub(crate) const SRCH: Self = Self(3);
    pub(crate) const INTR: Self = Self(4);
    pub(crate) const NOEXEC: Self = Self(8);
    pub(crate) const ACCES: Self = Self(13);
    pub(crate) const NOTDIR: Self = Self(20);
    pub(crate) const INVAL: Self = Self(22);
    pub(crate) const NOSYS: Self = Self(38);
}

/// An open file of ours. A number, not an owner: the guardian's few files live as long as it does, or are closed by name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fd(pub(crate) i32);

impl Fd {
    /// Stands for "relative to the working directory".
    pub(crate) const CWD: Self = Self(-100);

    pub(super) fn raw(self) -> usize {
        self.0 as isize as usize
    }
}

pub(super) fn result(raw: isize) -> Result<usize, Errno> {
    if (-4095..0).contains(&raw) { Err(Errno(-raw as i32)) } else { Ok(raw as usize) }
}

fn done(raw: isize) -> Result<(), Errno> {
    result(raw).map(|_| ())
}

/// A call through whose arguments the kernel writes nothing.
fn plain(number: usize, a: usize, b: usize, c: usize, d: usize) -> isize {
    // SAFETY: every caller below passes numbers, or the address of a live string or slice that the kernel only reads.
    unsafe { syscall(number, [a, b, c, d, 0, 0]) }
}

// === this process ===

pub(crate) fn exit(code: i32) -> ! {
    loop {
        plain(nr::EXIT_GROUP, code as usize, 0, 0, 0);
    }
}

pub(crate) fn getpid() -> i32 {
    plain(nr::GETPID, 0, 0, 0, 0) as i32
}

pub(crate) fn getppid() -> i32 {
    plain(nr::GETPPID, 0, 0, 0, 0) as i32
}

pub(crate) fn getuid() -> u32 {
    plain(nr::GETUID, 0, 0, 0, 0) as u32
}

pub(crate) fn getgid() -> u32 {
    plain(nr::GETGID, 0, 0, 0, 0) as u32
}

pub(crate) fn setsid() {
    // Fails only for a group leader, and a fresh child is none.
    let _ = plain(nr::SETSID, 0, 0, 0, 0);
}

pub(crate) fn chdir(path: &CStr) -> Result<(), Errno> {
    done(plain(nr::CHDIR, path.as_ptr() as usize, 0, 0, 0))
}

pub(crate) fn become_subreaper() -> Result<(), Errno> {
    const PR_SET_CHILD_SUBREAPER: usize = 36;
    done(plain(nr::PRCTL, PR_SET_CHILD_SUBREAPER, 1, 0, 0))
}

pub(crate) fn set_name(name: &CStr) {
    const PR_SET_NAME: usize = 15;
    let _ = plain(nr::PRCTL, PR_SET_NAME, name.as_ptr() as usize, 0, 0);
}

const PR_SET_PDEATHSIG: usize = 1;

/// SIGKILL for this process when its parent ends. The parent must be single-threaded: the signal comes when the
/// *thread* that forked ends.
pub(crate) fn die_with_parent() -> Result<(), Errno> {
    done(plain(nr::PRCTL, PR_SET_PDEATHSIG, SIGKILL as usize, 0, 0))
}

/// SIGCONT for this process when its parent, or the thread of it that made us, ends: a guardian that was stopped goes on
/// then, and sees by pidfd what happened. It does nothing to a process that runs.
pub(crate) fn go_on_when_parent_dies() {
    let _ = plain(nr::PRCTL, PR_SET_PDEATHSIG, SIGCONT as usize, 0, 0);
}

/// Whether others of our user may look into this process: its files, its memory, by debugger. Nobody but root may, by
/// default of a guardian's; our own `/proc` files are not ours then either.
pub(crate) fn let_others_look(open: bool) {
    const PR_SET_DUMPABLE: usize = 4;
    let _ = plain(nr::PRCTL, PR_SET_DUMPABLE, usize::from(open), 0, 0);
}

pub(crate) fn set_no_new_privs() -> Result<(), Errno> {
    const PR_SET_NO_NEW_PRIVS: usize = 38;
    done(plain(nr::PRCTL, PR_SET_NO_NEW_PRIVS, 1, 0, 0))
}

/// Sets RLIMIT_LOCKS, which has had no effect since Linux 2.4 and is inherited through everything.
pub(crate) fn set_cookie(value: u64) -> Result<(), Errno> {
    const RLIMIT_LOCKS: usize = 10;
    let limit = [value, value];
    // SAFETY: the kernel reads two words from `limit`, and the old value is not asked for.
    done(unsafe { syscall(nr::PRLIMIT64, [0, RLIMIT_LOCKS, limit.as_ptr() as usize, 0, 0, 0]) })
}

/// Nanoseconds of the monotonic clock: it stands still while the machine sleeps, so that no patience runs out then.
pub(crate) fn now() -> u64 {
    const CLOCK_MONOTONIC: usize = 1;
    let mut t = [0_u64; 2];
    // SAFETY: the kernel writes two words into `t`.
    let _ = unsafe { syscall(nr::CLOCK_GETTIME, [CLOCK_MONOTONIC, t.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    t[0] * 1_000_000_000 + t[1]
}

// === signals ===

pub(crate) const SIGPIPE: i32 = 13;
pub(crate) const SIGKILL: i32 = 9;
pub(crate) const SIGTERM: i32 = 15;
pub(crate) const SIGCHLD: i32 = 17;
pub(crate) const SIGCONT: i32 = 18;

/// Blocks every signal that can be blocked (all but KILL and STOP), or none.
pub(crate) fn block_signals(all: bool) {
    const SIG_SETMASK: usize = 2;
    let mask: u64 = if all { u64::MAX } else { 0 };
    // SAFETY: the kernel reads one 8-byte mask.
    let _ = unsafe { syscall(nr::RT_SIGPROCMASK, [SIG_SETMASK, (&raw const mask) as usize, 0, 8, 0, 0]) };
}

/// Back to the default action, whatever was inherited.
pub(crate) fn default_action(signal: i32) {
    let action = [0_usize; 4];
    // SAFETY: the kernel reads a sigaction of four words: SIG_DFL, no flags, no restorer, empty mask.
    let _ = unsafe { syscall(nr::RT_SIGACTION, [signal as usize, action.as_ptr() as usize, 0, 8, 0, 0]) };
}

/// An fd that becomes readable when a child ends or stops being ours to ignore.
pub(crate) fn child_signal_fd() -> Result<Fd, Errno> {
    const CLOEXEC_NONBLOCK: usize = 0o2_000_000 | 0o4000;
    let mask: u64 = 1 << (SIGCHLD - 1);
    // SAFETY: the kernel reads one 8-byte mask.
    let fd = unsafe {
        syscall(nr::SIGNALFD4, [usize::MAX, (&raw const mask) as usize, 8, CLOEXEC_NONBLOCK, 0, 0])
    };
    result(fd).map(|fd| Fd(fd as i32))
}

/// For an unreaped child of our own, whose number cannot have been given to another process; or, negative, for a group
/// whose leader is such a child.
pub(crate) fn kill(pid: i32, signal: i32) -> Result<(), Errno> {
    done(plain(nr::KILL, pid as isize as usize, signal as usize, 0, 0))
}

pub(crate) fn pidfd_open(pid: i32) -> Result<Fd, Errno> {
    result(plain(nr::PIDFD_OPEN, pid as usize, 0, 0, 0)).map(|fd| Fd(fd as i32))
}

pub(crate) fn pidfd_send(fd: Fd, signal: i32) -> Result<(), Errno> {
    done(plain(nr::PIDFD_SEND_SIGNAL, fd.raw(), signal as usize, 0, 0))
}

/// The parent of the process that is held, as this process numbers it. An error if that one has been collected, and before
/// Linux 6.13.
pub(crate) fn pidfd_parent(fd: Fd) -> Result<i32, Errno> {
    // struct pidfd_info { mask: u64, cgroupid: u64, pid: u32, tgid: u32, ppid: u32, … }, 64 bytes in its first version.
    const PIDFD_GET_INFO: usize = 0xC040_FF0B;
    let mut info = [0_u32; 16];
    // SAFETY: the kernel writes as many bytes as the request's number says, 64, which `info` has.
    done(unsafe { syscall(nr::IOCTL, [fd.raw(), PIDFD_GET_INFO, info.as_mut_ptr() as usize, 0, 0, 0]) })?;
    Ok(info[6] as i32)
}

/// The kernel's serial number of the process that is held, unique in this boot; 0 before Linux 6.9, which has none.
pub(crate) fn pidfd_serial(fd: Fd) -> u64 {
    const PID_FS_MAGIC: u64 = 0x5049_4446;
    let (mut system, mut file) = ([0_u64; 16], [0_u64; 18]);
    // SAFETY: a struct statfs has 120 bytes, for which there are 128.
    let told = done(unsafe { syscall(nr::FSTATFS, [fd.raw(), system.as_mut_ptr() as usize, 0, 0, 0, 0]) });
    if told.is_err() || system[0] != PID_FS_MAGIC {
        return 0;
    }
    // SAFETY: a struct stat has 144 bytes, and so has `file`. The inode's number is its second word.
    let told = done(unsafe { syscall(nr::FSTAT, [fd.raw(), file.as_mut_ptr() as usize, 0, 0, 0, 0]) });
    if told.is_ok() { file[1] } else { 0 }
}

/// What `wait` found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// This child has ended, with this raw status, and is gone.
    Reaped(i32, i32),
    /// There are children, none of them has ended.
    NoneYet,
    /// There is no child at all: for a subreaper the proof that its tree is empty.
    NoChildren,
}

/// Reaps one child of any kind that has ended.
pub(crate) fn wait_any() -> Waited {
    const WNOHANG_WALL: usize = 1 | 0x4000_0000;
    let mut status = 0_i32;
    loop {
        // SAFETY: the kernel writes one int into `status`; no usage is asked for.
        let r =
            unsafe { syscall(nr::WAIT4, [usize::MAX, (&raw mut status) as usize, WNOHANG_WALL, 0, 0, 0]) };
        return match result(r) {
            Ok(0) => Waited::NoneYet,
            Ok(pid) => Waited::Reaped(pid as i32, status),
            Err(Errno::INTR) => continue,
            Err(_) => Waited::NoChildren,
        };
    }
}

/// Looks at one child without reaping it: whether it has ended. An error means that there is no such child.
fn look_at(pid: i32) -> Result<bool, Errno> {
    const P_PID: usize = 1;
    const WNOHANG_EXITED_NOWAIT_WALL: usize = 1 | 4 | 0x0100_0000 | 0x4000_0000;
    let mut info = [0_i32; 32];
    let args = [P_PID, pid as usize, info.as_mut_ptr() as usize, WNOHANG_EXITED_NOWAIT_WALL, 0, 0];
    // SAFETY: siginfo_t is 128 bytes, as long as `info`; no usage is asked for.
    let r = unsafe { syscall(nr::WAITID, args) };
    // The first word is the signal number, SIGCHLD when something was found.
    result(r).map(|_| info[0] != 0)
}

/// Whether this child has ended, without reaping it: its number and its group's stay ours.
pub(crate) fn has_ended(pid: i32) -> bool {
    look_at(pid).unwrap_or(true)
}

/// Whether this is a child of ours, alive or dead.
pub(crate) fn is_child(pid: i32) -> bool {
    look_at(pid).is_ok()
}

// === files ===

pub(crate) const O_RDONLY: usize = 0;
pub(crate) const O_WRONLY: usize = 1;
pub(crate) const O_RDWR: usize = 2;
pub(crate) const O_DIRECTORY: usize = 0o200_000;
const O_CLOEXEC: usize = 0o2_000_000;

pub(crate) fn openat(dir: Fd, path: &CStr, flags: usize) -> Result<Fd, Errno> {
    result(plain(nr::OPENAT, dir.raw(), path.as_ptr() as usize, flags | O_CLOEXEC, 0)).map(|fd| Fd(fd as i32))
}

pub(crate) fn close(fd: Fd) {
    let _ = plain(nr::CLOSE, fd.raw(), 0, 0, 0);
}

/// Closes `first..=last`.
pub(crate) fn close_range(first: u32, last: u32) {
    /// As many as a process commonly may have, where they have to be closed one by one.
    const COMMON_LIMIT: u32 = 1 << 16;
    if first > last || result(plain(nr::CLOSE_RANGE, first as usize, last as usize, 0, 0)).is_ok() {
        return;
    }
    // Before Linux 5.9 there is no such call, and some containers forbid it.
    for fd in first..=last.min(COMMON_LIMIT) {
        close(Fd(fd as i32));
    }
}

/// Sees to it that the file does not survive an exec.
pub(crate) fn close_on_exec(fd: Fd) {
    const F_SETFD: usize = 2;
    const FD_CLOEXEC: usize = 1;
    let _ = plain(nr::FCNTL, fd.raw(), F_SETFD, FD_CLOEXEC, 0);
}

/// A second number for the same file, not below `floor`, closed on exec.
pub(crate) fn duplicate_above(fd: Fd, floor: i32) -> Result<Fd, Errno> {
    const F_DUPFD_CLOEXEC: usize = 1030;
    result(plain(nr::FCNTL, fd.raw(), F_DUPFD_CLOEXEC, floor as usize, 0)).map(|fd| Fd(fd as i32))
}

/// Puts the file `from` at number `to`, to survive an exec there.
pub(crate) fn duplicate_onto(from: Fd, to: Fd) -> Result<(), Errno> {
    done(plain(nr::DUP3, from.raw(), to.raw(), 0, 0))
}

pub(crate) fn read(fd: Fd, into: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the kernel writes at most `len` bytes into the slice.
    result(unsafe { syscall(nr::READ, [fd.raw(), into.as_mut_ptr() as usize, into.len(), 0, 0, 0]) })
}

pub(crate) fn write(fd: Fd, bytes: &[u8]) -> Result<usize, Errno> {
    result(plain(nr::WRITE, fd.raw(), bytes.as_ptr() as usize, bytes.len(), 0))
}

pub(crate) fn unlink(dir: Fd, name: &CStr) -> Result<(), Errno> {
    done(plain(nr::UNLINKAT, dir.raw(), name.as_ptr() as usize, 0, 0))
}

pub(crate) fn rmdir(dir: Fd, name: &CStr) -> Result<(), Errno> {
    const AT_REMOVEDIR: usize = 0x200;
    done(plain(nr::UNLINKAT, dir.raw(), name.as_ptr() as usize, AT_REMOVEDIR, 0))
}

pub(crate) fn read_link<'a>(path: &CStr, into: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    let args = [Fd::CWD.raw(), path.as_ptr() as usize, into.as_mut_ptr() as usize, into.len(), 0, 0];
    // SAFETY: the kernel writes at most `len` bytes into the slice.
    let n = result(unsafe { syscall(nr::READLINKAT, args) })?;
    into.get(..n).ok_or(Errno::INVAL)
}

/// Raw directory entries; 0 at the end.
pub(crate) fn directory_entries(dir: Fd, into: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the kernel writes at most `len` bytes into the slice.
    result(unsafe { syscall(nr::GETDENTS64, [dir.raw(), into.as_mut_ptr() as usize, into.len(), 0, 0, 0]) })
}

pub(crate) fn mount(source: &CStr, target: &CStr, kind: &CStr, flags: usize) -> Result<(), Errno> {
    let args = [source.as_ptr() as usize, target.as_ptr() as usize, kind.as_ptr() as usize, flags, 0, 0];
    // SAFETY: the kernel reads three NUL-terminated strings; there is no data argument.
    done(unsafe { syscall(nr::MOUNT, args) })
}

// === waiting ===

/// An fd and what happened to it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PollFd {
    fd: i32,
    asked: i16,
    got: i16,
}

impl PollFd {
    pub(crate) fn readable(fd: Option<Fd>) -> Self {
        // The kernel passes over negative fds, so a watch that is switched off keeps its place in the list.
        Self { fd: fd.map_or(-1, |fd| fd.0), asked: 1, got: 0 }
    }

    /// Data, an end, or an error: something to look at.
    pub(crate) fn is_ready(self) -> bool {
        self.got != 0
    }

    /// The other end is closed for good.
    pub(crate) fn is_hung_up(self) -> bool {
        self.got & 0x10 != 0
    }
}

/// Waits until something is ready or `nanos` have passed; `None` waits for ever.
pub(crate) fn poll(fds: &mut [PollFd], nanos: Option<u64>) {
    let time = nanos.map(|n| [n / 1_000_000_000, n % 1_000_000_000]);
    let time_at = time.as_ref().map_or(0, |t| t.as_ptr() as usize);
    // SAFETY: the kernel writes the `got` fields of `len` entries, and reads one timespec if there is any. An error
    // (EINTR) leaves the fields as they were, that is zero.
    let polled = unsafe { syscall(nr::PPOLL, [fds.as_mut_ptr() as usize, fds.len(), time_at, 0, 8, 0]) };
    if result(polled) == Err(Errno::INVAL) {
        select(fds, nanos);
    }
}

/// The same where `poll` refuses, which takes no more entries than `RLIMIT_NOFILE` says: others of our user may set it to 0 for
/// us. `select` does not ask for that limit. It does not tell a closed end from data.
fn select(fds: &mut [PollFd], nanos: Option<u64>) {
    /// Above what an owner may have open when it starts us; a set of them has 8 KiB.
    const NUMBERS: usize = 1 << 16;
    /// Where there is such a number all the same, nothing tells of it, and the caller has to look for itself.
    const LOOK_AGAIN: u64 = 10_000_000;
    let mut set = [0_u64; NUMBERS / 64];
    let (mut end, mut nanos) = (0, nanos);
    for fd in fds.iter().filter_map(|entry| usize::try_from(entry.fd).ok()) {
        match set.get_mut(fd / 64) {
            Some(word) => *word |= 1 << (fd % 64),
            None => nanos = Some(nanos.map_or(LOOK_AGAIN, |n| n.min(LOOK_AGAIN))),
        }
        end = end.max((fd + 1).min(NUMBERS));
    }
    let mut time = nanos.map(|n| [n / 1_000_000_000, n % 1_000_000_000]);
    let time_at = time.as_mut().map_or(0, |t| t.as_mut_ptr() as usize);
    // SAFETY: the kernel reads and writes `end` bits of the set, which has that many, and one timespec if there is any.
    let selected = unsafe { syscall(nr::PSELECT6, [end, set.as_mut_ptr() as usize, 0, 0, time_at, 0]) };
    if result(selected).is_err() {
        return;
    }
    for entry in fds {
        let fd = usize::try_from(entry.fd).ok();
        let is_set = fd.is_some_and(|fd| set.get(fd / 64).is_some_and(|word| word & 1 << (fd % 64) != 0));
        entry.got = if is_set { entry.asked } else { 0 };
    }
}

// === the owner's socket ===

/// Receives one packet without waiting. `Ok(0)`: the other end is closed.
pub(crate) fn receive(socket: Fd, into: &mut [u64]) -> Result<usize, Errno> {
    const MSG_DONTWAIT: usize = 0x40;
    let args = [socket.raw(), into.as_mut_ptr() as usize, size_of_val(into), MSG_DONTWAIT, 0, 0];
    // SAFETY: the kernel writes at most that many bytes; no address is asked for.
    result(unsafe { syscall(nr::RECVFROM, args) }).map(|n| n / 8)
}

/// Sends one packet without waiting, and a file with it if there is one. An owner that is gone or does not read is no
/// concern of the sender's: everything of weight is on the board as well.
pub(crate) fn send(socket: Fd, words: &[u64], file: Option<Fd>) {
    const MSG_DONTWAIT_NOSIGNAL: usize = 0x40 | 0x4000;
    const SOL_SOCKET: u32 = 1;
    const SCM_RIGHTS: u32 = 1;
    let part = [words.as_ptr() as usize, size_of_val(words)];
    // cmsghdr { len: usize, level: i32, type: i32 } and one int, padded to eight bytes.
    let rights =
        [20_u64, u64::from(SOL_SOCKET) | u64::from(SCM_RIGHTS) << 32, file.map_or(0, |f| f.0 as u64)];
    let (control, control_len) = if file.is_some() { (rights.as_ptr() as usize, 24) } else { (0, 0) };
    // msghdr { name, namelen, iov, iovlen, control, controllen, flags }.
    let header = [0, 0, part.as_ptr() as usize, 1, control, control_len, 0];
    // SAFETY: the header points to one part, and to one well-formed control message or none, all alive until it returns.
    let _ = unsafe {
        syscall(nr::SENDMSG, [socket.raw(), header.as_ptr() as usize, MSG_DONTWAIT_NOSIGNAL, 0, 0, 0])
    };
}

// === Landlock ===

/// Puts this process, and all that it will start, into a fresh domain that cannot signal anything outside itself.
pub(crate) fn seal_signals() -> Result<(), Errno> {
    const LANDLOCK_SCOPE_SIGNAL: u64 = 2;
    // landlock_ruleset_attr { handled_access_fs, handled_access_net, scoped }.
    let ruleset = [0, 0, LANDLOCK_SCOPE_SIGNAL];
    let args = [ruleset.as_ptr() as usize, size_of_val(&ruleset), 0, 0, 0, 0];
    // SAFETY: the kernel reads a ruleset of three words.
    let fd = Fd(result(unsafe { syscall(nr::LANDLOCK_CREATE_RULESET, args) })? as i32);
    let sealed = done(plain(nr::LANDLOCK_RESTRICT_SELF, fd.raw(), 0, 0, 0));
    close(fd);
    sealed
}
