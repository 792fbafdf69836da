//! The cgroup leaf: one file ends all of it, another says whether it is empty.

use core::ffi::CStr;

use crate::bare::call::{self, Errno, Fd};
use crate::proc::{self, Line};
use crate::session::Session;

fn put(leaf: Fd, file: &CStr, bytes: &[u8]) -> Result<(), Errno> {
    let file = call::openat(leaf, file, call::O_WRONLY)?;
    let written = call::write(file, bytes);
    call::close(file);
    written.map(|_| ())
}

/// Whether `cgroup.events` has this line.
fn says(leaf: Fd, line: &[u8]) -> bool {
    let Ok(file) = call::openat(leaf, c"cgroup.events", call::O_RDONLY) else { return false };
    let mut bytes = [0_u8; 128];
    let n = call::read(file, &mut bytes).unwrap_or(0);
    call::close(file);
    bytes[..n].split(|b| *b == b'\n').any(|l| l == line)
}

/// SIGKILL for everything in it, at one stroke: what is being forked meanwhile is killed too.
pub(crate) fn kill(leaf: Fd) -> Result<(), Errno> {
    put(leaf, c"cgroup.kill", b"1")
}

/// No process is in it. Zombies do not count.
pub(crate) fn is_empty(leaf: Fd) -> bool {
    says(leaf, b"populated 0")
}

/// Stops everything in it, so that it can be looked at in peace; waits for that, but not for ever: a task in
/// uninterruptible sleep freezes only when it wakes.
pub(crate) fn freeze(leaf: Fd) {
    const LONGEST: u64 = 200_000_000;
    const LOOK_EVERY: u64 = 1_000_000;
    if put(leaf, c"cgroup.freeze", b"1").is_err() {
        return;
    }
    let until = call::now() + LONGEST;
    while !says(leaf, b"frozen 1") && call::now() < until {
        call::poll(&mut [], Some(LOOK_EVERY));
    }
}

/// Lets it go on.
pub(crate) fn thaw(leaf: Fd) {
    let _ = put(leaf, c"cgroup.freeze", b"0");
}

/// Whether that process is in it.
pub(crate) fn has(leaf: Fd, pid: i32) -> bool {
    let mut found = false;
    let Ok(list) = call::openat(leaf, c"cgroup.procs", call::O_RDONLY) else { return false };
    proc::numbers_from(list, |member| found |= member == pid);
    call::close(list);
    found
}

/// Takes one process out of the leaf, into the group around it.
pub(crate) fn move_out(session: &Session, pid: i32) {
    if let Some(parent) = session.leaf_parent {
        let _ = put(parent, c"cgroup.procs", Line::new().number(pid as u64).as_bytes());
    }
}

/// Removes the empty leaf, and the empty groups that the tree made inside it.
pub(crate) fn remove(session: &Session, name: &CStr) {
    const FIRST_PAUSE: u64 = 20_000;
    const LAST_PAUSE: u64 = 40_000_000;
    let (Some(parent), false) = (session.leaf_parent, name.is_empty()) else { return };
    let gone = || matches!(call::rmdir(parent, name), Ok(()) | Err(Errno::NOENT));
    let mut pause = FIRST_PAUSE;
    while !gone() && pause <= LAST_PAUSE {
        // A process that was just reaped holds its group until it has left the processor.
        call::poll(&mut [], Some(pause));
        pause *= 2;
        if pause > 8 * FIRST_PAUSE {
            remove_inside(parent, name);
        }
    }
}

/// Removes the empty groups inside that one, however deep they are. Each step removes what it can here, and goes on below
/// what it cannot, or back up: two open files and no recursion, for the tree decides how deep this goes.
fn remove_inside(parent: Fd, name: &CStr) {
    const MOST_STEPS: u32 = 4096;
    let open = |at: Fd, name: &CStr| call::openat(at, name, call::O_RDONLY | call::O_DIRECTORY);
    let Ok(mut at) = open(parent, name) else { return };
    let mut depth = 0_u32;
    for _ in 0..MOST_STEPS {
        let mut below = None;
        proc::names_in(at, c".", |dir, inner| {
            if call::rmdir(dir, inner).is_err() && below.is_none() {
                below = open(dir, inner).ok();
            }
        });
        let next = match below {
            Some(below) => Ok((below, depth + 1)),
            None if depth == 0 => break,
            None => open(at, c"..").map(|above| (above, depth - 1)),
        };
        let Ok((next, new_depth)) = next else { break };
        call::close(at);
        (at, depth) = (next, new_depth);
    }
    call::close(at);
}
