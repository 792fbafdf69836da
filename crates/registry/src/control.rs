//! The protocol of a session's control socket: one line of JSON asks, one line answers. The client side is
//! [`RegisteredRun::ask`](crate::RegisteredRun::ask), the server side `control_server`; this file owns the words.

use jiff::Timestamp;
use moored_containment::{EndReport, ProcessIdentity, SessionId, Strength};
use serde::{Deserialize, Serialize};

pub use crate::superseding::Superseded;

/// What can be asked of a `run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Request {
    /// How are you?
    Status,
    /// End by the ladder; answered when the tree is gone and proven so.
    Stop {
        /// For whom.
        by: StopBy,
    },
    /// Put the server to sleep, unless it is busy; answered when its tree is gone.
    Hibernate {
        /// Why.
        why: SleepReason,
    },
}

/// Who wants a `run` to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopBy {
    /// An operator: `moored stop`.
    Operator,
    /// A newer `run` with `--over-limit stop-oldest`.
    OverLimit,
}

/// What a `run` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// This is how I am.
    Status(Box<Status>),
    /// It has ended; with the report of its tree, if it had one.
    Stopped {
        /// How the tree ended.
        report: Option<EndReport>,
    },
    /// It sleeps.
    Hibernating {
        /// How the tree ended; none if it slept already.
        report: Option<EndReport>,
    },
    /// It will not.
    Refused {
        /// Why, as the end of "refused: …".
        reason: String,
    },
}

/// What a `run` is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// The server is being started, or has not answered `initialize`.
    Starting,
    /// It serves.
    Running,
    /// The server is gone, the client's pipe is kept, and the next message starts it again.
    Hibernating,
    /// The server crashed too often, and is not started for a while; calls are answered with an error until then.
    BackingOff,
    /// It is being ended.
    Ending,
    /// It has ended.
    Ended,
}

/// How a `run` is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// What it is doing.
    pub state: RunState,
    /// The containment of the server, unless it sleeps.
    pub session: Option<SessionId>,
    /// The server, unless it sleeps.
    pub server: Option<ProcessIdentity>,
    /// Its guardians, outer and inner.
    pub guardians: Vec<ProcessIdentity>,
    /// How strongly it is held.
    pub strength: Option<Strength>,
    /// Its version, as it or the command line said.
    pub server_version: Option<String>,
    /// Whether the disk has something newer than what runs, and what.
    pub stale: Option<String>,
    /// When a message last passed.
    pub last_activity_at: Option<Timestamp>,
    /// How long ago that was, on a clock that does not step.
    pub silent_ms: u64,
    /// Calls that are not answered yet, in both directions.
    pub in_flight: u64,
    /// Resources that the client has subscribed to.
    pub subscriptions: u64,
    /// What was counted.
    pub counters: Counters,
    /// Who has taken its place for the same client.
    pub superseded_by: Option<Superseded>,
}

/// Why a server was put to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SleepReason {
    /// Silent for as long as `--idle` says.
    Idle,
    /// A newer instance serves the same client, and this one has been silent.
    Superseded,
    /// Another start would have been one too many.
    OverLimit,
    /// It had lived for `--max-lifetime`.
    Lifetime,
    /// An operator asked for it.
    Operator,
}

/// What was counted over the life of a `run`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Bytes from the client to the server.
    pub bytes_to_server: u64,
    /// Bytes from the server to the client.
    pub bytes_to_client: u64,
    /// Messages from the client.
    pub messages_to_server: u64,
    /// Messages from the server.
    pub messages_to_client: u64,
    /// How often the server was started after having slept.
    pub wakes: u64,
    /// How often after having crashed.
    pub restarts: u64,
}
