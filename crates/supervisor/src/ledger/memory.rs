//! History in memory: for tests, and the model that the database is held against.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::row::to_line;
use super::{
    EventQuery, Ledger, LedgerError, LedgerStore, Lives, Opened, Retention, RunQuery, RunRow, StoredEvent,
};
use crate::event::{Event, RunId};

/// History that goes with its owner.
#[derive(Debug, Default)]
pub struct MemoryLedger {
    runs: BTreeMap<RunId, RunRow>,
    events: Vec<StoredEvent>,
    known: HashSet<String>,
    last_id: i64,
}

impl Ledger for MemoryLedger {
    fn record(&mut self, events: &[Event]) -> Result<(), LedgerError> {
        let lines = events.iter().map(to_line).collect::<Result<Vec<_>, _>>()?;
        for (event, line) in events.iter().zip(lines) {
            if !self.known.insert(line) {
                continue;
            }
            self.last_id += 1;
            self.events.push(StoredEvent { id: self.last_id, event: event.clone() });
            self.runs
                .entry(event.run)
                .and_modify(|row| row.apply(event))
                .or_insert_with(|| RunRow::first(event));
        }
        Ok(())
    }

    fn runs(&self, query: &RunQuery) -> Result<Vec<RunRow>, LedgerError> {
        let wanted = |row: &&RunRow| {
            query.server.as_ref().is_none_or(|server| *server == row.name)
                && query.since.is_none_or(|since| row.last_at >= since)
        };
        let mut rows: Vec<RunRow> = self.runs.values().rev().filter(wanted).cloned().collect();
        rows.truncate(query.limit.unwrap_or(usize::MAX));
        Ok(rows)
    }

    fn run(&self, run: RunId) -> Result<Option<RunRow>, LedgerError> {
        Ok(self.runs.get(&run).cloned())
    }

    fn events(&self, query: &EventQuery) -> Result<Vec<StoredEvent>, LedgerError> {
        let wanted = |stored: &&StoredEvent| {
            query.since.is_none_or(|since| stored.event.at >= since)
                && query.after_id.is_none_or(|id| stored.id > id)
                && query.run.is_none_or(|run| stored.event.run == run)
        };
        Ok(self.events.iter().filter(wanted).take(query.limit.unwrap_or(usize::MAX)).cloned().collect())
    }

    fn prune(&mut self, retention: &Retention, now: Timestamp, lives: Lives<'_>) -> Result<u64, LedgerError> {
        let cutoff = retention.cutoff(now);
        let before = self.runs.len();
        self.runs.retain(|_, row| {
            let alive = row.ended_at.is_none() && row.moored.as_ref().is_some_and(lives);
            alive || row.last_at >= cutoff
        });
        self.forget_events();
        let size = |stored: &StoredEvent| to_line(&stored.event).map_or(0, |line| line.len() as u64);
        while self.events.iter().map(size).sum::<u64>() > retention.bytes
            && let Some((oldest, _)) = self.runs.iter().find(|(_, row)| row.ended_at.is_some())
        {
            let oldest = *oldest;
            self.runs.remove(&oldest);
            self.forget_events();
        }
        Ok((before - self.runs.len()) as u64)
    }
}

impl MemoryLedger {
    /// Those of `run`s that are not there any more.
    fn forget_events(&mut self) {
        let (runs, known) = (&self.runs, &mut self.known);
        self.events.retain(|stored| {
            let stays = runs.contains_key(&stored.event.run);
            if !stays && let Ok(line) = to_line(&stored.event) {
                known.remove(&line);
            }
            stays
        });
    }
}

/// A store of history in memory: all who open it see the same, and it goes with the last of them.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<MemoryLedger>>);

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, MemoryLedger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LedgerStore for MemoryStore {
    fn open(&self) -> Result<Opened, LedgerError> {
        Ok(Opened { ledger: Box::new(self.clone()), warning: None })
    }
}

impl Ledger for MemoryStore {
    fn record(&mut self, events: &[Event]) -> Result<(), LedgerError> {
        self.lock().record(events)
    }

    fn runs(&self, query: &RunQuery) -> Result<Vec<RunRow>, LedgerError> {
        self.lock().runs(query)
    }

    fn run(&self, run: RunId) -> Result<Option<RunRow>, LedgerError> {
        self.lock().run(run)
    }

    fn events(&self, query: &EventQuery) -> Result<Vec<StoredEvent>, LedgerError> {
        self.lock().events(query)
    }

    fn prune(&mut self, retention: &Retention, now: Timestamp, lives: Lives<'_>) -> Result<u64, LedgerError> {
        self.lock().prune(retention, now, lives)
    }
}
