//! One snapshot of the process table.
//!
//! A snapshot is a set of guesses: everything in it may have ended by the time it is read. So its rows carry identities,
//! and nothing is signalled on the strength of a row alone.

use std::collections::HashMap;
use std::io;

use crate::process::identity::{BootId, ProcessIdentity};
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
    /// By the rule of `Stat::is_zombie`.
    is_zombie: bool,
}

impl Process {
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
            let Some(stat) = Stat::parse(&line) else { continue };
            rows.push(Process {
                identity: ProcessIdentity { pid, start_ticks: stat.ticks, boot },
                parent: stat.ppid.unsigned_abs(),
                group: stat.pgrp.unsigned_abs(),
                session: stat.session.unsigned_abs(),
                state: char::from(stat.state),
                name: String::from_utf8_lossy(stat::name(&line).unwrap_or_default()).into_owned(),
                is_zombie: stat.is_zombie(),
            });
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
            // Whoever has that number now is somebody else, with other children.
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
