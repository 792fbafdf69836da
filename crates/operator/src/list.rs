//! All servers of a user: those that are alive, and those that have ended if they are wanted too.

use crate::history::HistoryError;
use crate::operator::{Operator, OperatorError};
use crate::row::ServerRow;

/// Which servers are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that are alive. History is not opened.
    Alive,
    /// Those that have ended too.
    All,
}

/// Servers, those that have ended first, each group the oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// The servers.
    pub rows: Vec<ServerRow>,
    /// What the user is to be told of the history that was opened for it.
    pub warnings: Vec<String>,
}

/// Servers cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// What is alive cannot be looked at.
    #[error(transparent)]
    Look(#[from] OperatorError),
    /// What has ended cannot be looked at.
    #[error(transparent)]
    History(#[from] HistoryError),
}

impl Operator {
    /// The servers of this user.
    ///
    /// # Errors
    /// If what is alive cannot be looked at, or history is wanted and cannot be read.
    pub fn list(&self, which: Which) -> Result<Listing, ListError> {
        let alive: Vec<ServerRow> = self.look()?.into_iter().map(|live| live.row).collect();
        if which == Which::Alive {
            return Ok(Listing { rows: alive, warnings: Vec::new() });
        }
        let history = self.history()?;
        let mut rows = history.ended(&alive.iter().map(|row| row.id.clone()).collect())?;
        rows.extend(alive);
        Ok(Listing { rows, warnings: history.warnings })
    }
}
