//! The operator of one user's servers: in which folders they are found, and in which store their history is. What an
//! operator can do is said in the other files, a verb or two in each.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use moored_containment::RuntimeDir;
use moored_supervisor::ledger::{LedgerStore, SqliteStore};
use moored_supervisor::places::StateDir;

/// Whoever looks after the servers of one user.
#[derive(Clone, Debug)]
pub struct Operator {
    folders: Vec<RuntimeDir>,
    history: Arc<dyn LedgerStore>,
    /// Where logs are that no run has named; none if the user has no home.
    logs: Option<StateDir>,
}

impl Operator {
    /// For whoever calls.
    ///
    /// # Errors
    /// If there is no folder of live sessions.
    pub fn of_user() -> Result<Self, OperatorError> {
        let folders = RuntimeDir::all_of_user();
        if folders.is_empty() {
            RuntimeDir::of_user().map_err(OperatorError::NoFolder)?;
        }
        Ok(Self::in_folders(folders))
    }

    /// For this folder of live sessions alone, with the history of whoever calls.
    #[must_use]
    pub fn at(folder: RuntimeDir) -> Self {
        Self::in_folders(vec![folder])
    }

    /// The same with the history in this store, and the logs in that folder.
    #[must_use]
    pub fn with_history(self, history: Arc<dyn LedgerStore>, logs: StateDir) -> Self {
        Self { history, logs: Some(logs), ..self }
    }

    fn in_folders(folders: Vec<RuntimeDir>) -> Self {
        let state = StateDir::of_user();
        let logs = state.as_ref().ok().cloned();
        Self { folders, history: Arc::new(SqliteStore::from(state)), logs }
    }

    pub(crate) fn history_store(&self) -> &dyn LedgerStore {
        self.history.as_ref()
    }

    pub(crate) fn logs(&self) -> Option<&StateDir> {
        self.logs.as_ref()
    }

    /// The folders of live sessions.
    #[must_use]
    pub fn folders(&self) -> &[RuntimeDir] {
        &self.folders
    }
}

/// An operator could not look.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The folder of live sessions cannot be read.
    #[error("read the folder of live sessions `{folder}`: {source}")]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no folder of live sessions.
    #[error("use the folder of live sessions: {0}")]
    NoFolder(io::Error),
    /// The process table cannot be read.
    #[error("read the process table: {0}")]
    Table(io::Error),
}
