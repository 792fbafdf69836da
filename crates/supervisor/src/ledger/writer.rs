//! Writes the history of a session. [`Writer::send`] only queues; a background thread writes, in one transaction per batch, and
//! exists only while there is something to write: a sleeping session has no thread, no open database, and no reason to wake.
//!
//! What cannot be written, now or in time, is left in the spool at once, so that a session that is killed afterwards loses
//! nothing either.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::spool::{Spool, import_spool};
use super::{Ledger, LedgerError, LedgerStore, Opened, Retention, lives};
use crate::background::{Background, Done, Worker};
use crate::event::Event;

/// The most events that wait where nothing can be written; newer ones are dropped.
const MOST_EVENTS: usize = 10_000;

/// Writes history for a session. Shared by the session, which sends events, and `SessionRecords::finish`, which waits for the
/// end.
#[derive(Debug)]
pub struct Writer {
    background: Background<HistoryWorker>,
    spool: Spool,
    warnings: Warnings,
}

/// How the writing ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Events that were left in the spool.
    pub spooled: usize,
    /// What went wrong, if anything did.
    pub warning: Option<String>,
}

impl Writer {
    /// Makes one. The store is not opened before the first event; `spool` is the runtime folder.
    #[must_use]
    pub fn start(store: impl LedgerStore + 'static, spool: PathBuf) -> Self {
        Self::with_retention(store, spool, Retention::default())
    }

    /// As [`Writer::start`], with another retention.
    #[must_use]
    pub fn with_retention(store: impl LedgerStore + 'static, spool: PathBuf, retention: Retention) -> Self {
        let (spool, warnings) = (Spool::new(spool), Warnings::default());
        let worker = HistoryWorker {
            store: Box::new(store),
            spool: spool.clone(),
            warnings: warnings.clone(),
            retention,
            ledger: None,
            has_spooled: false,
        };
        Self { background: Background::new(worker), spool, warnings }
    }

    /// Has an event written down. Does not wait and does not fail.
    pub fn send(&self, event: Event) {
        if !self.background.push(event, |queue| queue.len() < MOST_EVENTS) {
            self.warnings.add("too many events could not be written: the newest are dropped".into());
        }
    }

    /// What has gone wrong so far: each thing once.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.all()
    }

    /// Waits up to `timeout` for all to be written, and leaves the rest in the spool.
    #[must_use]
    pub fn finish(&self, timeout: Duration) -> Outcome {
        let left = self.background.drain(timeout);
        if !left.is_empty()
            && let Err(error) = self.spool.leave(&left)
        {
            let count = left.len();
            self.warnings
                .add(format!("{count} events of history are lost: the spool cannot be written: {error}"));
        }
        let warnings = self.warnings();
        Outcome { spooled: left.len(), warning: (!warnings.is_empty()).then(|| warnings.join("; ")) }
    }
}

/// What has gone wrong: each message once.
#[derive(Clone, Debug, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    fn add(&self, warning: String) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains(&warning) && all.len() < 16 {
            all.push(warning);
        }
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Writes on the background thread.
struct HistoryWorker {
    store: Box<dyn LedgerStore>,
    spool: Spool,
    warnings: Warnings,
    retention: Retention,
    /// Open while there is something to write.
    ledger: Option<Box<dyn Ledger>>,
    has_spooled: bool,
}

impl fmt::Debug for HistoryWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HistoryWorker")
            .field("store", &self.store)
            .field("spool", &self.spool)
            .field("is_open", &self.ledger.is_some())
            .finish_non_exhaustive()
    }
}

impl Worker for HistoryWorker {
    type Item = Event;

    fn work(&mut self, batch: &[Event]) -> Done {
        match self.write(batch) {
            Ok(()) => {
                if std::mem::take(&mut self.has_spooled) {
                    self.spool.clear(batch);
                }
                Done::Yes
            }
            Err(error) => {
                self.ledger = None;
                self.warnings.add(format!("history could not be written: {error}"));
                // If this fails too, the end tries once more, and says so.
                self.has_spooled |= self.spool.leave(batch).is_ok();
                Done::No
            }
        }
    }

    fn rest(&mut self) {
        self.ledger = None;
    }
}

impl HistoryWorker {
    fn write(&mut self, batch: &[Event]) -> Result<(), LedgerError> {
        match self.open()?.record(batch) {
            // It may have been whole enough to be opened.
            Err(error) if error.is_damage() => {
                self.ledger = None;
                if let Some(warning) = self.store.set_aside_damaged(&error)? {
                    self.warnings.add(warning);
                }
                self.open()?.record(batch)
            }
            recorded => recorded,
        }
    }

    fn open(&mut self) -> Result<&mut dyn Ledger, LedgerError> {
        let ledger = match self.ledger.take() {
            Some(open) => open,
            None => {
                let Opened { mut ledger, warning } = self.store.open()?;
                if let Some(warning) = warning {
                    self.warnings.add(warning);
                }
                self.tidy(ledger.as_mut());
                ledger
            }
        };
        Ok(self.ledger.insert(ledger).as_mut())
    }

    /// What others could not write, and what is too old. That it fails is no reason not to write.
    fn tidy(&self, ledger: &mut dyn Ledger) {
        if let Err(error) = import_spool(self.spool.folder(), ledger) {
            self.warnings.add(format!("what others could not write was not taken in: {error}"));
        }
        if let Err(error) = ledger.prune_if_due(&self.retention, Timestamp::now(), &lives) {
            self.warnings.add(format!("old history was not removed: {error}"));
        }
    }
}
