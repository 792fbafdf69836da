//! Holds one process so that two parties can end it: the server's task by awaiting, the set by dropping.
//!
//! The task of a server waits for the process to end, or asks for the end and awaits the report. The set, when it is
//! dropped, must end the process at once: on any thread, with or without a runtime, and without waiting for the task. So
//! neither of them owns the process. It lives in a future, and the future lies in a lock ([`ProcessHold`]). The task polls
//! the future there; the set takes it out and drops it. Dropping the [`OwnedProcess`] inside ends its process tree
//! synchronously and leaves the report behind.
//!
//! A task that owned the process would have to run in order to let go of it, and it never runs again on a runtime that is
//! gone, or whose only thread is in the set's `drop`.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};

use moored_containment::aio::Contained;
use moored_containment::{EndError, EndReport, Ladder};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::registration::ServerRegistration;
use super::slot::Slot;

/// How an ending came out. An error does not mean survivors: it means that no report could be had.
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

type HoldFuture = Pin<Box<dyn Future<Output = Result<EndReport, EndError>> + Send>>;

/// Where a process that is ended by dropping leaves its report.
type FinalReport = Arc<Mutex<Option<Outcome>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process, until it has ended or was ended by [`ProcessHold::end_blocking`].
pub(crate) struct ProcessHold {
    /// Whose process it is.
    pub(crate) slot: Arc<Slot>,
    state: Mutex<HoldState>,
    order: Mutex<Option<oneshot::Sender<Ladder>>>,
    ends_blocking: Arc<AtomicBool>,
    final_report: FinalReport,
}

#[derive(Default)]
struct HoldState {
    future: Option<HoldFuture>,
    /// The task that polled last.
    waker: Option<Waker>,
}

impl ProcessHold {
    /// Holds the process, and with it its place under a limit and its registration.
    pub(crate) fn new(
        slot: Arc<Slot>,
        contained: Contained,
        room: Option<OwnedSemaphorePermit>,
        registration: Option<ServerRegistration>,
    ) -> Self {
        let (order, ordered) = oneshot::channel();
        let (ends_blocking, final_report) = (Arc::<AtomicBool>::default(), FinalReport::default());
        let process =
            OwnedProcess { contained, final_report: final_report.clone(), registration, _room: room };
        let future: HoldFuture = Box::pin(hold(process, ordered, ends_blocking.clone()));
        let state = Mutex::new(HoldState { future: Some(future), waker: None });
        Self { slot, state, order: Mutex::new(Some(order)), ends_blocking, final_report }
    }

    /// Asks for its end by that ladder; the first to ask chooses it.
    pub(crate) fn ask_to_end(&self, ladder: Ladder) {
        let order = lock(&self.order).take();
        if let Some(order) = order {
            // It may be over already.
            let _ = order.send(ladder);
        }
    }

    /// Waits until it has ended; `None` if `end_blocking` ended it, or the report was taken before. For one waiter at a time.
    pub(crate) async fn ended(&self) -> Option<Outcome> {
        poll_fn(|cx| self.poll_ended(cx)).await
    }

    fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<Option<Outcome>> {
        let mut state = lock(&self.state);
        let Some(future) = &mut state.future else { return Poll::Ready(None) };
        match future.as_mut().poll(cx) {
            Poll::Ready(outcome) => {
                state.future = None;
                Poll::Ready(Some(outcome.map_err(Arc::new)))
            }
            Poll::Pending => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Asks the guardians for the end that `end_blocking` waits for, and does not wait.
    fn begin_blocking_end(&self) {
        self.ends_blocking.store(true, Relaxed);
        if let Some(future) = &mut lock(&self.state).future {
            // `hold` sees the flag before it touches anything that needs a runtime, and stays pending.
            let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// Ends it before this returns, without a runtime; `None` if it had ended, and the report was taken before.
    pub(crate) fn end_blocking(&self) -> Option<Outcome> {
        // Under the lock, so that another caller of this function returns only when the process is gone too.
        let mut state = lock(&self.state);
        let future = state.future.take()?;
        drop(future);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        lock(&self.final_report).take()
    }

    /// Whether the process has ended. False while another thread polls or ends it.
    pub(crate) fn is_over(&self) -> bool {
        match self.state.try_lock() {
            Ok(state) => state.future.is_none(),
            Err(TryLockError::Poisoned(state)) => state.into_inner().future.is_none(),
            Err(TryLockError::WouldBlock) => false,
        }
    }
}

/// A process, its registration, and its place under a limit, which is given back when the process is gone and no sooner.
struct OwnedProcess {
    contained: Contained,
    final_report: FinalReport,
    registration: Option<ServerRegistration>,
    _room: Option<OwnedSemaphorePermit>,
}

impl Drop for OwnedProcess {
    fn drop(&mut self) {
        // After an ordinary end this returns at once with the report that exists already.
        let outcome = self.contained.end_blocking().map_err(Arc::new);
        if let Some(registration) = self.registration.take() {
            registration.remove(&outcome);
        }
        *lock(&self.final_report) = Some(outcome);
    }
}

async fn hold(
    mut process: OwnedProcess,
    order: oneshot::Receiver<Ladder>,
    ends_blocking: Arc<AtomicBool>,
) -> Result<EndReport, EndError> {
    let blocking_end = poll_fn(|_| if ends_blocking.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending });
    tokio::select! {
        biased;
        () = blocking_end => {}
        report = until_ended(&mut process.contained, order) => return report,
    }
    process.contained.ask_to_end();
    // `end_blocking` drops this future, which waits for the end.
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

/// Ends them all at once: each may take as long as its ladder, and together they take no longer. Returns what was ended here.
pub(crate) fn end_all_blocking(holds: &[Arc<ProcessHold>]) -> Vec<(Arc<Slot>, Outcome)> {
    let live: Vec<_> = holds.iter().filter(|hold| !hold.is_over()).collect();
    live.iter().for_each(|hold| hold.begin_blocking_end());
    let end = |hold: &ProcessHold| Some((hold.slot.clone(), hold.end_blocking()?));
    let [rest @ .., last] = &live[..] else { return Vec::new() };
    std::thread::scope(|threads| {
        let (mut ending, mut ended) = (Vec::new(), Vec::new());
        for hold in rest {
            match std::thread::Builder::new().spawn_scoped(threads, || end(hold)) {
                Ok(thread) => ending.push(thread),
                // No thread could be started. All guardians have been asked already, so waiting in turn is as quick.
                Err(_) => ended.extend(end(hold)),
            }
        }
        ended.extend(end(last));
        ended.extend(ending.into_iter().filter_map(|thread| thread.join().ok().flatten()));
        ended
    })
}
