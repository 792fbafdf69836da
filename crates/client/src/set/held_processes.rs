//! Every process of a set, of all generations, so that the set's end finds them all.
//!
//! A start and the close exclude each other: either the start is seen by the close, or it is refused. Between the two
//! there is no moment in which a process exists that the close would miss.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::server::{ProcessHold, Slot};

#[derive(Default)]
pub(crate) struct HeldProcesses {
    /// Held for reading while a process is started, for writing to forbid more.
    closed: RwLock<bool>,
    holds: Mutex<Vec<Arc<ProcessHold>>>,
}

/// The set is closed: nothing is started any more.
#[derive(Debug)]
pub(crate) struct Closed;

impl HeldProcesses {
    fn holds(&self) -> MutexGuard<'_, Vec<Arc<ProcessHold>>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a process and adds it to the list, unless the set is closed.
    pub(crate) fn admit<T, E>(
        &self,
        start: impl FnOnce() -> Result<(T, Arc<ProcessHold>), E>,
    ) -> Result<Result<T, E>, Closed> {
        let closed = self.closed.read().unwrap_or_else(PoisonError::into_inner);
        if *closed {
            return Err(Closed);
        }
        Ok(start().map(|(started, hold)| {
            let mut holds = self.holds();
            holds.retain(|old| !old.is_over());
            holds.push(hold);
            started
        }))
    }

    /// The processes of these servers: one each at most, if their tasks have left any.
    pub(crate) fn of<'a>(&self, slots: impl IntoIterator<Item = &'a Arc<Slot>>) -> Vec<Arc<ProcessHold>> {
        let slots: Vec<_> = slots.into_iter().collect();
        let is_theirs = |hold: &&Arc<ProcessHold>| slots.iter().any(|slot| Arc::ptr_eq(slot, &hold.slot));
        self.holds().iter().filter(is_theirs).cloned().collect()
    }

    /// All that are held.
    pub(crate) fn all(&self) -> Vec<Arc<ProcessHold>> {
        self.holds().clone()
    }

    /// Forbids more, waiting for a start that is under way; then gives all that are held.
    pub(crate) fn close(&self) -> Vec<Arc<ProcessHold>> {
        *self.closed.write().unwrap_or_else(PoisonError::into_inner) = true;
        self.all()
    }
}
