//! Every process that a set holds, of whatever generation, so that the set's end finds them all.
//!
//! A start and the close exclude each other: either the start is seen by the close, or it is refused. Between the two
//! there is no moment in which a process exists that nobody would end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::server::{Mooring, Slot};

#[derive(Default)]
pub(crate) struct Registry {
    /// Held for reading while a process is started, for writing to forbid more.
    closed: RwLock<bool>,
    moorings: Mutex<Vec<Arc<Mooring>>>,
}

/// No more is started here.
#[derive(Debug)]
pub(crate) struct Closed;

impl Registry {
    fn moorings(&self) -> MutexGuard<'_, Vec<Arc<Mooring>>> {
        self.moorings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a process and puts it down, unless the set is closed.
    pub(crate) fn admit<T, E>(
        &self,
        start: impl FnOnce() -> Result<(T, Arc<Mooring>), E>,
    ) -> Result<Result<T, E>, Closed> {
        let closed = self.closed.read().unwrap_or_else(PoisonError::into_inner);
        if *closed {
            return Err(Closed);
        }
        Ok(start().map(|(started, mooring)| {
            let mut moorings = self.moorings();
            moorings.retain(|old| !old.is_over());
            moorings.push(mooring);
            started
        }))
    }

    /// The processes of these servers: one each at most, if their tasks have left any.
    pub(crate) fn of<'a>(&self, slots: impl IntoIterator<Item = &'a Arc<Slot>>) -> Vec<Arc<Mooring>> {
        let slots: Vec<_> = slots.into_iter().collect();
        let is_theirs = |mooring: &&Arc<Mooring>| slots.iter().any(|slot| Arc::ptr_eq(slot, &mooring.slot));
        self.moorings().iter().filter(is_theirs).cloned().collect()
    }

    /// All that are held.
    pub(crate) fn all(&self) -> Vec<Arc<Mooring>> {
        self.moorings().clone()
    }

    /// Forbids more, waiting for a start that is under way; then gives all that are held.
    pub(crate) fn close(&self) -> Vec<Arc<Mooring>> {
        *self.closed.write().unwrap_or_else(PoisonError::into_inner) = true;
        self.all()
    }
}
