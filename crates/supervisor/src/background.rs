//! Work that must not delay its caller (history, logs): done by a thread that exists only while there is work.
//!
//! ```text
//!        push               takes a batch            queue empty
//! idle ───────▶ working ─────────────────▶ working ─────────────▶ idle (no thread, no memory, no waking)
//! ```
//!
//! What is pushed stays in the queue until the worker has said that it is done, so a caller whose timeout is over still gets
//! what is not done. The lock is not taken while work is done, so pushing does not wait.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Does the work, on the background thread.
pub(crate) trait Worker: Send + 'static {
    /// One piece of it.
    type Item: Clone + std::fmt::Debug + Send + 'static;

    /// Does it. With [`Done::No`] the batch stays in the queue, and is tried again with what comes next.
    fn work(&mut self, batch: &[Self::Item]) -> Done;

    /// The queue is empty, or cannot be worked off now: closes files and databases that `work` opened.
    fn rest(&mut self) {}
}

/// Whether a batch is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Yes,
    No,
}

/// Work that is done in the background.
#[derive(Debug)]
pub(crate) struct Background<W: Worker> {
    shared: Arc<Shared<W>>,
}

#[derive(Debug)]
struct Shared<W: Worker> {
    state: Mutex<State<W>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<W: Worker> {
    queue: VecDeque<W::Item>,
    /// None while a thread has it.
    worker: Option<W>,
    /// Pushed since the worker last took a batch.
    fresh: bool,
}

impl<W: Worker> Background<W> {
    pub(crate) fn new(worker: W) -> Self {
        let state = State { queue: VecDeque::new(), worker: Some(worker), fresh: false };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }) }
    }

    /// Adds a piece, if `fits` says so of what is in the queue already.
    pub(crate) fn push(&self, item: W::Item, fits: impl FnOnce(&VecDeque<W::Item>) -> bool) -> bool {
        let mut state = self.shared.lock();
        if !fits(&state.queue) {
            return false;
        }
        state.queue.push_back(item);
        state.fresh = true;
        self.start(&mut state);
        true
    }

    /// Waits until the queue is empty, the worker has failed once more, or the timeout is over. Returns what is not done.
    pub(crate) fn drain(&self, timeout: Duration) -> Vec<W::Item> {
        let deadline = Instant::now() + timeout;
        let mut state = self.shared.lock();
        if !state.queue.is_empty() {
            // A batch that failed before is tried once more.
            state.fresh = true;
            self.start(&mut state);
        }
        while state.worker.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.queue.iter().cloned().collect()
    }

    /// Starts the thread unless there is one. Where none can be had, the work waits for the next push.
    fn start(&self, state: &mut State<W>) {
        let Some(worker) = state.worker.take() else { return };
        // The worker waits in a place of its own, so that it is not lost with a thread that cannot be started.
        let waiting = Arc::new(Mutex::new(Some(worker)));
        let (shared, handed) = (Arc::clone(&self.shared), Arc::clone(&waiting));
        let body = move || {
            let worker = handed.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(worker) = worker {
                shared.run(worker);
            }
        };
        if thread::Builder::new().name("background".into()).stack_size(STACK).spawn(body).is_err() {
            state.worker = waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }
}

/// SQLite asks for less than a quarter of this; only what is touched costs memory.
const STACK: usize = 512 << 10;

