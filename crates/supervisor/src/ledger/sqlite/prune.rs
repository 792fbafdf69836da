//! Removing what is too old or too much.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::rows::{nanos, timestamp};
use crate::ledger::{Lives, Retention};

const MEMO: &str = "pruned_at";

/// When history was last pruned, by any process.
pub(super) fn last_time(db: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let last = db.query_row("SELECT value FROM memo WHERE name = ?1", [MEMO], |row| row.get(0)).optional()?;
    Ok(last.map(timestamp))
}

/// Removes what is too old, then what is too much, and remembers when. Says how many `run`s went.
pub(super) fn prune(
    db: &Connection,
    retention: &Retention,
    now: Timestamp,
    lives: Lives<'_>,
) -> rusqlite::Result<u64> {
    let before = count_runs(db)?;
    forget_old(db, nanos(retention.cutoff(now)), lives)?;
    while used_bytes(db)? > retention.bytes && forget_oldest(db)? {}
    db.execute("INSERT OR REPLACE INTO memo (name, value) VALUES (?1, ?2)", params![MEMO, nanos(now)])?;
    Ok(before.saturating_sub(count_runs(db)?))
}

/// Gives the space of what was removed back to the file system.
pub(super) fn give_back(db: &Connection) -> rusqlite::Result<()> {
    // It frees a page with each row that is asked for.
    let mut pages = db.prepare("PRAGMA incremental_vacuum")?;
    let mut freed = pages.query([])?;
    while freed.next()?.is_some() {}
    Ok(())
}

fn forget_old(db: &Connection, cutoff: i64, lives: Lives<'_>) -> rusqlite::Result<()> {
    db.execute("DELETE FROM runs WHERE last_at < ?1 AND ended_at IS NOT NULL", [cutoff])?;
    let mut select = db.prepare("SELECT run, moored FROM runs WHERE last_at < ?1 AND ended_at IS NULL")?;
    let open_ended = select
        .query_map([cutoff], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<Vec<(String, Option<String>)>>>()?;
    for (run, moored) in open_ended {
        let moored = moored.and_then(|identity| identity.parse().ok());
        if !moored.as_ref().is_some_and(lives) {
            db.execute("DELETE FROM runs WHERE run = ?1", [run])?;
        }
    }
    forget_events(db)
}

/// An eighth of the `run`s that have ended; where there is none, an eighth of the events. Says whether there was
/// something to forget.
fn forget_oldest(db: &Connection) -> rusqlite::Result<bool> {
    let gone = db.execute(
        "DELETE FROM runs WHERE run IN (SELECT run FROM runs WHERE ended_at IS NOT NULL ORDER BY run
         LIMIT (SELECT count(*) / 8 + 1 FROM runs WHERE ended_at IS NOT NULL))",
        [],
    )?;
    if gone > 0 {
        forget_events(db)?;
        return Ok(true);
    }
    let gone = db.execute(
        "DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT (SELECT count(*) / 8 + 1 FROM events))",
        [],
    )?;
    Ok(gone > 0)
}

/// Those of `run`s that are not there any more.
fn forget_events(db: &Connection) -> rusqlite::Result<()> {
    db.execute("DELETE FROM events WHERE run NOT IN (SELECT run FROM runs)", [])?;
    Ok(())
}

fn used_bytes(db: &Connection) -> rusqlite::Result<u64> {
    let number = |pragma| db.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i64>(0));
    let pages = number("page_count")? - number("freelist_count")?;
    Ok((pages * number("page_size")?).unsigned_abs())
}

fn count_runs(db: &Connection) -> rusqlite::Result<u64> {
    db.query_row("SELECT count(*) FROM runs", [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
}
