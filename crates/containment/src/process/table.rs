//! One snapshot of the process table.
//!
//! A snapshot is a set of guesses: everything in it may have ended by the time it is read. So its rows carry identities,
//! and nothing is signalled on the strength of a row alone.

use std::collections::HashMap;
use std::io;

use super::identity::{BootId, ProcessIdentity, read_stat, unreadable};
use crate::shared::stat::{self, Stat};
use crate::sys;

/// One process, as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Process {
    /// Who it is.
    pub identity: ProcessIdentity,
    /// Its parent's number.
    pub parent: u32,
    /// Its group.
    pub group: u32,
    /// Its session.
    pub session: u32,
    /// Its state's letter, as in `ps`: `R`, `S`, `D`, `Z`, `T` ….
    pub state: char,
    /// The kernel's short name for it.
    pub name: String,
    /// Processor time that it has used, its own and the kernel's for it, in clock ticks.
    pub used_ticks: u64,
    /// Its resident memory in pages.
    pub resident_pages: u64,
    /// It has begun to exit, or at least its first thread has: its files may be closed already.
    pub is_exiting: bool,
    /// By the rule of `Stat::is_zombie`.
    is_zombie: bool,
}

impl Process {
    /// The process that has this number now.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is none; others if it cannot be told.
    pub fn of(pid: u32) -> io::Result<Self> {
        let boot = BootId::current()?;
        let line = read_stat(pid)?;
        Self::parse(pid, boot, &line).ok_or_else(|| unreadable(pid))
    }

    fn parse(pid: u32, boot: BootId, line: &[u8]) -> Option<Self> {
        /// PF_EXITING of the kernel, in the flags, field 9 of proc(5).
        const EXITING: u64 = 4;
        let stat = Stat::parse(line)?;
        Some(Self {
            identity: ProcessIdentity { pid, start_ticks: stat.ticks, boot },
            parent: stat.ppid.unsigned_abs(),
            group: stat.pgrp.unsigned_abs(),
            session: stat.session.unsigned_abs(),
            state: char::from(stat.state),
            name: String::from_utf8_lossy(stat::name(line).unwrap_or_default()).into_owned(),
            used_ticks: stat::field(line, 14)? + stat::field(line, 15)?,
            resident_pages: stat::field(line, 24)?,
            is_exiting: stat::field(line, 9)? & EXITING != 0,
            is_zombie: stat.is_zombie(),
        })
    }

    /// Dead, and only waiting to be collected. A process whose first thread has ended is in state `Z` too, and no zombie while
    /// other threads of it live.
    #[must_use]
    pub fn is_zombie(&self) -> bool {
        self.is_zombie
    }
}

/// All processes that could be seen, at one moment.
///
/// ```
/// use moored_containment::{ProcessIdentity, ProcessTable};
///
/// let table = ProcessTable::read()?;
/// let me = ProcessIdentity::of(std::process::id())?;
/// assert!(table.get(&me).is_some());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ProcessTable {
    rows: Vec<Process>,
}

impl ProcessTable {
    /// Reads the table. A process that ends meanwhile is left out.
    ///
    /// # Errors
    /// If the table cannot be read at all.
    pub fn read() -> io::Result<Self> {
        let boot = BootId::current()?;
        let mut rows = Vec::new();
        for pid in sys::process_ids()? {
            let Ok(line) = sys::stat_line(pid) else { continue };
            rows.extend(Process::parse(pid, boot, &line));
        }
        Ok(Self { rows })
    }

    /// Every row.
    pub fn iter(&self) -> impl Iterator<Item = &Process> {
        self.rows.iter()
    }

    /// The row of that very process.
    #[must_use]
    pub fn get(&self, identity: &ProcessIdentity) -> Option<&Process> {
        self.rows.iter().find(|row| row.identity == *identity)
    }

    /// Everything below that very process, parents before their children.
    #[must_use]
    pub fn descendants(&self, root: &ProcessIdentity) -> Vec<&Process> {
        if self.get(root).is_none() {
            // The number is another process's now, which has other children.
            return Vec::new();
        }
        let mut children: HashMap<u32, Vec<&Process>> = HashMap::new();
        for row in &self.rows {
            children.entry(row.parent).or_default().push(row);
        }
        let mut found: Vec<&Process> = children.remove(&root.pid).unwrap_or_default();
        let mut next = 0;
        while let Some(row) = found.get(next) {
            // Taken out, so that no row comes twice even if the snapshot is crooked.
            let below = children.remove(&row.identity.pid).unwrap_or_default();
            found.extend(below);
            next += 1;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_brackets_does_not_shift_the_fields() {
        let line = b"42 (a) R 1 (b) S 7 42 41 0 -1 4194564 1 2 3 4 50 60 7 8 20 0 1 0 123456 1000 17 rest";
        let boot = BootId::current().expect("a boot");
        let row = Process::parse(42, boot, line).expect("a status line");
        assert_eq!((row.parent, row.group, row.session, row.state), (7, 42, 41, 'S'));
        assert_eq!((row.used_ticks, row.resident_pages, row.is_exiting), (110, 17, true));
        assert_eq!((row.identity.start_ticks, &*row.name), (123_456, "a) R 1 (b"));
        assert_eq!(Process::parse(42, boot, b"42 (cat) S 7"), None);
    }
}
