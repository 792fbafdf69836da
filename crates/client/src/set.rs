//! The set: which servers there are, and their one end.
//!
//! ```text
//!   ServerSet ──▶ members of this generation ──▶ a task each ──▶ mooring ──▶ process
//!       │                                                          ▲
//!       └── drop: registry ────────────────────────────────────────┘ cut
//!
//!   Handle ──▶ slot   (no way from here to a process)
//! ```
//!
//! The set owns; its tasks serve; handles ask. What a replacement means is decided in `plan`, what a server does next in
//! `life`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moored_containment::EndReport;

use crate::event::Events;
use crate::handle::{CallError, Handle};
use crate::launch::{ConnectError, Room, rooms};
use crate::life::EndedWhy;
use crate::member::{Member, retire};
use crate::mooring::cut_all;
use crate::options::{Replacing, SetOptions, Shared};
use crate::owner::Owner;
use crate::plan::{DuplicateName, Plan};
use crate::replaced::{FailedServer, ReplaceError, Replaced};
use crate::slot::{Desk, Order, Phase, Slot};
use crate::spec::{ServerSpec, Start};

struct Inner {
    shared: Arc<Shared>,
    members: Mutex<BTreeMap<String, Member>>,
    failures: Mutex<Vec<FailedServer>>,
    /// Held by whoever changes the generation.
    turn: tokio::sync::Mutex<()>,
}

/// A set of MCP servers that ends with its owner.
///
/// Every process belongs to the set: when it is shut down or dropped, all of them end, with everything that they ever
/// started, whoever still has a handle, a lease or a call in flight. Dropping works on any thread, in a panic, and when the
/// runtime is gone; it waits for the end, SIGTERM and half a second at most for SIGKILL, all servers at once. On
/// `process::exit` or SIGKILL the guardians of each process do it.
///
/// ```
/// use moored_client::{ServerSet, ServerSpec, SetOptions};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let echo = ServerSpec::new("echo", "sh").arg("examples/echo_server.sh");
/// let set = ServerSet::connect([echo.clone()], SetOptions::default()).await?;
/// assert!(set.failures().is_empty());
///
/// // The configuration was edited: another environment, and one more server.
/// let edited = [echo.clone().env("GREETING", "hi"), ServerSpec::new("more", "sh").arg("examples/echo_server.sh")];
/// let replaced = set.replace(edited).await?;
/// assert_eq!(replaced.started, ["echo", "more"]);
/// assert_eq!(replaced.ended.len(), 1);
///
/// let reports = set.shutdown().await;
/// assert!(reports.iter().all(|report| report.verified && report.survivors.is_empty()));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ServerSet {
    inner: Arc<Inner>,
}

impl ServerSet {
    /// Starts every server, several at a time. Those that do not come up within their time are ended at once and are among
    /// the [failures](ServerSet::failures); the others serve. To be called on a runtime with I/O and time.
    ///
    /// # Errors
    /// If two servers have the same name; nothing is started then.
    pub async fn connect(
        specs: impl IntoIterator<Item = ServerSpec>,
        options: SetOptions,
    ) -> Result<Self, DuplicateName> {
        let plan = Plan::between(&[], specs.into_iter().collect())?;
        let inner = Inner {
            shared: Arc::new(options.into_shared()),
            members: Mutex::default(),
            failures: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        };
        // There is a set before there is a process: whoever gives up waiting drops it.
        let set = Self { inner: Arc::new(inner) };
        let (up, failed) = set.inner.bring_up(plan.to_start).await;
        set.inner.members().extend(up.into_iter().map(|member| (member.name(), member)));
        *set.inner.failures() = failed;
        Ok(set)
    }

