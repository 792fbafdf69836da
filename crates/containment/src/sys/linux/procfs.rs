//! What `/proc` tells about processes that are not our children.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::sync::OnceLock;
use std::time::Duration;

use crate::shared::stat::Stat;

/// Whether `/proc` shows us under the number that we have: else its numbers are not those that signals take.
pub(crate) fn proc_is_ours() -> bool {
    fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == std::process::id().to_string().as_str())
}

/// Whether we see all processes, and none of them is in that PID namespace: then it is gone, with all that was in it.
pub(crate) fn pid_namespace_is_gone(namespace: u64) -> io::Result<bool> {
    /// The kernel gives the first namespace of all this number.
    const FIRST_OF_ALL: u64 = 0xEFFF_FFFC;
    if pid_namespace()? != FIRST_OF_ALL {
        return Ok(false);
    }
    let name = format!("pid:[{namespace}]");
    // A zombie is in its namespace until its parent collects it, but there is nothing left of it to find.
    let is_zombie =
        |pid: &u32| stat_line(*pid).is_ok_and(|line| Stat::parse(&line).is_some_and(|s| s.is_zombie()));
    for pid in process_ids()?.into_iter().filter(|pid| !is_zombie(pid)) {
        match fs::read_link(format!("/proc/{pid}/ns/pid")) {
            Ok(link) if link.as_os_str() == name.as_str() => return Ok(false),
            // A process of our user that we may not look at, one with more privileges say: it could be in there.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && is_ours_and_elsewhere(pid) => {
                return Ok(false);
            }
            _ => {}
        }
    }
    Ok(true)
}

/// Whether a process runs as our user in a PID namespace below ours. Every user may read its `status`, which lists its
/// number in every namespace from ours down.
fn is_ours_and_elsewhere(pid: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let numbers = field(&status, "NSpid:").map_or(0, |numbers| numbers.split_ascii_whitespace().count());
    numbers != 1 && uid_in(&status) == Some(super::files::own_user())
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name))
}

fn uid_in(status: &str) -> Option<u32> {
    field(status, "Uid:")?.split_ascii_whitespace().next()?.parse().ok()
}

/// The number that was given out last: a process that forks and exits all the time is to be found near it.
pub(crate) fn last_pid() -> io::Result<u32> {
    let load = fs::read_to_string("/proc/loadavg")?;
    let last = load.split_ascii_whitespace().next_back().and_then(|pid| pid.parse().ok());
    last.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// No process has a number above this. Read once: it is hardly ever raised while programs run.
pub(crate) fn highest_pid() -> u64 {
    /// The kernel's own limit.
    const HIGHEST_OF_ALL: u64 = 1 << 22;
    static HIGHEST: OnceLock<u64> = OnceLock::new();
    let read = || fs::read_to_string("/proc/sys/kernel/pid_max").ok()?.trim().parse().ok();
    *HIGHEST.get_or_init(|| read().unwrap_or(HIGHEST_OF_ALL))
}

/// Every process there is to see, by number.
pub(crate) fn process_ids() -> io::Result<Vec<u32>> {
    let mut ids = Vec::with_capacity(256);
    for entry in fs::read_dir("/proc")? {
        if let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) {
            ids.push(pid);
        }
    }
    Ok(ids)
}

/// `/proc/PID/stat`.
pub(crate) fn stat_line(pid: u32) -> io::Result<Vec<u8>> {
    fs::read(format!("/proc/{pid}/stat"))
}

/// `/proc/PID/cmdline`: the arguments, with a NUL after each.
pub(crate) fn command_line(pid: u32) -> io::Result<Vec<u8>> {
    fs::read(format!("/proc/{pid}/cmdline"))
}

/// The name that a process goes by.
pub(crate) fn name_of(pid: u32) -> io::Result<Vec<u8>> {
    let mut name = fs::read(format!("/proc/{pid}/comm"))?;
    name.pop_if(|last| *last == b'\n');
    Ok(name)
}

