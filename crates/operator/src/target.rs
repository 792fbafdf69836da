//! Verbs about the server that the user names: all that is known of it, and where its log is. What is alive is looked at
//! first; what has ended is looked for in history only if nothing alive is meant.

use std::collections::BTreeSet;
use std::path::PathBuf;

use moored_containment::ProcessIdentity;
use moored_supervisor::ledger::{EventQuery, RunRow, StoredEvent};
use serde::Serialize;

use crate::find::{FindError, Named, find};
use crate::history::{History, HistoryError};
use crate::look::Details;
use crate::operator::{Operator, OperatorError};
use crate::row::ServerRow;

/// What was asked for cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// What is alive cannot be looked at.
    #[error(transparent)]
    Look(#[from] OperatorError),
    /// What has ended cannot be looked at.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// No server is meant, or several ids could be.
    #[error(transparent)]
    Find(#[from] FindError),
    /// Several have that name, and only one can be shown.
    #[error("choose: {} servers are called `{target}`", ids.len())]
    Several {
        /// The name.
        target: String,
        /// Their ids.
        ids: Vec<String>,
    },
    /// No log of it is kept.
    #[error("find a log of `{target}`: none is kept")]
    NoLog {
        /// What was asked for.
        target: String,
    },
}

/// A server, with its details where it is alive, and what was written down of it. Other programs read this form.
#[derive(Debug, Serialize)]
pub struct Inspected {
    /// What is shown of every server.
    #[serde(flatten)]
    pub row: ServerRow,
    /// More of it, if it is alive.
    #[serde(flatten)]
    pub details: Option<Details>,
    /// What history has of it.
    pub record: Option<RunRow>,
    /// What happened to it.
    pub events: Vec<StoredEvent>,
    /// What the user is to be told of the history that was opened for it.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// Why `record` and `events` are empty, if history could not be read. What is alive is shown without it too.
    #[serde(skip)]
    pub unread: Option<HistoryError>,
}

/// Where the stderr of a server is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLog {
    /// The id of the run that wrote it, or writes it still.
    pub id: String,
    /// The file.
    pub path: PathBuf,
    /// The moored process that writes it, if the run is alive.
    pub writer: Option<ProcessIdentity>,
    /// How many other runs have that name, older than this one.
    pub older: usize,
    /// What the user is to be told of the history that was opened for it.
    pub warnings: Vec<String>,
}

/// The servers that the words mean: those that are alive, else those that have ended.
enum Meant {
    Live(Vec<crate::Live>),
    Ended(Vec<ServerRow>, History),
}

impl Operator {
    /// All that is known of the one server that is meant by an id, the beginning of one, or a name.
    ///
    /// # Errors
    /// If not exactly one is meant, or nothing can be looked at.
    pub fn inspect(&self, target: &str) -> Result<Inspected, TargetError> {
        match self.meant(target)? {
            Meant::Live(found) => {
                let one = only(target, found)?;
                let history = self.history();
                Ok(inspected(one.row, Some(one.details), history))
            }
            Meant::Ended(found, history) => Ok(inspected(only(target, found)?, None, Ok(history))),
        }
    }

    /// The log of the newest run that is meant; those that are alive come first.
    ///
    /// # Errors
    /// If no server is meant, or no log is kept.
    pub fn log_of(&self, target: &str) -> Result<FoundLog, TargetError> {
        let none = || TargetError::NoLog { target: target.to_owned() };
        match self.meant(target)? {
            Meant::Live(found) => {
                let (newest, others) = found.split_last().ok_or_else(none)?;
                Ok(FoundLog {
                    id: newest.row.id.clone(),
                    path: newest.details.log_file.as_ref().ok_or_else(none)?.into(),
                    writer: Some(newest.details.moored),
                    older: others.len(),
                    warnings: Vec::new(),
                })
            }
            Meant::Ended(found, history) => {
                let (newest, others) = found.split_last().ok_or_else(none)?;
                Ok(FoundLog {
                    id: newest.id.clone(),
                    path: history.log_of(newest).ok_or_else(none)?,
                    writer: None,
                    older: others.len(),
                    warnings: history.warnings,
                })
            }
        }
    }

    fn meant(&self, target: &str) -> Result<Meant, TargetError> {
        let live = self.look()?;
        let not_alive = match find(&live, target) {
            Ok(found) => return Ok(Meant::Live(found.into_iter().cloned().collect())),
            Err(not_alive) => not_alive,
        };
        let history = self.history()?;
        let ended = history.ended(&BTreeSet::new())?;
        // What lives is what was looked for first, so its names are the ones to suggest.
        let found = find(&ended, target).map_err(|error| if live.is_empty() { error } else { not_alive })?;
        Ok(Meant::Ended(found.into_iter().cloned().collect(), history))
    }
}

/// One of a name can be shown; of several, the ids are.
fn only<T: Named>(target: &str, mut found: Vec<T>) -> Result<T, TargetError> {
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (last, _) => {
            let ids = found.iter().chain(&last).map(|one| one.id().to_owned()).collect();
            Err(TargetError::Several { target: target.to_owned(), ids })
        }
    }
}

fn inspected(row: ServerRow, details: Option<Details>, history: Result<History, HistoryError>) -> Inspected {
    let mut inspected =
        Inspected { row, details, record: None, events: Vec::new(), warnings: Vec::new(), unread: None };
    inspected.unread = history.and_then(|history| inspected.read(history)).err();
    inspected
}

impl Inspected {
    fn read(&mut self, mut history: History) -> Result<(), HistoryError> {
        self.warnings.append(&mut history.warnings);
        let Ok(run) = self.row.id.parse() else { return Ok(()) };
        self.record = history.run(run)?;
        self.events = history.events(&EventQuery { run: Some(run), ..EventQuery::default() })?;
        Ok(())
    }
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
