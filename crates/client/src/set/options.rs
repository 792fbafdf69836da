//! How a set treats its servers as a whole.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::{ClientLifecycleMode, RoleClient, Service};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::held_processes::HeldProcesses;
use super::shared::Shared;
use crate::event::{Bus, EventSender};
use crate::handler::AnyHandler;
use crate::server::Registration;

/// What a replacement does when a new server does not come up.
///
/// ```
/// use moored_client::{Replacing, ServerSet, ServerSpec, SetOptions};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let options = SetOptions::default().replacing(Replacing::WhatComesUp);
/// let set = ServerSet::connect([], options).await?;
/// let specs = ["sh", "no-such-program"].map(|program| ServerSpec::new(program, program).arg("examples/echo_server.sh"));
/// let replaced = set.replace(specs).await?;
/// assert_eq!((&*replaced.started[0], &*replaced.failed[0].name), ("sh", "no-such-program"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replacing {
    /// Nothing is replaced: the new ones are ended, the old generation goes on.
    #[default]
    AllOrNothing,
    /// The others are replaced all the same.
    WhatComesUp,
}

/// How many server processes there may be at a time, in all the sets that share this value. A start waits for its turn.
/// A replacement needs room for the new generation beside the old one.
///
/// ```
/// use moored_client::{ServerLimit, SetOptions};
///
/// let limit = ServerLimit::new(16);
/// let (one, another) = (SetOptions::default().limit(limit.clone()), SetOptions::default().limit(limit.clone()));
/// assert_eq!(limit.free(), 16);
/// # drop((one, another));
/// ```
#[derive(Clone, Debug)]
pub struct ServerLimit {
    pub(crate) places: Arc<Semaphore>,
    pub(crate) most: usize,
}

impl ServerLimit {
    /// At most this many.
    ///
    /// ```
    /// # use moored_client::ServerLimit;
    /// assert_eq!(ServerLimit::new(16).free(), 16);
    /// ```
    #[must_use]
    pub fn new(most: usize) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        Self { places: Arc::new(Semaphore::new(most)), most }
    }

    /// How many more could be started now.
    ///
    /// ```
    /// use moored_client::ServerLimit;
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let limit = ServerLimit::new(16);
    /// let spec = ServerSpec::new("echo", "sh").arg("examples/echo_server.sh");
    /// let set = ServerSet::connect([spec], SetOptions::default().limit(limit.clone())).await?;
    /// assert_eq!(limit.free(), 15);
    /// drop(set);
    /// assert_eq!(limit.free(), 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn free(&self) -> usize {
        self.places.available_permits()
    }
}

pub(crate) type MakeHandler = dyn Fn(&str) -> AnyHandler + Send + Sync;

/// How a set treats its servers as a whole.
///
/// ```
/// use std::time::Duration;
/// use moored_client::SetOptions;
///
/// // Two starts at a time, and calls in flight have a minute to finish when their server is replaced.
/// let options = SetOptions::default().starts_at_once(2).drain(Duration::from_secs(60));
/// # drop(options);
/// ```
pub struct SetOptions {
    starts_at_once: usize,
    pub(crate) drain: Duration,
    pub(crate) replacing: Replacing,
    limit: Option<ServerLimit>,
    wait_for_room: Duration,
    handler: Arc<MakeHandler>,
    lifecycle: ClientLifecycleMode,
    events: Option<EventSender>,
    registration: Registration,
}

impl Default for SetOptions {
    fn default() -> Self {
        Self {
            starts_at_once: 8,
            drain: Duration::from_secs(10),
            replacing: Replacing::default(),
            limit: None,
            wait_for_room: Duration::from_secs(60),
            handler: Arc::new(|_| AnyHandler::new(())),
            lifecycle: ClientLifecycleMode::Initialize,
            events: None,
            registration: Registration::default(),
        }
    }
}