/// The real user of a process.
pub(crate) fn status_uid(pid: u32) -> io::Result<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    uid_in(&status)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no Uid in /proc/{pid}/status")))
}

/// What is known of the program that a process runs.
pub(crate) struct RunningProgram {
    /// Its executable, if we may look.
    pub(crate) exe: Option<Vec<u8>>,
    pub(crate) name: Vec<u8>,
    pub(crate) args: Vec<u8>,
}

/// The program that a process runs; `None` if it is about to be gone, and runs nothing any more.
pub(crate) fn program_of(pid: u32) -> Option<RunningProgram> {
    let exe = match fs::read_link(format!("/proc/{pid}/exe")) {
        Ok(exe) => Some(exe.into_os_string().into_vec()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        Err(_) => return None,
    };
    let asked = crate::shared::keep_rule::needs_arguments(exe.as_deref());
    let read =
        |file: &str| fs::read(format!("/proc/{pid}/{file}")).ok().filter(|_| asked).unwrap_or_default();
    Some(RunningProgram { exe, name: read("comm"), args: read("cmdline") })
}

/// The RLIMIT_LOCKS of a process, if it is limited.
pub(crate) fn cookie_of(pid: u32) -> io::Result<Option<u64>> {
    // A sweep reads this of every process, again and again, while some of them come and go: one call that reads, no more.
    let mut limits = [0_u8; 4096];
    let len = fs::File::open(format!("/proc/{pid}/limits"))?.read(&mut limits)?;
    let limits = str::from_utf8(&limits[..len]).unwrap_or_default();
    let line = limits.rsplit('\n').find_map(|line| line.strip_prefix("Max file locks"));
    // The hard one, in the second column: the soft one can be lowered and raised again by the process itself.
    let hard = line.and_then(|line| line.split_ascii_whitespace().nth(1));
    match hard {
        Some("unlimited") => Ok(None),
        Some(value) => value.parse().map(Some).map_err(|_| io::ErrorKind::InvalidData.into()),
        None => {
            Err(io::Error::new(io::ErrorKind::InvalidData, format!("no file locks in /proc/{pid}/limits")))
        }
    }
}

/// The processes that took a lock on a whole file with that inode. The file system is not compared: stacked ones tell
/// us another than the kernel's own list has.
pub(crate) fn lockers(inode: u64) -> io::Result<Vec<u32>> {
    // "1: FLOCK  ADVISORY  WRITE 4711 00:1b:12345 0 EOF"; "1: -> FLOCK …" is a process that waits for it.
    let locks = fs::read_to_string("/proc/locks")?;
    let ending = format!(":{inode}");
    let locker = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let is_flock = fields.next() == Some("FLOCK");
        let pid = fields.nth(2)?.parse().ok()?;
        (is_flock && fields.next()?.ends_with(&ending)).then_some(pid)
    };
    Ok(locks.lines().filter_map(locker).collect())
}

/// This boot, so that numbers of an earlier one are not taken for numbers of now.
pub(crate) fn boot_id() -> io::Result<u128> {
    const PATH: &str = "/proc/sys/kernel/random/boot_id";
    let text = fs::read_to_string(PATH).map_err(|error| match error.kind() {
        // Not "no such process": that is another error, and another answer.
        io::ErrorKind::NotFound if fs::exists("/proc/self").unwrap_or(false) => {
            let why =
                format!("{PATH} is missing: /proc shows processes only (is it mounted with `subset=pid`?)");
            io::Error::new(io::ErrorKind::Unsupported, why)
        }
        _ => error,
    })?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The PID namespace in which we see processes: numbers of another one mean nothing here.
pub(crate) fn pid_namespace() -> io::Result<u64> {
    let link = fs::read_link("/proc/self/ns/pid")?;
    let number = link.to_str().and_then(|link| link.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok());
    number.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Now, on the scale of the guardians' clock.
pub(crate) fn now_in_nanos() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Time since boot, suspended time included: the clock of start times.
pub(crate) fn since_boot() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Clock ticks per second.
pub(crate) fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}
