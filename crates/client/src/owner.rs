//! The one task of a server: starts it, watches it, ends it. Nobody else does.
//!
//! It walks the arrows of `life`, one after the other, so that there is never more than one process of a server. What it
//! holds of the process is the mooring, which the set can cut under its hands.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::DropGuard;

use crate::event::Event;
use crate::launch::{ConnectError, Launched, Room, launch, rooms};
use crate::life::{EndedWhy, Lives, Next, Over};
use crate::mooring::Outcome;
use crate::options::Shared;
use crate::slot::{Connection, Live, Order, Phase, Slot};
use crate::spec::{ServerSpec, Start};

pub(crate) struct Owner {
    slot: Arc<Slot>,
    shared: Arc<Shared>,
    lives: Lives,
    /// What the set has got it for its first start.
    room: Option<Result<Room, ConnectError>>,
    finished: Finished,
}

/// What is left to say when a server has ended for good.
#[derive(Default)]
pub(crate) struct Finished {
    /// How its last process ended; `None` if there was none, or it was cut.
    pub(crate) outcome: Option<Outcome>,
    /// What was wrong the last time.
    pub(crate) failure: Option<Arc<ConnectError>>,
}

/// Why a connection no longer serves.
enum Stopped {
    Gone(Option<Outcome>),
    Silent,
    Idle,
    Ordered(Order),
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

    fn spec(&self) -> &ServerSpec {
        &self.slot.spec
    }

    fn name(&self) -> String {
        self.spec().name().to_owned()
    }

