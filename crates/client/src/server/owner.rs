//! The one task of a server: starts it, watches it, ends it. Nobody else does.
//!
//! It walks the arrows of `life`, one after the other, so that there is never more than one process of a server. What it
//! holds of the process is the mooring, which the set can cut under its hands. This file has what is between two lives; one
//! life from start to end is in `one_life`.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::launch::{ConnectError, Room};
use super::life::{Lives, Next};
use super::mooring::Outcome;
use super::slot::{Order, Phase, Slot};
use crate::event::Event;
use crate::set::Shared;
use crate::spec::{ServerSpec, Start};

pub(crate) struct Owner {
    pub(super) slot: Arc<Slot>,
    pub(super) shared: Arc<Shared>,
    pub(super) lives: Lives,
    /// What the set has got it for its first start.
    pub(super) room: Option<Result<Room, ConnectError>>,
    pub(super) finished: Finished,
}

/// What is left to say when a server has ended for good.
#[derive(Default)]
pub(crate) struct Finished {
    /// How its last process ended; `None` if there was none, or it was cut.
    pub(crate) outcome: Option<Outcome>,
    /// What was wrong the last time.
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
            () = self.slot.until(|desk| desk.order.is_some()) => {
                self.slot.take_order().unwrap_or(Order::Recycle)
            }
        }
    }

    // === between two lives ===

    async fn sleep(&mut self) -> Next {
        // What ends from here on has no process.
        self.finished.outcome = None;
        tokio::select! {
            order = self.ordered() => after_order(order),
            () = self.slot.until(|desk| desk.wanted) => Next::StartNow,
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

/// A task that is dropped with its runtime serves nobody any more, and its handles shall know; the process is the set's.
/// One that panics, because the host's own handler did, leaves no process that nobody would look after.
impl Drop for Owner {
    fn drop(&mut self) {
        self.slot.finish(self.shared.why_closed());
        if std::thread::panicking() {
            self.shared.cut_now(&self.shared.registry.of([&self.slot]));
        }
    }
}
