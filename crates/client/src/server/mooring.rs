//! The line by which a set holds one process: pulled by the server's task, cut by the set.
//!
//! Two parties need the process. The task of its server waits for its end, or asks for it and awaits the report. The set,
//! when it is dropped, must end it at once, on whatever thread, with or without a runtime, and whatever the task is
//! waiting for. So the process is owned by neither: it lives in a future, the future lies in a lock, the task only polls
//! it there, and the set takes it out and drops it. Dropping what is [`Held`] ends its tree, synchronously, and leaves
//! the report behind.
//!
//! A task that held the process itself would have to run in order to let go of it, and on a runtime that is gone, or whose
//! one thread is in the set's `drop`, it never runs again.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};

use moored_containment::aio::Contained;
use moored_containment::{EndError, EndReport, Ladder};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::slot::Slot;

/// How an ending came out. An error is not a survivor: it means that nobody could say.
///
/// ```
/// use moored_client::{Event, Outcome};
///
/// fn is_proven(outcome: &Outcome) -> bool {
///     outcome.as_ref().is_ok_and(|report| report.verified && report.survivors.is_empty())
/// }
///
/// fn alarm(event: &Event) -> bool {
///     matches!(event, Event::Ended { outcome, .. } if !is_proven(outcome))
/// }
/// # assert!(!alarm(&Event::Connected { name: "files".to_owned() }));
/// ```
pub type Outcome = Result<EndReport, Arc<EndError>>;

type Keeping = Pin<Box<dyn Future<Output = Result<EndReport, EndError>> + Send>>;

/// Where a process that is cut loose leaves word of its end.
type LastWord = Arc<Mutex<Option<Outcome>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process that is held, until it is over or cut loose.
pub(crate) struct Mooring {
    /// Whose process it is.
    pub(crate) slot: Arc<Slot>,
    line: Mutex<Line>,
    order: Mutex<Option<oneshot::Sender<Ladder>>>,
    cutting: Arc<AtomicBool>,
    last_word: LastWord,
}

#[derive(Default)]
struct Line {
    keeping: Option<Keeping>,
    watcher: Option<Waker>,
}

impl Mooring {
    /// Holds the process, and its place in a limit with it.
    pub(crate) fn new(slot: Arc<Slot>, contained: Contained, room: Option<OwnedSemaphorePermit>) -> Self {
        let (order, ordered) = oneshot::channel();
        let (cutting, last_word) = (Arc::<AtomicBool>::default(), LastWord::default());
        let held = Held { contained, last_word: last_word.clone(), _room: room };
        let keeping: Keeping = Box::pin(keep(held, ordered, cutting.clone()));
        let line = Mutex::new(Line { keeping: Some(keeping), watcher: None });
        Self { slot, line, order: Mutex::new(Some(order)), cutting, last_word }
    }

    /// Asks for its end by that ladder; the first to ask chooses it.
    pub(crate) fn ask_to_end(&self, ladder: Ladder) {
        let order = lock(&self.order).take();
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
        let mut line = lock(&self.line);
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

    /// Asks for the end that a cut is, and does not wait for it.
    fn begin_to_cut(&self) {
        self.cutting.store(true, Relaxed);
        if let Some(keeping) = &mut lock(&self.line).keeping {
            // It sees that before anything that needs a runtime, and does not end by it.
            let _ = keeping.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// Ends it before this returns, without a runtime; `None` if it is over, and somebody else has the report.
    pub(crate) fn cut(&self) -> Option<Outcome> {
        // Under the lock, so that whoever else cuts it waits until it is gone.
        let mut line = lock(&self.line);
        let keeping = line.keeping.take()?;
        drop(keeping);
        if let Some(watcher) = line.watcher.take() {
            watcher.wake();
        }
        lock(&self.last_word).take()
    }

    /// Whether there is nothing left to hold; not while somebody is at it.
    pub(crate) fn is_over(&self) -> bool {
        match self.line.try_lock() {
            Ok(line) => line.keeping.is_none(),
            Err(TryLockError::Poisoned(line)) => line.into_inner().keeping.is_none(),
            Err(TryLockError::WouldBlock) => false,
        }
    }
}

/// A process, and its place in a limit, which is free when the process is gone and no sooner.
struct Held {
    contained: Contained,
    last_word: LastWord,
    _room: Option<OwnedSemaphorePermit>,
}

impl Drop for Held {
    fn drop(&mut self) {
        // It is over if it was not cut; then this is the report that there is already.
        let outcome = self.contained.end_blocking().map_err(Arc::new);
        *lock(&self.last_word) = Some(outcome);
    }
}

async fn keep(
    mut held: Held,
    order: oneshot::Receiver<Ladder>,
    cutting: Arc<AtomicBool>,
) -> Result<EndReport, EndError> {
    let is_cutting = poll_fn(|_| if cutting.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending });
    tokio::select! {
        biased;
        () = is_cutting => {}
        report = until_ended(&mut held.contained, order) => return report,
    }
    held.contained.ask_to_end();
    // The rest is done by whoever drops this.
    std::future::pending().await
}

async fn until_ended(
    contained: &mut Contained,
    order: oneshot::Receiver<Ladder>,
) -> Result<EndReport, EndError> {
    let ladder = tokio::select! {
        report = contained.wait_ended() => return report,
        Ok(ladder) = order => ladder,
    };
    contained.end(ladder).await
}

/// Cuts them all at once: each may take as long as its ladder, and together they take no longer. Gives what was ended.
pub(crate) fn cut_all(moorings: &[Arc<Mooring>]) -> Vec<(Arc<Slot>, Outcome)> {
    let live: Vec<_> = moorings.iter().filter(|mooring| !mooring.is_over()).collect();
    live.iter().for_each(|mooring| mooring.begin_to_cut());
    let cut = |mooring: &Mooring| Some((mooring.slot.clone(), mooring.cut()?));
    let [rest @ .., last] = &live[..] else { return Vec::new() };
    std::thread::scope(|threads| {
        let (mut cutting, mut ended) = (Vec::new(), Vec::new());
        for mooring in rest {
            match std::thread::Builder::new().spawn_scoped(threads, || cut(mooring)) {
                Ok(thread) => cutting.push(thread),
                // No thread is to be had. All of them have been asked already, so that waiting in turn is as quick.
                Err(_) => ended.extend(cut(mooring)),
            }
        }
        ended.extend(cut(last));
        ended.extend(cutting.into_iter().filter_map(|thread| thread.join().ok().flatten()));
        ended
    })
}