impl SetOptions {
    /// How many servers are started at a time; 8 unless told otherwise.
    ///
    /// ```
    /// # use moored_client::SetOptions;
    /// let options = SetOptions::default().starts_at_once(2);
    /// # drop(options);
    /// ```
    #[must_use]
    pub fn starts_at_once(mut self, most: usize) -> Self {
        self.starts_at_once = most.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// How long calls in flight may take to finish when their server is replaced; 10 s unless told otherwise.
    ///
    /// ```
    /// # use moored_client::SetOptions;
    /// use std::time::Duration;
    /// let options = SetOptions::default().drain(Duration::from_secs(60));
    /// # drop(options);
    /// ```
    #[must_use]
    pub fn drain(mut self, bound: Duration) -> Self {
        self.drain = bound;
        self
    }

    /// What a replacement does when a new server does not come up; nothing is replaced unless told otherwise.
    ///
    /// ```
    /// # use moored_client::SetOptions;
    /// use moored_client::Replacing;
    /// let options = SetOptions::default().replacing(Replacing::WhatComesUp);
    /// # drop(options);
    /// ```
    #[must_use]
    pub fn replacing(mut self, replacing: Replacing) -> Self {
        self.replacing = replacing;
        self
    }

    /// How many processes there may be at a time.
    ///
    /// ```
    /// use moored_client::{ConnectError, ServerLimit};
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let options = SetOptions::default().limit(ServerLimit::new(1));
    /// let two = ["a", "b"].map(|name| ServerSpec::new(name, "sh").arg("examples/echo_server.sh"));
    /// let set = ServerSet::connect(two, options).await?;
    /// assert!(matches!(*set.failures()[0].error, ConnectError::OverLimit { wanted: 2, most: 1 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn limit(mut self, limit: ServerLimit) -> Self {
        self.limit = Some(limit);
        self
    }

    /// How long a start waits for its turn under the limit; 60 s unless told otherwise.
    ///
    /// ```
    /// use std::time::Duration;
    /// use moored_client::{ConnectError, ServerLimit};
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let limit = ServerLimit::new(1);
    /// let options = || SetOptions::default().limit(limit.clone()).wait_for_room(Duration::from_millis(50));
    /// let spec = || [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// let first = ServerSet::connect(spec(), options()).await?;
    /// let second = ServerSet::connect(spec(), options()).await?;
    /// assert!(matches!(*second.failures()[0].error, ConnectError::NoRoom { .. }));
    /// # drop(first);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn wait_for_room(mut self, bound: Duration) -> Self {
        self.wait_for_room = bound;
        self
    }

    /// What answers the servers' own requests and hears their notifications: an rmcp client handler for each, by name.
    ///
    /// ```
    /// use moored_client::SetOptions;
    /// use rmcp::ClientHandler;
    ///
    /// #[derive(Clone)]
    /// struct Host;
    /// impl ClientHandler for Host {}
    ///
    /// let options = SetOptions::default().handler(|_server_name| Host);
    /// # drop(options);
    /// ```
    #[must_use]
    pub fn handler<S>(mut self, make: impl Fn(&str) -> S + Send + Sync + 'static) -> Self
    where
        S: Service<RoleClient>,
    {
        self.handler = Arc::new(move |name| AnyHandler::new(make(name)));
        self
    }

    /// How a connection begins; with `initialize` unless told otherwise.
    ///
    /// ```
    /// # use moored_client::SetOptions;
    /// use rmcp::ClientLifecycleMode;
    /// let options = SetOptions::default().lifecycle(ClientLifecycleMode::Initialize);
    /// # drop(options);
    /// ```
    #[must_use]
    pub fn lifecycle(mut self, lifecycle: ClientLifecycleMode) -> Self {
        self.lifecycle = lifecycle;
        self
    }

    /// A listener from the first event on; see [`events`](crate::events()).
    ///
    /// ```
    /// # use moored_client::SetOptions;
    /// let (sender, mut events) = moored_client::events();
    /// let options = SetOptions::default().events(sender);
    /// drop(options);
    /// assert!(events.try_next().is_none());
    /// ```
    #[must_use]
    pub fn events(mut self, sender: EventSender) -> Self {
        self.events = Some(sender);
        self
    }

    /// Whether `moored ps` and `moored stop` find the servers; they do unless told otherwise.
    ///
    /// ```
    /// # use moored_client::SetOptions;
    /// use moored_client::Registration;
    /// let options = SetOptions::default().registration(Registration::Off);
    /// # drop(options);
    /// ```
    #[must_use]
    pub fn registration(mut self, registration: Registration) -> Self {
        self.registration = registration;
        self
    }

    pub(crate) fn into_shared(self) -> Shared {
        Shared {
            processes: HeldProcesses::default(),
            bus: Bus::new(self.events),
            starts: Semaphore::new(self.starts_at_once),
            limit: self.limit,
            wait_for_room: self.wait_for_room,
            drain: self.drain,
            replacing: self.replacing,
            handler: self.handler,
            lifecycle: self.lifecycle,
            registration: self.registration,
            closing: CancellationToken::new(),
            why_closed: OnceLock::new(),
        }
    }
}

impl fmt::Debug for SetOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetOptions")
            .field("starts_at_once", &self.starts_at_once)
            .field("drain", &self.drain)
            .field("replacing", &self.replacing)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
