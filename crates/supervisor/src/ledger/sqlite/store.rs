//! The folder of history as a store of it: a `state.db` that is opened for each batch and each look.

use super::SqliteLedger;
use crate::ledger::{LedgerError, LedgerStore, Opened};
use crate::places::{PlaceError, StateDir};

/// History in a SQLite file. Nothing is opened before [`LedgerStore::open`].
#[derive(Clone, Debug)]
pub struct SqliteStore {
    /// Where, or why there is no place.
    state: Result<StateDir, String>,
}

impl SqliteStore {
    /// In this folder.
    #[must_use]
    pub fn at(state: StateDir) -> Self {
        Self { state: Ok(state) }
    }

    fn state(&self) -> Result<&StateDir, LedgerError> {
        self.state.as_ref().map_err(|error| LedgerError::Place(error.clone()))
    }
}

/// Where there is no place for history, opening it is an error, and a session goes on without.
impl From<Result<StateDir, PlaceError>> for SqliteStore {
    fn from(state: Result<StateDir, PlaceError>) -> Self {
        Self { state: state.map_err(|error| error.to_string()) }
    }
}

impl LedgerStore for SqliteStore {
    fn open(&self) -> Result<Opened, LedgerError> {
        let (ledger, warning) = SqliteLedger::open_or_begin_anew(self.state()?)?;
        Ok(Opened { ledger: Box::new(ledger), warning })
    }

    fn set_aside_damaged(&self, damage: &LedgerError) -> Result<Option<String>, LedgerError> {
        SqliteLedger::set_aside_if_damaged(self.state()?, &damage.to_string())
    }
}
