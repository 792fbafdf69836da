//! One life of a server: from nothing to a connection, as long as it serves, and to its end.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::DropGuard;

use super::launch::{ConnectError, Launched, launch, rooms};
use super::life::Over;
use super::owner::Owner;
use super::process_hold::Outcome;
use super::slot::{Connection, Live, Order, Phase};
use crate::event::Event;

/// Why a connection no longer serves.
enum Stopped {
    Gone(Option<Outcome>),
    Silent,
    Deaf,
    Idle,
    Ordered(Order),
}

impl Owner {
    /// From its start to its end: how it was over, how long it was up, and the calls that are still to be told.
    pub(super) async fn one_life(&mut self) -> (Over, Duration, Option<DropGuard>) {
        let (launched, live) = match self.come_up().await {
            Ok(up) => up,
            Err(over) => return (over, Duration::ZERO, None),
        };
        let calls = live.over.clone().drop_guard();
        self.lives.up();
        // Sent first: a host that waits for the server and subscribes then does not get an event from before.
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
        let error = match self.connect().await {
            Ok((launched, connection)) => return Ok((launched, Live::new(connection))),
            Err(error) => Arc::new(error),
        };
        self.finished.failure = Some(error.clone());
        self.shared.bus.tell(&Event::Failed { name: self.name(), error: error.clone() });
        let why = || self.slot.why_stopped().unwrap_or_else(|| self.shared.why_closed());
        Err(if matches!(*error, ConnectError::Closed) { Over::Stopped(why()) } else { Over::NeverUp })
    }

    async fn connect(&mut self) -> Result<(Launched, Connection), ConnectError> {
        let (slot, shared) = (self.slot.clone(), self.shared.clone());
        let room = match self.room.take() {
            Some(room) => room?,
            None => self.unless_stopped(rooms(&shared, 1)).await?,
        };
        // Held until it is up: it limits how many servers start at a time.
        let _turn = self.unless_stopped(async { Ok(shared.starts.acquire().await) }).await?;
        // The host's own code may panic: before there is a process, then.
        let handler = (shared.handler)(slot.spec.name());
        let mut launched = launch(&slot, &shared, room)?;
        let handshake = launched.handshake(&slot.spec, handler, shared.lifecycle.clone());
        match self.unless_stopped(handshake).await {
            Ok(connection) => Ok((launched, connection)),
            Err(error) => {
                let (outcome, error) = launched.end_failed(&slot.spec, error).await;
                self.tell_ended(outcome);
                Err(error)
            }
        }
    }

    /// A server that is no longer wanted need not come up first.
    async fn unless_stopped<T>(
        &self,
        step: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, ConnectError> {
        tokio::select! {
            biased;
            () = self.shared.closing.cancelled() => Err(ConnectError::Closed),
            () = self.slot.until(|state| matches!(state.order, Some(Order::Stop { .. }))) => {
                Err(ConnectError::Closed)
            }
            done = step => done,
        }
    }

    /// Until there is a reason to end it.
    async fn serve(&self, launched: &Launched) -> Stopped {
        tokio::select! {
            biased;
            outcome = launched.hold.ended() => Stopped::Gone(outcome),
            () = launched.signs.silent.cancelled() => Stopped::Silent,
            () = launched.signs.deaf.cancelled() => Stopped::Deaf,
            order = self.ordered() => Stopped::Ordered(order),
            () = self.idle() => Stopped::Idle,
        }
    }

    /// Until no lease was taken for as long as its spec says. It sleeps then.
    async fn idle(&self) {
        let Some(idle) = self.spec().idle else { return std::future::pending().await };
        loop {
            let (is_used, since) = self.slot.look(|state| (state.in_flight > 0, state.last_used));
            if is_used {
                self.slot.until(|state| state.in_flight == 0).await;
                continue;
            }
            // Longer than the clock goes is never.
            let Some(until) = since.checked_add(idle) else { return std::future::pending().await };
            sleep_until(until).await;
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
        let ladder = self.spec().launch.ladder;
        let (over, outcome, calls) = match stopped {
            // The set ended it through the hold, and has sent the event.
            Stopped::Gone(None) => {
                launched.hang_up();
                (Over::Stopped(self.shared.why_closed()), None, Some(calls))
            }
            Stopped::Gone(outcome) => {
                launched.read_out().await;
                (Over::Exited, outcome, Some(calls))
            }
            Stopped::Silent | Stopped::Deaf => {
                (Over::Exited, launched.end_deaf_or_silent(ladder).await, Some(calls))
            }
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
                () = self.slot.until(|state| state.in_flight == 0) => {}
                () = launched.signs.silent.cancelled() => {}
                () = self.shared.closing.cancelled() => {}
            }
        };
        // Calls that are not answered by then are cut off.
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
