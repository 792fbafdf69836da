//! Every process that a set holds, of whatever generation, so that the set's end finds them all.
//!
//! A start and the close exclude each other: either the start is seen by the close, or it is refused. Between the two
//! there is no moment in which a process exists that nobody would end.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::mooring::Mooring;

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
            let mut moorings = self.moorings.lock().unwrap_or_else(PoisonError::into_inner);
            moorings.retain(|old| !old.is_over());
            moorings.push(mooring);
            started
        }))
    }

    /// Forbids more, waiting for a start that is under way; then gives all that are held.
    pub(crate) fn close(&self) -> Vec<Arc<Mooring>> {
        *self.closed.write().unwrap_or_else(PoisonError::into_inner) = true;
        self.moorings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
