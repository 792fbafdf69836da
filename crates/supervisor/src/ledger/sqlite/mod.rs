//! History in one SQLite file that many processes write at once.
//!
//! Everybody opens it for one batch and closes it again; a transaction takes the write lock from its beginning, so two
//! writers wait for each other and neither fails halfway. Where the file system is shared between machines it keeps no
//! write-ahead log, which needs memory that all writers share.
//!
//! - `open` makes, opens and moves aside; `schema` is what the file looks like, and how older ones come up to it;
//!   `rows` turns rows into values and back; `prune` removes what is too old or too much; `store` is the folder that it is
//!   opened in.

mod open;
mod prune;
mod rows;
mod schema;
mod store;

pub use store::SqliteStore;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use moored_launch::stable_hash;
use rusqlite::{Connection, ErrorCode, TransactionBehavior, params};

use super::row::to_line;
use super::{
    DatabaseFault, EventQuery, Ledger, LedgerError, Lives, Retention, RunQuery, RunRow, StoredEvent,
};
use crate::event::{Event, RunId};

/// How long SQLite itself waits for others.
const BUSY: Duration = Duration::from_secs(10);
/// How long we try again when it gives up at once, as it does in a few places where it cannot wait.
const TRY_FOR: Duration = Duration::from_secs(20);
/// Between two tries.
const REST: Duration = Duration::from_millis(5);

/// History in a file.
#[derive(Debug)]
pub struct SqliteLedger {
    db: Connection,
    path: PathBuf,
    // After the connection, so that it is dropped after it.
    _presence: open::Presence,
}

impl Ledger for SqliteLedger {
    fn record(&mut self, events: &[Event]) -> Result<(), LedgerError> {
        let lines = events.iter().map(to_line).collect::<Result<Vec<_>, _>>()?;
        let entries: Vec<(&Event, &str)> = events.iter().zip(lines.iter().map(String::as_str)).collect();
        patiently(|| self.transact(|db| insert(db, &entries)))
    }

    fn runs(&self, query: &RunQuery) -> Result<Vec<RunRow>, LedgerError> {
        self.read(|db| rows::select_runs(db, query))
    }

    fn run(&self, run: RunId) -> Result<Option<RunRow>, LedgerError> {
        self.read(|db| rows::select_run(db, run))
    }

    fn events(&self, query: &EventQuery) -> Result<Vec<StoredEvent>, LedgerError> {
        self.read(|db| rows::select_events(db, query))
    }

    fn prune(&mut self, retention: &Retention, now: Timestamp, lives: Lives<'_>) -> Result<u64, LedgerError> {
        let gone = patiently(|| self.transact(|db| prune::prune(db, retention, now, lives)))?;
        patiently(|| self.read(prune::give_back))?;
        Ok(gone)
    }

    fn prune_if_due(
        &mut self,
        retention: &Retention,
        now: Timestamp,
        lives: Lives<'_>,
    ) -> Result<(), LedgerError> {
        if !Retention::is_due(self.read(prune::last_time)?, now) {
            return Ok(());
        }
        let gone = patiently(|| {
            self.transact(|db| {
                // Many may have seen that it is due; the first with the lock does it.
                let due = Retention::is_due(prune::last_time(db)?, now);
                if due { prune::prune(db, retention, now, lives) } else { Ok(0) }
            })
        })?;
        if gone > 0 {
            patiently(|| self.read(prune::give_back))?;
        }
        Ok(())
    }
}

impl SqliteLedger {
    fn read<T>(&self, look: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, LedgerError> {
        look(&self.db).map_err(|error| fault(&self.path, &error))
    }

    fn transact<T>(
        &mut self,
        act: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerError> {
        let acted = (|| {
            let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = act(&transaction)?;
            transaction.commit()?;
            Ok(value)
        })();
        acted.map_err(|error| fault(&self.path, &error))
    }
}

/// Writes down what is new, and brings the rows of its `run`s up to date.
fn insert(db: &Connection, entries: &[(&Event, &str)]) -> rusqlite::Result<()> {
    let mut add = db.prepare(
        // An insertion that is ignored would use up an id.
        "INSERT INTO events (run, at, key, line) SELECT ?1, ?2, ?3, ?4
         WHERE NOT EXISTS (SELECT 1 FROM events WHERE run = ?1 AND key = ?3)",
    )?;
    let mut changed: BTreeMap<RunId, RunRow> = BTreeMap::new();
    for (event, line) in entries {
        let key = stable_hash(line.as_bytes()).cast_signed();
        if add.execute(params![event.run.to_string(), rows::nanos(event.at), key, line])? == 0 {
            continue;
        }
        let known = match changed.remove(&event.run) {
            Some(row) => Some(row),
            None => rows::select_run(db, event.run)?,
        };
        let row = known.map_or_else(
            || RunRow::first(event),
            |mut row| {
                row.apply(event);
                row
            },
        );
        changed.insert(event.run, row);
    }
    changed.values().try_for_each(|row| rows::replace_run(db, row))
}

/// Tries again while others hold the file.
fn patiently<T>(mut act: impl FnMut() -> Result<T, LedgerError>) -> Result<T, LedgerError> {
    let deadline = Instant::now() + TRY_FOR;
    loop {
        match act() {
            Err(error) if error.fault() == Some(DatabaseFault::Busy) && Instant::now() < deadline => {
                thread::sleep(REST);
            }
            outcome => return outcome,
        }
    }
}

/// What went wrong, in our words.
fn fault(path: &std::path::Path, error: &rusqlite::Error) -> LedgerError {
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
            DatabaseFault::Busy
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => DatabaseFault::Corrupt,
        _ => DatabaseFault::Other,
    };
    LedgerError::Database { path: path.to_owned(), message: error.to_string(), kind }
}
