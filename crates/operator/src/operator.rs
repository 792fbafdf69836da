//! The operator of one user's servers: in which folders they are found, and in which store their history is. What an
//! operator can do is said in the other files, a verb or two in each.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use moored_containment::RuntimeDir;
use moored_supervisor::ledger::{LedgerStore, SqliteStore};
use moored_supervisor::places::StateDir;

/// The view of all servers of one user, and what can be done with them.
#[derive(Clone, Debug)]
pub struct Operator {
    folders: Vec<RuntimeDir>,
    /// What is wrong with these folders.
    warning: Option<String>,
    history: Arc<dyn LedgerStore>,
    /// The folder of logs, for runs that have not said where theirs is; `None` if the user has no home.
    logs: Option<StateDir>,
}

impl Operator {
    /// For the user who calls. Where no folder of live sessions can be used there are no sessions to be found, and the
    /// [warning](Self::warning) says why.
    #[must_use]
    pub fn of_user() -> Self {
        let warning = match RuntimeDir::of_user() {
            Ok(folder) => folder.warning(),
            Err(error) => Some(format!("no folder of live sessions can be used: {error}")),
        };
        Self { warning, ..Self::in_folders(RuntimeDir::all_of_user()) }
    }

    /// For this folder of live sessions alone, with the history of the calling user.
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
        Self { folders, warning: None, history: Arc::new(SqliteStore::from(state)), logs }
    }

    pub(crate) fn history_store(&self) -> &dyn LedgerStore {
        self.history.as_ref()
    }

    pub(crate) fn logs(&self) -> Option<&StateDir> {
        self.logs.as_ref()
    }

    /// What is wrong with the folders of live sessions.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
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
        /// The folder.
        folder: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The process table cannot be read.
    #[error("read the process table: {0}")]
    Table(io::Error),
}
