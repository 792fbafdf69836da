//! A server as its set sees it: the slot, and the task that can be waited for.
//!
//! A task may be gone without having ended its process: with the runtime that it ran on, or in a panic of the host's own
//! handler. Or its runtime exists but has no thread that runs it. So every wait for a task here has a bound, and ends the
//! process that the task has not.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::plan::Serving;
use super::replaced::{EndedServer, FailedServer};
use super::shared::Shared;
use crate::server::{ConnectError, EndedWhy, Finished, Order, SILENCE, Slot};

/// A server, and its one task.
pub(crate) struct Member {
    pub(crate) slot: Arc<Slot>,
    pub(crate) task: JoinHandle<Finished>,
}

impl Member {
    pub(crate) fn name(&self) -> String {
        self.slot.spec.name().to_owned()
    }

    pub(crate) fn serving(&self) -> Serving {
        Serving { spec: self.slot.spec.clone(), alive: !self.slot.is_ended() }
    }

    /// What was wrong with one that has ended without having come up.
    pub(crate) async fn failure(self, shared: &Arc<Shared>) -> FailedServer {
        let name = self.name();
        let finished = match self.task.await {
            Ok(finished) => finished,
            Err(_) => {
                let outcome = shared.end_processes_of(std::slice::from_ref(&self.slot)).await.pop();
                let outcome = outcome.map(|(_, outcome)| outcome);
                Finished { outcome, failure: None }
            }
        };
        let error = finished.failure.unwrap_or_else(|| Arc::new(ConnectError::Unattended));
        FailedServer { name, error, outcome: finished.outcome }
    }
}

/// How long a server may take to be gone when it is told to: by then every ladder is at its end.
pub(crate) fn longest<'a>(slots: impl IntoIterator<Item = &'a Arc<Slot>>) -> Duration {
    let ladders = slots.into_iter().map(|slot| slot.spec.launch.ladder);
    let most = ladders.map(|ladder| ladder.bound().saturating_add(ladder.verify)).max();
    most.unwrap_or_default().saturating_add(SILENCE * 2)
}

/// Ends them all at once, after their calls in flight.
pub(crate) async fn retire(
    members: Vec<Member>,
    why: EndedWhy,
    drain: Duration,
    shared: &Arc<Shared>,
) -> Vec<EndedServer> {
    for member in &members {
        member.slot.order(Order::Stop { why, drain });
    }
    let bound = longest(members.iter().map(|member| &member.slot)).saturating_add(drain);
    let mut time_is_up = pin!(sleep(bound));
    let (mut ended, mut left) = (Vec::new(), Vec::new());
    for member in members {
        let name = member.name();
        let finished = tokio::select! {
            biased;
            finished = member.task => finished.ok(),
            () = time_is_up.as_mut() => None,
        };
        match finished {
            Some(finished) => ended.push(EndedServer { name, outcome: finished.outcome }),
            None => left.push(member.slot),
        }
    }
    let mut cut = shared.end_processes_of(&left).await;
    for slot in left {
        slot.finish(why);
        let of_it = cut.iter().position(|(of, _)| Arc::ptr_eq(of, &slot));
        let outcome = of_it.map(|index| cut.swap_remove(index).1);
        ended.push(EndedServer { name: slot.spec.name().to_owned(), outcome });
    }
    ended
}
