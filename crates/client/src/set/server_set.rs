//! The set: which servers there are, and their one end.
//!
//! ```text
//!   ServerSet ──▶ members of this generation ──▶ a task each ──▶ process hold ──▶ process
//!       │                                                               ▲
//!       └── drop: held processes ───────────────────────────────────────┘ ended, without the task
//!
//!   Handle ──▶ slot   (no way from here to a process)
//! ```
//!
//! The set owns; its tasks serve; handles ask. How one generation follows another is in `generations`, what a server does next
//! in `life`.

use std::fmt;
use std::sync::Arc;

use moored_containment::EndReport;

use super::generations::Generations;
use super::options::SetOptions;
use super::plan::{DuplicateName, Plan};
use super::replaced::{FailedServer, ReplaceError, Replaced};
use crate::event::Events;
use crate::handle::{CallError, Handle};
use crate::server::{EndedWhy, Order, Phase, SlotState};
use crate::spec::ServerSpec;

/// A set of MCP servers that ends with its owner.
///
/// Every process belongs to the set: when it is shut down or dropped, all of them end, with everything that they ever
/// started, even while a handle, a lease or a call in flight exists. Dropping works on any thread, in a panic, and when the
/// runtime is gone; it waits for the end, SIGTERM and half a second at most for SIGKILL, all servers at once, and tells
/// the listeners of [events](ServerSet::events). On `process::exit` or SIGKILL the guardians of each process do it.
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
    inner: Arc<Generations>,
    /// The process that this is in.
    owner: u32,
}

impl ServerSet {
    /// Starts every server, several at a time. Those that do not come up within their time are ended at once and are among
    /// the [failures](ServerSet::failures); the others serve. To be called on a runtime with I/O and time.
    ///
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let twice = ["a", "a"].map(|name| ServerSpec::new(name, "server"));
    /// let refused = ServerSet::connect(twice, SetOptions::default()).await.expect_err("one name twice");
    /// assert_eq!(refused.name, "a");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If two servers have the same name; nothing is started then.
    pub async fn connect(
        specs: impl IntoIterator<Item = ServerSpec>,
        options: SetOptions,
    ) -> Result<Self, DuplicateName> {
        let plan = Plan::between(&[], specs.into_iter().collect())?;
        let inner = Generations::new(options.into_shared());
        // The set exists before any process does: a caller that drops this future drops the set, which ends them.
        let set = Self { inner: Arc::new(inner), owner: std::process::id() };
        let (up, failed) = set.inner.bring_up(plan.to_start).await;
        set.inner.members().extend(up.into_iter().map(|member| (member.name(), member)));
        *set.inner.failures() = failed;
        Ok(set)
    }

    /// The server of that name that serves now.
    ///
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// assert!(set.server("echo").is_some() && set.server("other").is_none());
    /// assert_eq!(set.servers().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn server(&self, name: &str) -> Option<Handle> {
        self.inner.members().get(name).map(|member| Handle { slot: member.slot.clone() })
    }

    /// All that serve now, by name.
    ///
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// let names: Vec<_> = set.servers().iter().map(|server| server.name().to_owned()).collect();
    /// assert_eq!(names, ["echo"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn servers(&self) -> Vec<Handle> {
        self.inner.members().values().map(|member| Handle { slot: member.slot.clone() }).collect()
    }

    /// Those of the present generation that did not come up.
    ///
    /// ```
    /// use moored_client::ConnectError;
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let specs = [ServerSpec::new("missing", "no-such-program")];
    /// let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// assert!(matches!(*set.failures()[0].error, ConnectError::Start(_)));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn failures(&self) -> Vec<FailedServer> {
        self.inner.failures().clone()
    }

    /// What happens from now on.
    ///
    /// ```
    /// use moored_client::Event;
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// let mut events = set.events();
    /// set.shutdown().await;
    /// assert!(matches!(events.next().await, Some(Event::Ended { name, .. }) if name == "echo"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn events(&self) -> Events {
        self.inner.shared.bus.listen()
    }

    /// Brings the set from what serves to what is wanted: servers whose spec is the same keep their process; new ones come
    /// up first; then the old ones finish their calls in flight, up to the bound, and are ended, verified.
    ///
    /// Replacements take turns. One that was begun is finished, also when its caller has stopped waiting. The new servers are
    /// served on the runtime that this is called on.
    ///
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// let same = ServerSpec::new("echo", "sh").arg("examples/echo_server.sh");
    /// let replaced = set.replace([same, ServerSpec::new("new", "sh").arg("examples/echo_server.sh")]).await?;
    /// assert_eq!((&*replaced.kept, &*replaced.started), (&["echo".to_owned()][..], &["new".to_owned()][..]));
    /// assert!(replaced.ended.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a new server does not come up (unless [`Replacing::WhatComesUp`](crate::Replacing::WhatComesUp)), a name is given twice, or the set is closed.
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
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// let echo = set.server("echo").expect("it came up");
    /// set.restart("echo").await?;
    /// assert_eq!(echo.list_all_tools().await?.len(), 1, "another process, the same handle");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such server, or it does not come up again.
    pub async fn restart(&self, name: &str) -> Result<(), CallError> {
        let handle = self.server(name).ok_or_else(|| self.unknown(name))?;
        let before = handle.slot.look(|state| state.epoch);
        handle.slot.order(Order::Recycle);
        let is_settled = |state: &SlotState| match state.phase {
            Phase::Ended(_) => true,
            Phase::Down { .. } => state.order.is_none(),
            _ => state.epoch > before,
        };
        handle.slot.until(is_settled).await;
        handle.lease().await.map(drop)
    }

    fn unknown(&self, name: &str) -> CallError {
        let known = self.inner.members().keys().cloned().collect();
        CallError::Unknown { name: name.to_owned(), known }
    }

    /// Ends every server, at once and politely, and tells how each ended. Calls in flight get
    /// [`CallError::Ended`]. Nothing can be started afterwards.
    ///
    /// It takes as long as the longest ladder. A server that has not ended by then, because no thread runs the runtime
    /// that it is served on, is ended as by a drop.
    ///
    /// A shutdown that was begun is finished, also when its caller has stopped waiting; the next one has the reports then. An
    /// ending without a report is not among these; it is among the [events](crate::Event::Ended).
    ///
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// let reports = set.shutdown().await;
    /// assert!(reports[0].verified);
    /// assert!(set.server("echo").is_none() && set.shutdown().await.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn shutdown(&self) -> Vec<EndReport> {
        self.inner.shared.close(EndedWhy::Shutdown);
        let inner = self.inner.clone();
        // A task that is gone went with its runtime; what it did not come to is left to the drop.
        let _ = tokio::spawn(async move { inner.shutdown().await }).await;
        std::mem::take(&mut *self.inner.reports())
    }
}

impl Drop for ServerSet {
    fn drop(&mut self) {
        if std::process::id() != self.owner {
            // In a fork of the owner, which shares the kernel's side of the owner's files: even to close them would take
            // them from it.
            std::mem::forget(self.inner.clone());
            return;
        }
        let shared = &self.inner.shared;
        shared.close(EndedWhy::Dropped);
        let holds = shared.processes.close();
        for member in self.inner.members().values() {
            member.slot.finish(EndedWhy::Dropped);
        }
        shared.end_processes_blocking(&holds);
    }
}

impl fmt::Debug for ServerSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSet").field("servers", &self.servers()).finish_non_exhaustive()
    }
}