    /// Until the set orders something, or closes.
    async fn ordered(&self) -> Order {
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

    // === one life ===

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
                self.slot.enter(Phase::Down { until: Instant::now() + delay, cause });
            }
            Next::Finish(why) => self.slot.finish(why),
        }
        drop(calls);
        next
    }

    async fn one_life(&mut self) -> (Over, Duration, Option<DropGuard>) {
        let (launched, live) = match self.come_up().await {
            Ok(up) => up,
            Err(over) => return (over, Duration::ZERO, None),
        };
        let calls = live.over.clone().drop_guard();
        self.lives.up();
        // Told first, so that whoever waits for the server and then listens hears nothing old.
        self.shared.bus.tell(&Event::Connected { name: self.name() });
        self.slot.up(live);
        let since = Instant::now();
        let stopped = self.serve(&launched).await;
        let uptime = since.elapsed();
        let (over, calls) = self.wind_up(&launched, stopped, calls).await;
        (over, uptime, calls)
    }

    /// From nothing to a connection; what fails is ended before this returns.
    async fn come_up(&mut self) -> Result<(Launched, Live), Over> {
        let (slot, shared) = (self.slot.clone(), self.shared.clone());
        let room = match self.room.take() {
            Some(room) => room,
            None => self.unless_stopped(rooms(&shared, 1)).await,
        };
        let error = match room {
            Err(error) => error,
            Ok(room) => {
                // Held until it is up: so many start at a time.
                let _turn = shared.starts.acquire().await;
                match launch(&slot.spec, &shared, room) {
                    Err(error) => error,
                    Ok(mut launched) => match self.shake_hands(&mut launched).await {
                        Ok(connection) => return Ok((launched, Live::new(connection))),
                        Err(error) => {
                            let (outcome, error) = launched.end_failed(&slot.spec, error).await;
                            self.tell_ended(outcome);
                            error
                        }
                    },
                }
            }
        };
        let is_closed = matches!(error, ConnectError::Closed);
        let error = Arc::new(error);
        self.finished.failure = Some(error.clone());
        shared.bus.tell(&Event::Failed { name: self.name(), error });
        let why = || slot.why_stopped().unwrap_or_else(|| shared.why_closed());
        Err(if is_closed { Over::Stopped(why()) } else { Over::NeverUp })
    }

    async fn shake_hands(&self, launched: &mut Launched) -> Result<Connection, ConnectError> {
        self.unless_stopped(launched.handshake(self.spec(), &self.shared)).await
    }

    /// A server that is no longer wanted need not come up first.
    async fn unless_stopped<T>(
        &self,
        step: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, ConnectError> {
        tokio::select! {
            biased;
            done = step => done,
            () = self.slot.until(|desk| matches!(desk.order, Some(Order::Stop { .. }))) => {
                Err(ConnectError::Closed)
            }
        }
    }

    /// Until there is a reason to end it.
    async fn serve(&self, launched: &Launched) -> Stopped {
        tokio::select! {
            biased;
            outcome = launched.mooring.ended() => Stopped::Gone(outcome),
            () = launched.wire_closed.cancelled() => Stopped::Silent,
            order = self.ordered() => Stopped::Ordered(order),
            () = self.idle() => Stopped::Idle,
        }
    }

    /// Until nobody has used it for as long as its spec says. It sleeps then.
    async fn idle(&self) {
        let Some(idle) = self.spec().idle else { return std::future::pending().await };
        loop {
            let (is_used, since) = self.slot.look(|desk| (desk.in_flight > 0, desk.last_used));
            if is_used {
                self.slot.until(|desk| desk.in_flight == 0).await;
                continue;
            }
            sleep_until(since + idle).await;
            if self.slot.fall_asleep(idle) {
                return;
            }
        }
    }

    /// Ends the process, if it is still there, as the reason demands. Calls that are cut off are told first.
    async fn wind_up(
        &mut self,
        launched: &Launched,
        stopped: Stopped,
        calls: DropGuard,
    ) -> (Over, Option<DropGuard>) {
        let ladder = self.spec().ladder;
        let (over, outcome, calls) = match stopped {
            // Only the set's end cuts.
            Stopped::Gone(None) => (Over::Stopped(self.shared.why_closed()), None, Some(calls)),
            Stopped::Gone(outcome) => {
                launched.read_out().await;
                let outcome = launched.end(ladder).await.or(outcome);
                (Over::Exited, outcome, Some(calls))
            }
            Stopped::Silent => (Over::Exited, launched.end_silent(ladder).await, Some(calls)),
            Stopped::Idle => (Over::Idle, launched.end(ladder).await, Some(calls)),
            Stopped::Ordered(order) => {
                let over = self.drain(launched, order).await;
                drop(calls);
                (over, launched.end(ladder).await, None)
            }
        };
        if over == Over::Exited {
            let status = outcome.as_ref().and_then(|o| o.as_ref().ok()).and_then(|report| report.status);
            self.finished.failure = Some(Arc::new(ConnectError::Exited { status }));
        }
        self.tell_ended(outcome);
        (over, calls)
    }

    /// Takes no more calls, and waits for those in flight, up to the bound.
    async fn drain(&self, launched: &Launched, order: Order) -> Over {
        let (phase, bound, over) = match order {
            Order::Stop { why, drain } => (Phase::Ending(why), drain, Over::Stopped(why)),
            Order::Recycle => (Phase::Starting, self.shared.drain, Over::Recycled),
        };
        self.slot.enter(phase);
        let quiet = async {
            tokio::select! {
                () = self.slot.until(|desk| desk.in_flight == 0) => {}
                () = launched.wire_closed.cancelled() => {}
                () = self.shared.closing.cancelled() => {}
            }
        };
        // What is not done by then is cut off.
        let _ = timeout(bound, quiet).await;
        over
    }

    fn tell_ended(&mut self, outcome: Option<Outcome>) {
        if let Some(outcome) = &outcome {
            self.shared.bus.tell(&Event::Ended { name: self.name(), outcome: outcome.clone() });
        }
        self.finished.outcome = outcome;
    }
}

fn after_order(order: Order) -> Next {
    match order {
        Order::Stop { why, .. } => Next::Finish(why),
        Order::Recycle => Next::StartNow,
    }
}

/// A task that is dropped with its runtime serves nobody any more, and its handles shall know. The process is the set's.
impl Drop for Owner {
    fn drop(&mut self) {
        self.slot.finish(EndedWhy::Dropped);
    }
}
