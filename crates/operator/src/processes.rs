//! How a row of the process table is shown: its memory in bytes, its part of a processor, its command line with secrets masked.

use moored_containment::process::{Process, ProcessIdentity, command_line};
use moored_launch::masked;
use moored_registry::boot_time::{age_of, from_ticks};
use rustix::param::page_size;

use crate::row::ProcessRow;

/// A process as it is shown, and what part of a processor it has used over its life.
pub(super) fn measure(process: &Process) -> (ProcessRow, f64) {
    let pid = process.identity.pid;
    // Read after the snapshot: it counts only if the number is still that of the same process.
    let words = masked(&command_line(pid));
    let is_same = ProcessIdentity::of(pid).is_ok_and(|now| now == process.identity);
    let command = Some(words).filter(|words| is_same && !words.is_empty());
    let row = ProcessRow {
        pid,
        ppid: process.parent,
        command: command.unwrap_or_else(|| vec![process.name.clone()]),
        rss_bytes: process.resident_pages * page_size() as u64,
        state: process.state,
    };
    let life = seconds_since(&process.identity);
    (row, if life > 0.0 { 100.0 * from_ticks(process.used_ticks).as_secs_f64() / life } else { 0.0 })
}

/// How long a process of this boot has lived.
pub(super) fn seconds_since(process: &ProcessIdentity) -> f64 {
    age_of(process).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use moored_containment::ProcessTable;

    use super::*;

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
    fn the_command_line_of_a_later_process_is_not_taken() {
        let me = ProcessIdentity::of(std::process::id()).expect("us");
        let table = ProcessTable::read().expect("a table");
        let mut earlier = table.get(&me).expect("our row").clone();
        earlier.identity.start_ticks -= 1;
        let (row, _) = measure(&earlier);
        assert_eq!(row.command, vec![earlier.name.clone()]);
    }
}
