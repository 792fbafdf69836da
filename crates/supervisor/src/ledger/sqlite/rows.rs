//! Rows into values, and values into rows.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::event::RunId;
use crate::ledger::{EventQuery, RunQuery, RunRow, StoredEvent};

const COLUMNS: &str = "run, name, command, cwd, client, moored, moored_version, server_version, strength, \
                       started_at, last_at, ended_at, end_cause, exit_code, counters, report";

/// A time as a number. Times that do not fit (before 1678, after 2262) become the nearest that does.
pub(super) fn nanos(at: Timestamp) -> i64 {
    let nanos = at.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

pub(super) fn timestamp(nanos: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanos.into()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// `LIMIT` takes -1 for none.
fn limit(limit: Option<usize>) -> i64 {
    limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX))
}

pub(super) fn select_runs(db: &Connection, query: &RunQuery) -> rusqlite::Result<Vec<RunRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM runs WHERE (?1 IS NULL OR name = ?1) AND (?2 IS NULL OR last_at >= ?2)
         ORDER BY run DESC LIMIT ?3"
    );
    let mut select = db.prepare(&sql)?;
    let rows =
        select.query_map(params![query.server, query.since.map(nanos), limit(query.limit)], run_row)?;
    rows.collect()
}

pub(super) fn select_run(db: &Connection, run: RunId) -> rusqlite::Result<Option<RunRow>> {
    let sql = format!("SELECT {COLUMNS} FROM runs WHERE run = ?1");
    db.query_row(&sql, [run.to_string()], run_row).optional()
}

pub(super) fn select_events(db: &Connection, query: &EventQuery) -> rusqlite::Result<Vec<StoredEvent>> {
    let mut select = db.prepare(
        "SELECT id, line FROM events
         WHERE (?1 IS NULL OR at >= ?1) AND id > ?2 AND (?3 IS NULL OR run = ?3) ORDER BY id LIMIT ?4",
    )?;
    let after = query.after_id.unwrap_or(i64::MIN);
    let run = query.run.map(|run| run.to_string());
    let rows = select.query_map(params![query.since.map(nanos), after, run, limit(query.limit)], |row| {
        let (id, line): (i64, String) = (row.get(0)?, row.get(1)?);
        // What a newer moored wrote may be unknown to us; the rest is still worth showing.
        Ok(serde_json::from_str(&line).ok().map(|event| StoredEvent { id, event }))
    })?;
    rows.filter_map(Result::transpose).collect()
}

pub(super) fn replace_run(db: &Connection, row: &RunRow) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT OR REPLACE INTO runs ({COLUMNS})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"
    );
    db.execute(
        &sql,
        params![
            row.run.to_string(),
            row.name,
            json(&row.command)?,
            row.cwd.as_ref().map(|cwd| cwd.to_string_lossy()),
            row.client.as_ref().map(json).transpose()?,
            row.moored.map(|moored| moored.to_string()),
            row.moored_version,
            row.server_version,
            row.strength.as_ref().map(json).transpose()?,
            nanos(row.started_at),
            nanos(row.last_at),
            row.ended_at.map(nanos),
            row.end_cause.as_ref().map(json).transpose()?,
            row.exit_code,
            json(&row.counters)?,
            row.report.as_ref().map(json).transpose()?,
        ],
    )?;
    Ok(())
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let text = |column| row.get::<_, Option<String>>(column);
    let run: String = row.get("run")?;
    Ok(RunRow {
        run: run.parse().map_err(|error| odd(&error))?,
        name: row.get("name")?,
        command: parsed(text("command")?).unwrap_or_default(),
        cwd: text("cwd")?.map(Into::into),
        client: parsed(text("client")?),
        moored: text("moored")?.and_then(|identity| identity.parse().ok()),
        moored_version: text("moored_version")?,
        server_version: text("server_version")?,
        strength: parsed(text("strength")?),
        started_at: timestamp(row.get("started_at")?),
        last_at: timestamp(row.get("last_at")?),
        ended_at: row.get::<_, Option<i64>>("ended_at")?.map(timestamp),
        end_cause: parsed(text("end_cause")?),
        exit_code: row.get("exit_code")?,
        counters: parsed(text("counters")?).unwrap_or_default(),
        report: parsed(text("report")?),
    })
}

fn json(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// What is in a field, if it can be understood.
fn parsed<T: DeserializeOwned>(text: Option<String>) -> Option<T> {
    serde_json::from_str(&text?).ok()
}

fn odd(error: &crate::event::ParseRunIdError) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(*error))
}
