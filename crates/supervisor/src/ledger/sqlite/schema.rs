//! What the file looks like. `PRAGMA user_version` says how many of the steps below it has taken; a step that was once
//! released is never changed.

use rusqlite::{Connection, TransactionBehavior};

/// Each brings the file one version further.
pub(super) const STEPS: [&str; 2] = [
    // Times are nanoseconds since 1970. `key` is a hash of `line`: the same event is not written down twice. Ids are
    // never given out again, because readers ask for what came after the last one that they have seen.
    "CREATE TABLE runs (
        run TEXT PRIMARY KEY NOT NULL,
        name TEXT NOT NULL,
        command TEXT NOT NULL,
        cwd TEXT,
        client TEXT,
        moored TEXT,
        moored_version TEXT,
        server_version TEXT,
        strength TEXT,
        started_at INTEGER NOT NULL,
        last_at INTEGER NOT NULL,
        ended_at INTEGER,
        end_cause TEXT,
        exit_code INTEGER,
        counters TEXT NOT NULL,
        report TEXT
     ) STRICT;
     CREATE TABLE events (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        run TEXT NOT NULL,
        at INTEGER NOT NULL,
        key INTEGER NOT NULL,
        line TEXT NOT NULL
     ) STRICT;
     CREATE UNIQUE INDEX events_once ON events (run, key);",
    // What is remembered between two openings.
    "CREATE TABLE memo (
        name TEXT PRIMARY KEY NOT NULL,
        value INTEGER NOT NULL
     ) STRICT;",
];

/// The newest version.
pub(super) const NEWEST: i64 = STEPS.len() as i64;

pub(super) fn version(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Brings the file up to the newest version, and says which one it has. A newer one is left alone.
pub(super) fn migrate(db: &mut Connection) -> rusqlite::Result<i64> {
    if version(db)? >= NEWEST {
        return version(db);
    }
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated it first.
    let from = version(&transaction)?;
    for step in STEPS.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    if from < NEWEST {
        transaction.pragma_update(None, "user_version", NEWEST)?;
    }
    transaction.commit()?;
    Ok(from.max(NEWEST))
}
