//! What happened to the servers of a set, for a host that wants to show it.
//!
//! The set never waits for a listener: one that does not read misses events, and is told how many.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use moored_containment::{ProcessIdentity, Strength};
use tokio::sync::mpsc;

use crate::server::{ConnectError, Outcome};

/// How many events a listener may be behind.
const ROOM: usize = 1024;

/// Something that happened to a server.
///
/// ```
/// # use moored_client::{ServerSet, ServerSpec, SetOptions};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
/// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
/// use moored_client::Event;
///
/// fn shown(event: &Event) -> String {
///     match event {
///         Event::Started { name, process, .. } => format!("{name}: process {}", process.pid),
///         Event::Failed { name, error } => format!("{name}: {error}"),
///         Event::Ended { name, outcome: Ok(report) } => format!("{name}: gone after {:?}", report.took),
///         other => format!("{other:?}"),
///     }
/// }
///
/// let mut events = set.events();
/// drop(set);   // what a drop did is told as well
/// assert!(shown(&events.next().await.expect("an event")).starts_with("echo: gone after"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Its process exists.
    Started {
        /// Which server.
        name: String,
        /// Its process.
        process: ProcessIdentity,
        /// What holds it.
        strength: Strength,
    },
    /// It has answered `initialize`.
    Connected {
        /// Which server.
        name: String,
    },
    /// It could not be started, or did not answer. What there was of it has been ended.
    Failed {
        /// Which server.
        name: String,
        /// What went wrong.
        error: Arc<ConnectError>,
    },
    /// Its process has ended, and all that it started with it, as the report says; also when the set was dropped.
    Ended {
        /// Which server.
        name: String,
        /// How it came out.
        outcome: Outcome,
    },
    /// It will be started again.
    Waiting {
        /// Which server.
        name: String,
        /// After so long.
        retry_in: Duration,
    },
    /// This listener was too slow.
    Missed {
        /// How many events were missed.
        count: u64,
    },
}

/// Makes a listener before there is a set, so that it misses nothing; see [`SetOptions::events`](crate::SetOptions::events).
///
/// ```
/// use moored_client::{Event, ServerSet, ServerSpec, SetOptions, events};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let (sender, mut events) = events();
/// let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
/// let set = ServerSet::connect(specs, SetOptions::default().events(sender)).await?;
/// assert!(matches!(events.next().await, Some(Event::Started { name, .. }) if name == "echo"));
/// assert!(matches!(events.next().await, Some(Event::Connected { .. })));
/// set.shutdown().await;
/// assert!(matches!(events.next().await, Some(Event::Ended { outcome: Ok(report), .. }) if report.verified));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn events() -> (EventSender, Events) {
    let (sender, receiver) = mpsc::channel(ROOM);
    (EventSender { to: sender, missed: 0 }, Events(receiver))
}

/// Where a set puts its events.
///
/// ```
/// use moored_client::{EventSender, SetOptions, events};
///
/// let (sender, events): (EventSender, _) = events();
/// let options = SetOptions::default().events(sender);
/// # drop((options, events));
/// ```
#[derive(Debug)]
pub struct EventSender {
    to: mpsc::Sender<Event>,
    missed: u64,
}

impl EventSender {
    /// Whether there is a listener.
    fn tell(&mut self, event: &Event) -> bool {
        if self.missed > 0 && self.to.try_send(Event::Missed { count: self.missed }).is_ok() {
            self.missed = 0;
        }
        // Nothing overtakes the word that something was missed.
        if self.missed == 0 && self.to.try_send(event.clone()).is_ok() {
            return true;
        }
        self.missed += 1;
        !self.to.is_closed()
    }
}

/// The events of a set, as a stream. It ends when the set and all that belongs to it is gone.
///
/// ```
/// # use moored_client::{ServerSet, ServerSpec, SetOptions};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
/// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
/// let mut events = set.events();
/// drop(set);
/// let mut seen = 0;
/// while events.next().await.is_some() {
///     seen += 1;
/// }
/// assert_eq!(seen, 1, "the end of the one server; then the stream's own end");
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Events(mpsc::Receiver<Event>);

impl Events {
    /// The next one; `None` when there will be no more.
    ///
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// use moored_client::Event;
    /// let mut events = set.events();
    /// set.restart("echo").await?;
    /// assert!(matches!(events.next().await, Some(Event::Ended { .. })));
    /// assert!(matches!(events.next().await, Some(Event::Started { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn next(&mut self) -> Option<Event> {
        self.0.recv().await
    }

    /// The next one, if it is there already.
    ///
    /// ```
    /// # use moored_client::{ServerSet, ServerSpec, SetOptions};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
    /// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
    /// let mut events = set.events();
    /// assert!(events.try_next().is_none(), "nothing has happened since");
    /// drop(set);
    /// assert!(events.try_next().is_some(), "it was told before the drop returned");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_next(&mut self) -> Option<Event> {
        self.0.try_recv().ok()
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.poll_recv(cx)
    }
}

/// All listeners of a set.
#[derive(Debug, Default)]
pub(crate) struct Bus(Mutex<Vec<EventSender>>);

impl Bus {
    pub(crate) fn new(first: Option<EventSender>) -> Self {
        Self(Mutex::new(first.into_iter().collect()))
    }

    pub(crate) fn tell(&self, event: &Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain_mut(|listener| listener.tell(event));
    }

    pub(crate) fn listen(&self) -> Events {
        let (sender, events) = events();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: usize) -> Event {
        Event::Connected { name: number.to_string() }
    }

    #[test]
    fn a_listener_that_does_not_read_is_told_what_it_missed() {
        let (sender, mut events) = events();
        let bus = Bus::new(Some(sender));
        (0..ROOM + 3).for_each(|number| bus.tell(&event(number)));
        (0..2).for_each(|_| assert!(matches!(events.try_next(), Some(Event::Connected { .. }))));
        bus.tell(&event(0));
        let rest: Vec<_> = std::iter::from_fn(|| events.try_next()).collect();
        assert_eq!(rest.len(), ROOM);
        assert!(
            matches!(rest[ROOM - 2..], [Event::Missed { count: 3 }, Event::Connected { .. }]),
            "{rest:?}"
        );
    }

    #[test]
    fn a_listener_that_is_gone_is_forgotten() {
        let (sender, events) = events();
        let bus = Bus::new(Some(sender));
        drop(events);
        bus.tell(&event(1));
        assert!(bus.0.lock().expect("no panic").is_empty());
    }
}
