//! The few facts of `/proc` that the process table does not have: memory, time used, command lines. A process may be
//! gone at any of these reads; it has nothing then.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;

use moored_containment::{Process, ProcessIdentity};
use moored_launch::masked;
use moored_registry::boot_time::{age_of, from_ticks};
use rustix::param::page_size;

use crate::row::ProcessRow;

/// A process as it is shown, and what part of a processor it has used over its life.
pub(super) fn measure(process: &Process) -> (ProcessRow, f64) {
    let pid = process.identity.pid;
    // The numbers are read after the snapshot: they count only if they are still those of the same process.
    let stat = fs::read(format!("/proc/{pid}/stat")).ok().and_then(|line| parse_stat(&line));
    let same = stat.is_some_and(|stat| stat.start == process.identity.start_ticks);
    let (rss, used) = match stat {
        Some(stat) if same => (stat.pages * page_size() as u64, stat.used),
        _ => (0, 0),
    };
    let command = if same { command_line(pid) } else { None };
    let row = ProcessRow {
        pid,
        ppid: process.parent,
        command: command.unwrap_or_else(|| vec![process.name.clone()]),
        rss_bytes: rss,
        state: process.state,
    };
    let life = seconds_since(&process.identity);
    (row, if life > 0.0 { 100.0 * from_ticks(used).as_secs_f64() / life } else { 0.0 })
}

/// How long a process of this boot has lived.
pub(super) fn seconds_since(process: &ProcessIdentity) -> f64 {
    age_of(process).as_secs_f64()
}

/// What it was started with, secrets masked. A zombie has none.
fn command_line(pid: u32) -> Option<Vec<String>> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok().filter(|bytes| !bytes.is_empty())?;
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    let words: Vec<OsString> =
        bytes.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect();
    Some(masked(&words))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    /// Time used, its own and the kernel's for it, in ticks.
    used: u64,
    start: u64,
    /// Resident pages.
    pages: u64,
}

/// The fields are counted from the last closing bracket: the name before it may hold anything.
fn parse_stat(line: &[u8]) -> Option<Stat> {
    let text = String::from_utf8_lossy(line);
    let (_, fields) = text.rsplit_once(')')?;
    let field = |number: usize| -> Option<u64> {
        // proc(5) counts from one, and the first field after the bracket is the third.
        fields.split_ascii_whitespace().nth(number - 3)?.parse().ok()
    };
    Some(Stat { used: field(14)? + field(15)?, start: field(22)?, pages: field(24)? })
}

#[cfg(test)]
mod tests {
    use moored_containment::ProcessTable;

    use super::*;

    #[test]
    fn a_name_full_of_brackets_does_not_shift_the_fields() {
        let line = b"42 (a) R 1 (b) S 7 42 41 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 1 0 123456 1000 17 rest";
        assert_eq!(parse_stat(line), Some(Stat { used: 110, start: 123_456, pages: 17 }));
        assert_eq!(parse_stat(b"42 (cat) S 7"), None);
    }

    #[test]
    fn we_can_measure_ourselves() {
        let me = ProcessIdentity::of(std::process::id()).expect("us");
        let table = ProcessTable::read().expect("a table");
        let (row, cpu) = measure(table.get(&me).expect("our row"));
        assert_eq!(row.pid, me.pid);
        assert!(row.rss_bytes > 100_000, "{row:?}");
        assert_eq!(row.command.len(), std::env::args().count());
        assert!((0.0..=100_000.0).contains(&cpu), "{cpu}");
        assert!((0.0..3600.0).contains(&seconds_since(&me)));
    }

    #[test]
    fn numbers_of_somebody_else_are_not_taken() {
        let me = ProcessIdentity::of(std::process::id()).expect("us");
        let table = ProcessTable::read().expect("a table");
        let mut earlier = table.get(&me).expect("our row").clone();
        earlier.identity.start_ticks -= 1;
        let (row, _) = measure(&earlier);
        assert_eq!((row.rss_bytes, row.command), (0, vec![earlier.name.clone()]));
    }
}
