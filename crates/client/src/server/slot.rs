//! What the handles of a server and its one task share: where the server stands, who uses it, and what was ordered.
//!
//! Everything is one value under one lock, so that a call cannot begin while the task puts an idle server to sleep. The
//! slot leads to no process: a slot, or a handle on it, keeps nothing alive.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::RunningService;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::launch::ConnectError;
use super::life::EndedWhy;
use crate::handler::AnyHandler;
use crate::spec::{ServerSpec, Start};

/// A connection as rmcp runs it, with the handler that the host has chosen.
///
/// ```
/// use moored_client::Connection;
///
/// fn version(connection: &Connection) -> Option<String> {
///     Some(connection.peer_info()?.server_info.as_ref()?.version.clone())
/// }
///
/// # use moored_client::{ServerSet, ServerSpec, SetOptions};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
/// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
/// let lease = set.server("echo").expect("it came up").lease().await?;
/// assert_eq!(version(&lease).as_deref(), Some("1"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Connection = RunningService<RoleClient, AnyHandler>;

/// A connection that serves; `over` is cancelled when it no longer does.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) connection: Arc<Connection>,
    pub(crate) over: CancellationToken,
}

impl Live {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection: Arc::new(connection), over: CancellationToken::new() }
    }
}

#[derive(Clone)]
pub(crate) enum Phase {
    Asleep,
    Starting,
    Up(Live),
    Down {
        /// `None`: it is not started again.
        until: Option<Instant>,
        cause: Arc<ConnectError>,
    },
    /// Calls in flight may finish; no new ones are taken.
    Ending(EndedWhy),
    Ended(EndedWhy),
}

/// What the set has ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Stop { why: EndedWhy, drain: Duration },
    Recycle,
}

pub(crate) struct SlotState {
    pub(crate) phase: Phase,
    /// Counts the connections. A lease on an earlier one does not count as a use of this one.
    pub(crate) epoch: u64,
    pub(crate) in_flight: usize,
    pub(crate) last_used: Instant,
    pub(crate) wanted: bool,
    pub(crate) order: Option<Order>,
}

pub(crate) struct Slot {
    pub(crate) spec: ServerSpec,
    state: watch::Sender<SlotState>,
}

/// What a handle that wants to use the server gets.
pub(crate) enum Take {
    Lease { live: Live, epoch: u64 },
    NotYet,
    Down { retry_in: Duration, cause: Arc<ConnectError> },
    Ended(EndedWhy),
}

impl Slot {
    pub(crate) fn new(spec: ServerSpec) -> Arc<Self> {
        let phase = match spec.start {
            Start::AtOnce => Phase::Starting,
            Start::AtFirstCall => Phase::Asleep,
        };
        let state = SlotState {
            phase,
            epoch: 0,
            in_flight: 0,
            last_used: Instant::now(),
            wanted: false,
            order: None,
        };
        Arc::new(Self { spec, state: watch::Sender::new(state) })
    }

