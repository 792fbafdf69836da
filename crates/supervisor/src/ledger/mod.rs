//! History: what is written down of each `run`, derived from [`Event`]s alone. Losing it loses no safety: what is alive
//! is known from the runtime folder.
//!
//! ```text
//! session ──Event──▶ writer ──batch──▶ a store: sqlite (state.db), or memory
//!                      │ not in time, or not at all      ▲
//!                      └──────────▶ spool (runtime folder) ── imported by the next process that opens the ledger
//! ```
//!
//! - `row` says what a `run` is after a list of events (pure). Both ledgers use it, so they cannot differ in that.
//! - `writer` is what a session has: it never makes the session wait, and keeps nothing open while nothing happens.
//! - `store` is what writer and readers open history with: they know two traits, and not which store is behind them.
//! - `spool` keeps what could not be written. Recording an event twice changes nothing, so in doubt it is recorded again.
//! - `retention` says what is old enough to go.

mod memory;
mod retention;
mod row;
mod spool;
mod sqlite;
mod store;
mod writer;

pub use memory::{MemoryLedger, MemoryStore};
pub use retention::Retention;
pub use row::{EventQuery, RunQuery, RunRow, StoredEvent};
pub use spool::{Imported, import_spool};
pub use sqlite::{SqliteLedger, SqliteStore};
pub use store::{LedgerStore, Opened, open_to_read};
pub use writer::{Outcome, Writer};

use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use moored_containment::ProcessIdentity;

use crate::event::{Event, RunId};

/// What is done with history that is open.
pub trait Ledger: Send {
    /// Writes events down, all or none. One that is there already changes nothing, so a retry is safe.
    ///
    /// # Errors
    /// If they could not be written.
    fn record(&mut self, events: &[Event]) -> Result<(), LedgerError>;

    /// `run`s, the newest first.
    ///
    /// # Errors
    /// If they could not be read.
    fn runs(&self, query: &RunQuery) -> Result<Vec<RunRow>, LedgerError>;

    /// One of them.
    ///
    /// # Errors
    /// If it could not be read.
    fn run(&self, run: RunId) -> Result<Option<RunRow>, LedgerError>;

    /// Events in the order in which they were written down.
    ///
    /// # Errors
    /// If they could not be read.
    fn events(&self, query: &EventQuery) -> Result<Vec<StoredEvent>, LedgerError>;

    /// Removes what is too old or too much, and says how many `run`s went. One that has not ended stays as long as its
    /// moored lives, whatever its age.
    ///
    /// # Errors
    /// If that could not be done.
    fn prune(&mut self, retention: &Retention, now: Timestamp, lives: Lives<'_>) -> Result<u64, LedgerError>;

    /// Prunes unless that was done within the last day. A ledger that does not remember when prunes each time.
    ///
    /// # Errors
    /// As for [`Ledger::prune`].
    fn prune_if_due(
        &mut self,
        retention: &Retention,
        now: Timestamp,
        lives: Lives<'_>,
    ) -> Result<(), LedgerError> {
        self.prune(retention, now, lives).map(drop)
    }
}

/// Tells whether a moored lives. "Could not look" counts as yes.
pub type Lives<'a> = &'a dyn Fn(&ProcessIdentity) -> bool;

/// Whether it lives, by the process table.
#[must_use]
pub fn lives(moored: &ProcessIdentity) -> bool {
    moored.is_alive().unwrap_or(true)
}

/// History could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Its folder cannot be had.
    #[error("the folder of history cannot be used: {0}")]
    Place(String),
    /// A file operation failed.
    #[error("`{path}`: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// The database failed.
    #[error("`{path}`: {message}")]
    Database {
        /// The database.
        path: PathBuf,
        /// SQLite's message.
        message: String,
        /// What can be done about it.
        kind: DatabaseFault,
    },
    /// A newer moored has written it.
    #[error(
        "`{path}` has schema {found}, and this moored knows no newer than {known}: it was written by a newer one"
    )]
    Newer {
        /// Which database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// Something in it, or to be put in it, cannot be understood.
    #[error("an entry of history cannot be understood: {0}")]
    Entry(#[from] serde_json::Error),
}

/// What can be done about a fault of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseFault {
    /// Others hold it: try again.
    Busy,
    /// It is no database, or not one any more: begin a new one.
    Corrupt,
    /// Nothing here: a full disk, a read-only folder, a file system without locks.
    Other,
}

impl LedgerError {
    /// Whether what is stored is damaged, so that only a new beginning helps.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        self.fault() == Some(DatabaseFault::Corrupt)
    }

    fn fault(&self) -> Option<DatabaseFault> {
        match self {
            Self::Database { kind, .. } => Some(*kind),
            _ => None,
        }
    }
}