    /// The server of that name that serves now.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<Handle> {
        self.inner.members().get(name).map(|member| Handle { slot: member.slot.clone() })
    }

    /// All that serve now, by name.
    #[must_use]
    pub fn servers(&self) -> Vec<Handle> {
        self.inner.members().values().map(|member| Handle { slot: member.slot.clone() }).collect()
    }

    /// Those of the present generation that did not come up.
    #[must_use]
    pub fn failures(&self) -> Vec<FailedServer> {
        self.inner.failures().clone()
    }

    /// What happens from now on.
    #[must_use]
    pub fn events(&self) -> Events {
        self.inner.shared.bus.listen()
    }

    /// Brings the set from what serves to what is wanted: servers whose spec is the same keep their process; new ones come
    /// up first; then the old ones finish their calls in flight, up to the bound, and are ended, verified.
    ///
    /// Replacements take turns. One that was begun is finished, also when nobody waits for it any more.
    ///
    /// # Errors
    /// If a new server does not come up (unless [`Replacing::WhatComesUp`]), a name is given twice, or the set is closed.
    /// The old generation serves on.
    pub async fn replace(
        &self,
        specs: impl IntoIterator<Item = ServerSpec>,
    ) -> Result<Replaced, ReplaceError> {
        let specs = specs.into_iter().collect();
        let inner = self.inner.clone();
        let replacing = tokio::spawn(async move { inner.replace(specs).await });
        // A task that is gone went with its runtime.
        replacing.await.unwrap_or(Err(ReplaceError::Closed))
    }

    /// Ends one server's process, after its calls in flight, and starts it afresh; its handles stay good. For a host that
    /// reconnects: the old process is gone before the new one is started.
    ///
    /// # Errors
    /// If there is no such server, or it does not come up again.
    pub async fn restart(&self, name: &str) -> Result<(), CallError> {
        let ended = || CallError::Ended { name: name.to_owned(), why: EndedWhy::Replaced };
        let handle = self.server(name).ok_or_else(ended)?;
        let before = handle.slot.look(|desk| desk.epoch);
        handle.slot.order(Order::Recycle);
        let is_settled = |desk: &Desk| match desk.phase {
            Phase::Ended(_) => true,
            Phase::Down { .. } => desk.order.is_none(),
            _ => desk.epoch > before,
        };
        handle.slot.until(is_settled).await;
        handle.lease().await.map(drop)
    }

    /// Ends every server, at once and politely, and tells how each ended. Calls in flight get
    /// [`CallError::Ended`]. Nothing can be started afterwards.
    ///
    /// An ending that nobody could report is not among these; it is among the [events](Event::Ended).
    ///
    /// [`Event::Ended`]: crate::Event::Ended
    pub async fn shutdown(&self) -> Vec<EndReport> {
        self.inner.shared.close(EndedWhy::Shutdown);
        // Whoever is replacing gives up now, and takes back what it started.
        let _turn = self.inner.turn.lock().await;
        let members = std::mem::take(&mut *self.inner.members());
        let ended = retire(members.into_values().collect(), EndedWhy::Shutdown, Duration::ZERO).await;
        // A server whose task is gone, with the runtime that it ran on, has only this end.
        let moorings = self.inner.shared.registry.close();
        let _ = tokio::task::spawn_blocking(move || cut_all(&moorings)).await;
        ended.into_iter().filter_map(|server| server.outcome?.ok()).collect()
    }
}

impl Drop for ServerSet {
    fn drop(&mut self) {
        self.inner.shared.close(EndedWhy::Dropped);
        let moorings = self.inner.shared.registry.close();
        for member in self.inner.members().values() {
            member.slot.finish(EndedWhy::Dropped);
        }
        cut_all(&moorings);
    }
}

impl fmt::Debug for ServerSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSet").field("servers", &self.servers()).finish_non_exhaustive()
    }
}

impl Inner {
    fn members(&self) -> MutexGuard<'_, BTreeMap<String, Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failures(&self) -> MutexGuard<'_, Vec<FailedServer>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts them all, and waits until each is up, asleep, or has failed.
    async fn bring_up(&self, specs: Vec<ServerSpec>) -> (Vec<Member>, Vec<FailedServer>) {
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

    async fn replace(&self, specs: Vec<ServerSpec>) -> Result<Replaced, ReplaceError> {
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
