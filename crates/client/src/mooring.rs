//! The line by which a set holds one process: pulled by the server's task, cut by the set.
//!
//! Two parties need the process. The task of its server waits for its end, or asks for it and awaits the report. The set,
//! when it is dropped, must end it at once, on whatever thread, with or without a runtime, and whatever the task is
//! waiting for. So the process is owned by neither: it lives in a future, the future lies in a lock, the task only polls
//! it there, and the set takes it out and drops it. Dropping a [`Contained`] ends its tree, synchronously.
//!
//! A task that held the process itself would have to run in order to let go of it, and on a runtime that is gone, or whose
//! one thread is in the set's `drop`, it never runs again.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use moored_containment::aio::Contained;
use moored_containment::{EndError, EndReport, Ladder};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// How an ending came out. An error is not a survivor: it means that nobody could say.
pub type Outcome = Result<EndReport, Arc<EndError>>;

type Keeping = Pin<Box<dyn Future<Output = Result<EndReport, EndError>> + Send>>;

/// A process that is held, until it is over or cut loose.
pub(crate) struct Mooring {
    line: Mutex<Line>,
    order: Mutex<Option<oneshot::Sender<Ladder>>>,
}

#[derive(Default)]
struct Line {
    keeping: Option<Keeping>,
    watcher: Option<Waker>,
}

impl Mooring {
    /// Holds the process, and its place in a limit with it.
    pub(crate) fn new(contained: Contained, room: Option<OwnedSemaphorePermit>) -> Self {
        let (order, ordered) = oneshot::channel();
        let keeping: Keeping = Box::pin(keep(contained, ordered, room));
        let line = Line { keeping: Some(keeping), watcher: None };
        Self { line: Mutex::new(line), order: Mutex::new(Some(order)) }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for its end by that ladder; the first to ask chooses it.
    pub(crate) fn ask_to_end(&self, ladder: Ladder) {
        let order = self.order.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(order) = order {
            // It may be over already.
            let _ = order.send(ladder);
        }
    }

    /// Waits until it is over; `None` if it was cut, or somebody has had the report. For one waiter at a time.
    pub(crate) async fn ended(&self) -> Option<Outcome> {
        poll_fn(|cx| self.poll_ended(cx)).await
    }

    fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<Option<Outcome>> {
        let mut line = self.line();
        let Some(keeping) = &mut line.keeping else { return Poll::Ready(None) };
        match keeping.as_mut().poll(cx) {
            Poll::Ready(outcome) => {
                line.keeping = None;
                Poll::Ready(Some(outcome.map_err(Arc::new)))
            }
            Poll::Pending => {
                line.watcher = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Ends it before this returns, without a runtime and without a report.
    pub(crate) fn cut(&self) {
        let Line { keeping, watcher } = std::mem::take(&mut *self.line());
        drop(keeping);
        if let Some(watcher) = watcher {
            watcher.wake();
        }
    }

    /// Whether there is nothing left to hold.
    pub(crate) fn is_over(&self) -> bool {
        self.line().keeping.is_none()
    }
}

async fn keep(
    mut contained: Contained,
    order: oneshot::Receiver<Ladder>,
    _room: Option<OwnedSemaphorePermit>,
) -> Result<EndReport, EndError> {
    let ladder = tokio::select! {
        report = contained.wait_ended() => return report,
        Ok(ladder) = order => ladder,
    };
    contained.end(ladder).await
}

/// Cuts them all at once: each may take as long as its ladder, and together they take no longer.
pub(crate) fn cut_all(moorings: &[Arc<Mooring>]) {
    let live: Vec<_> = moorings.iter().filter(|mooring| !mooring.is_over()).collect();
    let [rest @ .., last] = &live[..] else { return };
    std::thread::scope(|threads| {
        for mooring in rest {
            let cutting = std::thread::Builder::new().spawn_scoped(threads, || mooring.cut());
            if cutting.is_err() {
                // No thread is to be had: one after the other, then.
                mooring.cut();
            }
        }
        last.cut();
    });
}
