//! The generations of a set: bringing one up, letting it take over, and ending the one before.
//!
//! What a replacement means is decided in `plan`; here it is done, in the order that keeps a server for every name all the time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moored_containment::EndReport;
use tokio::time::timeout;

use super::member::{Member, longest, retire};
use super::options::Replacing;
use super::plan::Plan;
use super::replaced::{FailedServer, ReplaceError, Replaced};
use super::shared::Shared;
use crate::server::{ConnectError, EndedWhy, Owner, Phase, Room, Slot, rooms};
use crate::spec::{ServerSpec, Start};

pub(crate) struct Generations {
    pub(crate) shared: Arc<Shared>,
    members: Mutex<BTreeMap<String, Member>>,
    failures: Mutex<Vec<FailedServer>>,
    /// How the servers ended that were shut down; taken by the call of `shutdown` that reports them.
    reports: Mutex<Vec<EndReport>>,
    /// Held while the generation is changed: by a replacement or the shutdown.
    turn: tokio::sync::Mutex<()>,
}

impl Generations {
    pub(crate) fn new(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
            members: Mutex::default(),
            failures: Mutex::default(),
            reports: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn members(&self) -> MutexGuard<'_, BTreeMap<String, Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn failures(&self) -> MutexGuard<'_, Vec<FailedServer>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts them all, and waits until each is up, asleep, or has failed.
    pub(crate) async fn bring_up(&self, specs: Vec<ServerSpec>) -> (Vec<Member>, Vec<FailedServer>) {
        let mut starting = Vec::new();
        let at_once = specs.iter().filter(|spec| spec.start == Start::AtOnce).count();
        let mut rooms = rooms(&self.shared, at_once).await;
        for spec in specs {
            let room = (spec.start == Start::AtOnce).then(|| one_of(&mut rooms));
            starting.push(self.begin(spec, room));
        }
        let (mut up, mut failed) = (Vec::new(), Vec::new());
        for member in starting {
            member.slot.until(|state| !matches!(state.phase, Phase::Starting)).await;
            if member.slot.is_ended() {
                failed.push(member.failure(&self.shared).await);
            } else {
                up.push(member);
            }
        }
        (up, failed)
    }

    fn begin(&self, spec: ServerSpec, room: Option<Result<Room, ConnectError>>) -> Member {
        let slot = Slot::new(spec);
        let owner = Owner::new(slot.clone(), self.shared.clone(), room);
        Member { slot, task: tokio::spawn(owner.run()) }
    }

    pub(crate) async fn replace(&self, specs: Vec<ServerSpec>) -> Result<Replaced, ReplaceError> {
        let _turn = self.turn.lock().await;
        let serving: Vec<_> = self.members().values().map(Member::serving).collect();
        let plan = Plan::between(&serving, specs)?;
        let (up, failed) = self.bring_up(plan.to_start).await;
        let is_closed = self.shared.closing.is_cancelled();
        if is_closed || (!failed.is_empty() && self.shared.replacing == Replacing::AllOrNothing) {
            retire(up, EndedWhy::Replaced, Duration::ZERO, &self.shared).await;
            return Err(if is_closed { ReplaceError::Closed } else { ReplaceError::Failed { failed } });
        }
        let started = up.iter().map(Member::name).collect();
        let old = self.swap(&plan.to_end, up);
        self.failures().clone_from(&failed);
        let ended = retire(old, EndedWhy::Replaced, self.shared.drain, &self.shared).await;
        Ok(Replaced { kept: plan.kept, started, ended, failed })
    }

    /// From here on the new ones serve.
    fn swap(&self, to_end: &[String], up: Vec<Member>) -> Vec<Member> {
        let mut members = self.members();
        let old = to_end.iter().filter_map(|name| members.remove(name)).collect();
        members.extend(up.into_iter().map(|member| (member.name(), member)));
        old
    }

    /// Ends every server, and puts their reports down.
    pub(crate) async fn shutdown(&self) {
        let shared = &self.shared;
        // A replacement that is under way gives up now and ends what it started: the new servers, then the old ones. It is
        // waited for no longer than that takes, because its runtime may have no thread that runs it.
        let at_most = longest(shared.processes.all().iter().map(|hold| &hold.slot)).saturating_mul(2);
        let _turn = timeout(at_most, self.turn.lock()).await;
        let members = std::mem::take(&mut *self.members()).into_values().collect();
        let retired = retire(members, EndedWhy::Shutdown, Duration::ZERO, shared).await;
        let outcomes = retired.into_iter().filter_map(|server| server.outcome);
        // A server whose task is gone, with the runtime that it ran on, has only this end.
        let left =
            shared.end_processes(shared.processes.close()).await.into_iter().map(|(_, outcome)| outcome);
        self.reports().extend(outcomes.chain(left).filter_map(Result::ok));
    }

    pub(crate) fn reports(&self) -> MutexGuard<'_, Vec<EndReport>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One place of those that were got together; or why there is none.
fn one_of(rooms: &mut Result<Room, ConnectError>) -> Result<Room, ConnectError> {
    match rooms {
        Ok(rooms) => Ok(rooms.as_mut().and_then(|rooms| rooms.split(1))),
        Err(ConnectError::NoRoom { waited }) => Err(ConnectError::NoRoom { waited: *waited }),
        Err(ConnectError::OverLimit { wanted, most }) => {
            Err(ConnectError::OverLimit { wanted: *wanted, most: *most })
        }
        Err(_) => Err(ConnectError::Closed),
    }
}
