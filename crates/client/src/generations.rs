//! The generations of a set: bringing one up, letting it take over, and ending the one before.
//!
//! What a replacement means is decided in `plan`; here it is done, in the order that keeps somebody serving all the time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::launch::{ConnectError, Room, rooms};
use crate::life::EndedWhy;
use crate::member::{Member, retire};
use crate::options::{Replacing, Shared};
use crate::owner::Owner;
use crate::plan::Plan;
use crate::replaced::{FailedServer, ReplaceError, Replaced};
use crate::slot::{Phase, Slot};
use crate::spec::{ServerSpec, Start};

pub(crate) struct Generations {
    pub(crate) shared: Arc<Shared>,
    members: Mutex<BTreeMap<String, Member>>,
    failures: Mutex<Vec<FailedServer>>,
    /// Held by whoever changes the generation.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

impl Generations {
    pub(crate) fn new(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
            members: Mutex::default(),
            failures: Mutex::default(),
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
        let mut rooms = rooms(&self.shared, u32::try_from(at_once).unwrap_or(u32::MAX)).await;
        for spec in specs {
            let room = (spec.start == Start::AtOnce).then(|| one_of(&mut rooms));
            starting.push(self.begin(spec, room));
        }
        let (mut up, mut failed) = (Vec::new(), Vec::new());
        for member in starting {
            member.slot.until(|desk| !matches!(desk.phase, Phase::Starting)).await;
            if member.slot.is_ended() {
                failed.push(member.failure().await);
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
            retire(up, EndedWhy::Replaced, Duration::ZERO).await;
            return Err(if is_closed { ReplaceError::Closed } else { ReplaceError::Failed { failed } });
        }
        let started = up.iter().map(Member::name).collect();
        let old = self.swap(&plan.to_end, up);
        self.failures().clone_from(&failed);
        let ended = retire(old, EndedWhy::Replaced, self.shared.drain).await;
        Ok(Replaced { kept: plan.kept, started, ended, failed })
    }

    /// From here on the new ones serve.
    fn swap(&self, to_end: &[String], up: Vec<Member>) -> Vec<Member> {
        let mut members = self.members();
        let old = to_end.iter().filter_map(|name| members.remove(name)).collect();
        members.extend(up.into_iter().map(|member| (member.name(), member)));
        old
    }
}

/// One place of those that were got together; or why there is none.
fn one_of(rooms: &mut Result<Room, ConnectError>) -> Result<Room, ConnectError> {
    match rooms {
        Ok(rooms) => Ok(rooms.as_mut().and_then(|rooms| rooms.split(1))),
        Err(ConnectError::NoRoom { waited }) => Err(ConnectError::NoRoom { waited: *waited }),
        Err(_) => Err(ConnectError::Closed),
    }
}