impl<W: Worker> Shared<W> {
    fn lock(&self) -> MutexGuard<'_, State<W>> {
        // No code panics under this lock: it only moves values.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut worker: W) {
        loop {
            let batch: Vec<W::Item> = {
                let mut state = self.lock();
                state.fresh = false;
                state.queue.iter().cloned().collect()
            };
            let done = if batch.is_empty() { Done::Yes } else { worker.work(&batch) };
            let mut state = self.lock();
            if done == Done::Yes {
                state.queue.drain(..batch.len());
            }
            if state.fresh {
                continue;
            }
            // Closing a database may take long, and more may be pushed meanwhile.
            drop(state);
            worker.rest();
            let mut state = self.lock();
            if !state.fresh {
                state.queue.shrink_to_fit();
                state.worker = Some(worker);
                self.changed.notify_all();
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use moored_testkit::wait_until;

    use super::*;

    /// Does a batch when it is told to, as it is told to.
    struct Told {
        orders: Receiver<Done>,
        batches: Sender<Vec<u32>>,
        rests: Sender<()>,
    }

    impl Worker for Told {
        type Item = u32;

        fn work(&mut self, batch: &[u32]) -> Done {
            self.batches.send(batch.to_vec()).expect("a reader");
            self.orders.recv().expect("an order")
        }

        fn rest(&mut self) {
            self.rests.send(()).expect("a reader");
        }
    }

    type Test = (Background<Told>, Sender<Done>, Receiver<Vec<u32>>, Receiver<()>);

    fn told() -> Test {
        let (give, orders) = channel();
        let (batches, seen) = channel();
        let (rests, rested) = channel();
        (Background::new(Told { orders, batches, rests }), give, seen, rested)
    }

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn what_comes_while_it_works_is_the_next_batch_and_then_it_rests() {
        let (background, orders, batches, rests) = told();
        assert!(background.push(1, |_| true));
        assert_eq!(batches.recv_timeout(LONG), Ok(vec![1]));
        background.push(2, |_| true);
        background.push(3, |_| true);
        orders.send(Done::Yes).expect("a worker");
        assert_eq!(batches.recv_timeout(LONG), Ok(vec![2, 3]));
        assert!(rests.try_recv().is_err(), "it rests only when there is nothing to do");
        orders.send(Done::Yes).expect("a worker");
        assert_eq!(rests.recv_timeout(LONG), Ok(()));
        assert!(background.drain(LONG).is_empty());
    }

    #[test]
    fn a_worker_that_hangs_costs_no_more_than_the_timeout_and_what_is_not_done_is_returned() {
        let (background, orders, batches, _rests) = told();
        background.push(1, |_| true);
        assert_eq!(batches.recv_timeout(LONG), Ok(vec![1]));
        background.push(2, |_| true);
        assert_eq!(background.drain(Duration::ZERO), [1, 2]);
        orders.send(Done::Yes).expect("a worker");
        orders.send(Done::Yes).expect("a worker");
        assert_eq!(batches.recv_timeout(LONG), Ok(vec![2]));
        assert!(background.drain(LONG).is_empty());
    }

    #[test]
    fn what_fails_is_tried_again_with_what_comes_next_and_at_the_end_but_not_in_a_loop() {
        let (background, orders, batches, rests) = told();
        background.push(1, |_| true);
        orders.send(Done::No).expect("a worker");
        assert_eq!(batches.recv_timeout(LONG), Ok(vec![1]));
        assert_eq!(rests.recv_timeout(LONG), Ok(()));
        wait_until("the thread has ended", LONG, || background.shared.lock().worker.is_some().then_some(()));
        assert!(batches.try_recv().is_err());
        background.push(2, |_| true);
        orders.send(Done::No).expect("a worker");
        assert_eq!(batches.recv_timeout(LONG), Ok(vec![1, 2]));
        wait_until("the thread has ended", LONG, || background.shared.lock().worker.is_some().then_some(()));
        orders.send(Done::No).expect("a worker");
        assert_eq!(background.drain(LONG), [1, 2]);
        assert_eq!(batches.recv_timeout(LONG), Ok(vec![1, 2]));
    }

    #[test]
    fn what_does_not_fit_is_not_taken() {
        let (background, orders, batches, _rests) = told();
        background.push(1, |_| true);
        assert_eq!(batches.recv_timeout(LONG), Ok(vec![1]));
        assert!(!background.push(2, |queue| queue.is_empty()));
        orders.send(Done::Yes).expect("a worker");
        assert!(background.drain(LONG).is_empty());
    }
}