    pub(crate) fn watch(&self) -> watch::Receiver<SlotState> {
        self.state.subscribe()
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&SlotState) -> T) -> T {
        look(&self.state.borrow())
    }

    /// Waits until that is so. Drops the borrow of the watched value: kept, it would block the next change.
    pub(crate) async fn until(&self, is_so: impl FnMut(&SlotState) -> bool) {
        // The sender is a field of this slot, so the channel cannot be closed meanwhile.
        drop(self.state.subscribe().wait_for(is_so).await);
    }

    // === for handles ===

    /// Takes a lease if the server is up; else says what to do. A sleeping server is woken.
    pub(crate) fn take(&self) -> Take {
        let mut taken = Take::NotYet;
        self.state.send_if_modified(|state| match &state.phase {
            Phase::Up(live) => {
                taken = Take::Lease { live: live.clone(), epoch: state.epoch };
                state.in_flight += 1;
                // The task is woken only when the last lease is given back.
                false
            }
            Phase::Asleep => !std::mem::replace(&mut state.wanted, true),
            Phase::Starting => false,
            Phase::Down { until, cause } => {
                let left = |until: Instant| until.saturating_duration_since(Instant::now());
                let retry_in = until.map_or(Duration::MAX, left);
                taken = Take::Down { retry_in, cause: cause.clone() };
                false
            }
            Phase::Ending(why) | Phase::Ended(why) => {
                taken = Take::Ended(*why);
                false
            }
        });
        taken
    }

    /// Gives a lease back.
    pub(crate) fn give_back(&self, epoch: u64) {
        self.state.send_if_modified(|state| {
            if state.epoch != epoch {
                return false;
            }
            state.in_flight = state.in_flight.saturating_sub(1);
            state.last_used = Instant::now();
            state.in_flight == 0
        });
    }

    // === for the set ===

    /// An order to stop is never overwritten: the caller that gave it waits for that end.
    pub(crate) fn order(&self, order: Order) {
        self.state.send_if_modified(|state| {
            let is_new = !matches!(state.order, Some(Order::Stop { .. }));
            if is_new {
                state.order = Some(order);
            }
            is_new
        });
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.look(|state| matches!(state.phase, Phase::Ended(_)))
    }

    // === for the owner ===

    pub(crate) fn enter(&self, phase: Phase) {
        self.change(|state| {
            // The calls that woke it wait for this start, and learn if it fails.
            state.wanted &= !matches!(phase, Phase::Starting);
            Some(phase)
        });
    }

    /// A new connection, with no lease on it yet.
    pub(crate) fn up(&self, live: Live) {
        self.change(|state| {
            state.epoch += 1;
            state.in_flight = 0;
            state.last_used = Instant::now();
            Some(Phase::Up(live))
        });
    }

    /// Goes to sleep, unless there is a lease or one was given back within `idle`; whether it did.
    pub(crate) fn fall_asleep(&self, idle: Duration) -> bool {
        self.change(|state| {
            let is_idle = state.in_flight == 0 && state.last_used.elapsed() >= idle;
            is_idle.then_some(Phase::Asleep)
        })
    }

    /// Enters another phase, or not; whether it did. Ended is final: the set may say so before the server's task knows.
    ///
    /// The phase before may hold the last of a connection, and with it the host's own handler. It is dropped when the lock
    /// is free again, because a handler may have a handle.
    fn change(&self, next: impl FnOnce(&mut SlotState) -> Option<Phase>) -> bool {
        let mut before = None;
        self.state.send_if_modified(|state| {
            if matches!(state.phase, Phase::Ended(_)) {
                return false;
            }
            before = next(state).map(|phase| std::mem::replace(&mut state.phase, phase));
            before.is_some()
        });
        before.is_some()
    }

    /// Takes what was ordered. A server that is to be started afresh is starting from that moment on.
    pub(crate) fn take_order(&self) -> Option<Order> {
        let mut order = None;
        self.state.send_if_modified(|state| {
            order = state.order.take();
            let starts =
                order == Some(Order::Recycle) && matches!(state.phase, Phase::Asleep | Phase::Down { .. });
            if starts {
                state.phase = Phase::Starting;
            }
            starts
        });
        order
    }

    /// Why it was ordered to stop, if it was.
    pub(crate) fn why_stopped(&self) -> Option<EndedWhy> {
        self.look(|state| match state.order {
            Some(Order::Stop { why, .. }) => Some(why),
            Some(Order::Recycle) | None => None,
        })
    }

    /// Ended for good; the first reason stays.
    pub(crate) fn finish(&self, why: EndedWhy) {
        self.change(|state| {
            let why = match state.phase {
                Phase::Ending(first) => first,
                _ => why,
            };
            Some(Phase::Ended(why))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot() -> Arc<Slot> {
        Slot::new(ServerSpec::new("any", "server"))
    }

    #[test]
    fn an_order_to_stop_is_not_overwritten_by_a_restart() {
        let (slot, stop) = (slot(), Order::Stop { why: EndedWhy::Replaced, drain: Duration::ZERO });
        slot.order(Order::Recycle);
        slot.order(stop);
        slot.order(Order::Recycle);
        assert_eq!((slot.why_stopped(), slot.take_order()), (Some(EndedWhy::Replaced), Some(stop)));
        assert_eq!(slot.take_order(), None);
    }

    #[test]
    fn ended_is_final() {
        let slot = slot();
        slot.finish(EndedWhy::Dropped);
        slot.enter(Phase::Starting);
        slot.finish(EndedWhy::Exited);
        assert!(matches!(slot.take(), Take::Ended(EndedWhy::Dropped)));
    }
}
