//! Where history is kept, for those who open it: the writer of a session, and the operator's commands. They know a [`LedgerStore`]
//! and nothing of SQLite; another store is another implementation of these two traits.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::{Ledger, LedgerError, import_spool};

/// A place of history that can be opened, for one batch of events or one look, and as often as needed.
pub trait LedgerStore: fmt::Debug + Send + Sync {
    /// Opens it; begins it if there is none. Dropping the ledger closes it.
    ///
    /// # Errors
    /// If it cannot be opened now. What is to be written goes into the spool then.
    fn open(&self) -> Result<Opened, LedgerError>;

    /// A ledger that was open said that its store is damaged: puts that aside, so that the next
    /// [`open`](LedgerStore::open) begins a new one. The text says so; without one, nothing was put aside. A store that
    /// cannot be damaged has nothing to do.
    ///
    /// # Errors
    /// If it cannot be put aside.
    fn set_aside_damaged(&self, damage: &LedgerError) -> Result<Option<String>, LedgerError> {
        let _ = damage;
        Ok(None)
    }
}

/// Sessions of one process share a store.
impl<S: LedgerStore + ?Sized> LedgerStore for Arc<S> {
    fn open(&self) -> Result<Opened, LedgerError> {
        self.as_ref().open()
    }

    fn set_aside_damaged(&self, damage: &LedgerError) -> Result<Option<String>, LedgerError> {
        self.as_ref().set_aside_damaged(damage)
    }
}

/// A ledger that was opened.
pub struct Opened {
    /// The ledger.
    pub ledger: Box<dyn Ledger>,
    /// What the user is to be told of the opening: that a damaged one was put aside.
    pub warning: Option<String>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("warning", &self.warning).finish_non_exhaustive()
    }
}

/// Opens history to read it. What was left in these spools is imported first; the texts say what went wrong with that,
/// and whether the history had to be begun anew.
///
/// # Errors
/// If there is none and none can be made.
pub fn open_to_read<'a>(
    store: &dyn LedgerStore,
    spools: impl IntoIterator<Item = &'a Path>,
) -> Result<(Box<dyn Ledger>, Vec<String>), LedgerError> {
    let Opened { mut ledger, warning } = store.open()?;
    let mut warnings: Vec<String> = warning.into_iter().collect();
    for spool in spools {
        if let Err(error) = import_spool(spool, ledger.as_mut()) {
            warnings.push(format!("what others could not write was not taken in: {error}"));
        }
    }
    Ok((ledger, warnings))
}
