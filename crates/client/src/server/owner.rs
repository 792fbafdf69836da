//! The one task of a server: the only code that starts it, watches it and asks for its end.
//!
//! It walks the arrows of `life`, one after the other, so that there is never more than one process of a server. It does
//! not own the process: it waits on a `ProcessHold`, through which the set can end the process at any moment. This file
//! has what is between two lives; one life from start to end is in `one_life`.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::launch::{ConnectError, Room};
use super::life::{Lives, Next};
use super::process_hold::Outcome;
use super::slot::{Order, Phase, Slot};
use crate::event::Event;
use crate::set::Shared;
use crate::spec::{ServerSpec, Start};

pub(crate) struct Owner {
    pub(super) slot: Arc<Slot>,
    pub(super) shared: Arc<Shared>,
    pub(super) lives: Lives,
    /// The place under the limit that the set took for the first start, or why it got none.
    pub(super) room: Option<Result<Room, ConnectError>>,
    pub(super) finished: Finished,
}

/// What the task returns when its server has ended for good.
#[derive(Default)]
pub(crate) struct Finished {
    /// How its last process ended; `None` if there was none, or the set ended it without the task.
    pub(crate) outcome: Option<Outcome>,
    /// The last failure to connect.
    pub(crate) failure: Option<Arc<ConnectError>>,
}

impl Owner {
    pub(crate) fn new(
        slot: Arc<Slot>,
        shared: Arc<Shared>,
        room: Option<Result<Room, ConnectError>>,
    ) -> Self {
        let lives = Lives::new(slot.spec.start, slot.spec.restart.clone());
        Self { slot, shared, lives, room, finished: Finished::default() }
    }

    /// The server's whole life.
    pub(crate) async fn run(mut self) -> Finished {
        let mut next = match self.spec().start {
            Start::AtOnce => Next::StartNow,
            Start::AtFirstCall => Next::Sleep,
        };
        loop {
            next = match next {
                Next::StartNow => self.live().await,
                Next::Sleep => self.sleep().await,
                Next::Wait(delay) => self.wait(delay).await,
                Next::Finish(why) => {
                    self.slot.finish(why);
                    return std::mem::take(&mut self.finished);
                }
            };
        }
    }

    pub(super) fn spec(&self) -> &ServerSpec {
        &self.slot.spec
    }

    pub(super) fn name(&self) -> String {
        self.spec().name().to_owned()
    }

    /// Until the set orders something, or closes.
    pub(super) async fn ordered(&self) -> Order {
        tokio::select! {
            biased;
            () = self.shared.closing.cancelled() => {
                Order::Stop { why: self.shared.why_closed(), drain: Duration::ZERO }
            }
            () = self.slot.until(|state| state.order.is_some()) => {
                self.slot.take_order().unwrap_or(Order::Recycle)
            }
        }
    }

    // === between two lives ===

    async fn sleep(&mut self) -> Next {
        // There is no process from here on.
        self.finished.outcome = None;
        tokio::select! {
            order = self.ordered() => after_order(order),
            () = self.slot.until(|state| state.wanted) => Next::StartNow,
        }
    }

    async fn wait(&mut self, delay: Duration) -> Next {
        self.finished.outcome = None;
        self.shared.bus.tell(&Event::Waiting { name: self.name(), retry_in: delay });
        tokio::select! {
            order = self.ordered() => after_order(order),
            () = tokio::time::sleep(delay) => match self.spec().start {
                Start::AtOnce => Next::StartNow,
                Start::AtFirstCall => {
                    self.slot.enter(Phase::Asleep);
                    Next::Sleep
                }
            },
        }
    }

    /// One life, and what comes after it. Handles see that before their calls are told.
    async fn live(&mut self) -> Next {
        self.slot.enter(Phase::Starting);
        let (over, uptime, calls) = self.one_life().await;
        let next = self.lives.next(over, uptime);
        match next {
            Next::StartNow => self.slot.enter(Phase::Starting),
            Next::Sleep => self.slot.enter(Phase::Asleep),
            Next::Wait(delay) => {
                let cause = self.finished.failure.clone();
                let cause = cause.unwrap_or_else(|| Arc::new(ConnectError::Exited { status: None }));
                // A wait that the clock cannot hold does not end.
                let until = Instant::now().checked_add(delay);
                self.slot.enter(Phase::Down { until, cause });
            }
            Next::Finish(why) => self.slot.finish(why),
        }
        drop(calls);
        next
    }
}

fn after_order(order: Order) -> Next {
    match order {
        Order::Stop { why, .. } => Next::Finish(why),
        Order::Recycle => Next::StartNow,
    }
}

/// A task that is dropped with its runtime tells its handles that the server has ended; the set ends the process. A task
/// that panics, because the host's own handler did, ends the process here, since no task watches it from now on.
impl Drop for Owner {
    fn drop(&mut self) {
        self.slot.finish(self.shared.why_closed());
        if std::thread::panicking() {
            self.shared.end_processes_blocking(&self.shared.processes.of([&self.slot]));
        }
    }
}
