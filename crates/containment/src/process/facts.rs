//! Facts about one process by its number, each read when it is asked for. The process may be gone at any of these reads.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use super::table::Process;
use crate::shared::interpreters;
use crate::sys;

/// The arguments that a process was started with, as far as it has not overwritten them. None of a zombie, a kernel thread, or a
/// process that is gone.
#[must_use]
pub fn command_line(pid: u32) -> Vec<OsString> {
    let bytes = sys::command_line(pid).unwrap_or_default();
    if bytes.is_empty() {
        return Vec::new();
    }
    let words = bytes.strip_suffix(b"\0").unwrap_or(&bytes).split(|byte| *byte == 0);
    words.map(|word| OsString::from_vec(word.to_vec())).collect()
}

/// The kernel's short name for a process, 15 bytes at most. Empty if it is gone.
#[must_use]
pub fn short_name(pid: u32) -> String {
    String::from_utf8_lossy(&sys::name_of(pid).unwrap_or_default()).into_owned()
}

/// The ancestors of this process, its parent first, at most that many.
#[must_use]
pub fn ancestors(most: usize) -> Vec<u32> {
    let parent = |pid: &u32| Process::of(*pid).ok().map(|row| row.parent).filter(|parent| *parent != 0);
    std::iter::successors(parent(&std::process::id()), parent).take(most).collect()
}

/// The processes that took a lock (`flock`) on a whole file with this inode, by the kernel's own list. Those that wait for it are
/// not among them.
///
/// # Errors
/// If the list cannot be read.
pub fn lockers(inode: u64) -> io::Result<Vec<u32>> {
    sys::lockers(inode)
}

/// Whether a program runs a script that is named in its arguments: `python3.11`, `/usr/bin/node`, `sh`.
#[must_use]
pub fn is_interpreter(program: &OsStr) -> bool {
    interpreters::is_interpreter(program.as_bytes())
}

/// Whether a program is a shell.
#[must_use]
pub fn is_shell(program: &OsStr) -> bool {
    interpreters::is_shell(program.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_can_be_told_by_our_number() {
        let own = std::process::id();
        assert_eq!(command_line(own), std::env::args_os().collect::<Vec<_>>());
        assert!(!short_name(own).is_empty());
        assert_eq!(ancestors(1), [std::os::unix::process::parent_id()]);
        assert_eq!((command_line(u32::MAX >> 1), short_name(u32::MAX >> 1)), (Vec::new(), String::new()));
    }
}
