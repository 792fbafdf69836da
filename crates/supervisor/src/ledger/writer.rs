//! What a `run` writes its history with. Giving it an event costs a lock that is never held while anything is written;
//! the writing is done aside, in one transaction per batch, by a thread that exists only while there is something to
//! write: a sleeping `run` has no thread, no open database, and no reason to wake.
//!
//! What cannot be written, now or in time, is left in the spool, at once, so that a `run` that is killed afterwards
//! loses nothing either.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::spool::{Spool, import_spool};
use super::{Ledger, LedgerError, LedgerStore, Opened, Retention, lives};
use crate::background::{Background, Done, Worker};
use crate::event::Event;

/// Where nothing can be written, no more than these are remembered.
const MOST_EVENTS: usize = 10_000;

/// Writes history for a `run`. It is shared by whoever has something to tell and whoever waits for the end.
#[derive(Debug)]
pub struct Writer {
    aside: Background<Clerk>,
    spool: Spool,
    complaints: Complaints,
}

/// How the writing ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// So many events were left in the spool.
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

    /// As [`Writer::start`], keeping history for so long.
    #[must_use]
    pub fn with_retention(store: impl LedgerStore + 'static, spool: PathBuf, retention: Retention) -> Self {
        let (spool, complaints) = (Spool::new(spool), Complaints::default());
        let clerk = Clerk {
            store: Box::new(store),
            spool: spool.clone(),
            complaints: complaints.clone(),
            retention,
            ledger: None,
            has_spooled: false,
        };
        Self { aside: Background::new(clerk), spool, complaints }
    }

    /// Has an event written down. Does not wait and does not fail.
    pub fn send(&self, event: Event) {
        if !self.aside.push(event, |queue| queue.len() < MOST_EVENTS) {
            self.complaints.add("too many events could not be written: the newest are dropped".into());
        }
    }

    /// What has gone wrong so far: each thing once.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.complaints.all()
    }

    /// Waits so long for all to be written. What is not is left in the spool.
    #[must_use]
    pub fn finish(&self, patience: Duration) -> Outcome {
        let left = self.aside.settle(patience);
        if !left.is_empty()
            && let Err(error) = self.spool.leave(&left)
        {
            let count = left.len();
            self.complaints
                .add(format!("{count} events of history are lost: the spool cannot be written: {error}"));
        }
        let warnings = self.warnings();
        Outcome { spooled: left.len(), warning: (!warnings.is_empty()).then(|| warnings.join("; ")) }
    }
}

/// What has gone wrong: each thing once.
#[derive(Clone, Debug, Default)]
struct Complaints(Arc<Mutex<Vec<String>>>);

impl Complaints {
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

/// Who does the writing.
struct Clerk {
    store: Box<dyn LedgerStore>,
    spool: Spool,
    complaints: Complaints,
    retention: Retention,
    /// Open while there is something to write.
    ledger: Option<Box<dyn Ledger>>,
    has_spooled: bool,
}

impl fmt::Debug for Clerk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clerk")
            .field("store", &self.store)
            .field("spool", &self.spool)
            .field("is_open", &self.ledger.is_some())
            .finish_non_exhaustive()
    }
}

impl Worker for Clerk {
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
                self.complaints.add(format!("history could not be written: {error}"));
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

impl Clerk {
    fn write(&mut self, batch: &[Event]) -> Result<(), LedgerError> {
        match self.open()?.record(batch) {
            // It may have been whole enough to be opened.
            Err(error) if error.is_damage() => {
                self.ledger = None;
                if let Some(warning) = self.store.set_aside_damaged(&error)? {
                    self.complaints.add(warning);
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
                    self.complaints.add(warning);
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
            self.complaints.add(format!("what others could not write was not taken in: {error}"));
        }
        if let Err(error) = ledger.prune_if_due(&self.retention, Timestamp::now(), &lives) {
            self.complaints.add(format!("old history was not removed: {error}"));
        }
    }
}
