//! What happened: the one vocabulary. The ledger, the log and `moored events` only listen to it.
//!
//! An event says what was seen, with the facts as fields; it decides nothing. Times are the wall clock's, for people:
//! no age and no bound is ever computed from them.

use std::path::PathBuf;

use jiff::Timestamp;
use moored_containment::{EndReport, ProcessIdentity, ServerExit, SessionId, Strength};
use serde::{Deserialize, Serialize};

pub use moored_registry::Client;
pub use moored_registry::control::{Counters, SleepReason};
pub use moored_registry::{ParseRunIdError, RunId};

/// Something that happened to one `run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, by the wall clock.
    pub at: Timestamp,
    /// To which `run`.
    pub run: RunId,
    /// Its server's name.
    pub server: String,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum What {
    /// A `run` began; its server does not exist yet.
    Begun(Begun),
    /// A server was started, for the first time or again.
    Started(Started),
    /// The server has answered `initialize`.
    Initialized {
        /// What it calls itself.
        server_name: Option<String>,
        /// The version that it gave, or that we were told.
        server_version: Option<String>,
    },
    /// The server was put to sleep: its tree is gone, the client's pipe stays.
    Hibernated {
        /// Why it was put to sleep.
        why: SleepReason,
        /// How its tree ended.
        report: EndReport,
    },
    /// It crashed, and is started again after a while.
    Restarting {
        /// Consecutive crashes, this one among them.
        attempt: u32,
        /// After how long.
        after_ms: u64,
        /// How it ended.
        exit: Option<ServerExit>,
    },
    /// What a dead session had left was ended.
    Swept {
        /// Whose it was.
        session: SessionId,
        /// How many processes.
        ended: u64,
        /// How many are still there.
        survivors: u64,
    },
    /// A promise was weakened, or something could not be done.
    Warned {
        /// In a sentence.
        message: String,
    },
    /// The `run` ended.
    Ended(Ended),
}

/// What is known of a `run` at its beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// The moored process.
    pub moored: ProcessIdentity,
    /// The version of moored.
    pub moored_version: String,
    /// The server's argv, secrets masked.
    pub command: Vec<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Who asked for it.
    pub client: Option<Client>,
    /// Where the server's stderr is kept, if it is. Older versions did not say.
    #[serde(default)]
    pub log_file: Option<PathBuf>,
}

/// A server that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Its containment.
    pub session: SessionId,
    /// Itself.
    pub process: ProcessIdentity,
    /// How strongly it is held.
    pub strength: Strength,
    /// Why now.
    pub why: StartReason,
}

/// Why a server was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartReason {
    /// The `run` began.
    First,
    /// A message came for a sleeping server.
    Wake,
    /// It had crashed.
    Restart,
}

/// Why a `run` ended. The first reason stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndCause {
    /// The client closed the server's input.
    ClientEof,
    /// The process that held the other end of stdin died.
    ClientGone,
    /// This signal.
    Signal(i32),
    /// The server ended by itself.
    ServerExited,
    /// An operator said `stop`.
    Operator,
    /// A newer `run` was told to stop the oldest.
    OverLimit,
    /// moored itself was killed; the guardians ended the tree.
    MooredKilled,
    /// The server could not be started, or not again.
    StartFailed,
    /// It had crashed so often that it was not started.
    CrashLoop,
}

/// How a `run` ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// Why it ended.
    pub why: EndCause,
    /// What moored exits with; `None` if it was killed.
    pub exit_code: Option<i32>,
    /// What was counted.
    pub counters: Counters,
    /// How the last process tree ended; `None` if there was none at the end.
    pub report: Option<EndReport>,
}
