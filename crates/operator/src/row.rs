//! What is shown of a server. Other programs read this form: the names of the fields are part of the contract.

use jiff::Timestamp;
use moored_containment::{Layer, Strength, StrengthLevel};
use serde::Serialize;

pub use moored_registry::Origin;
use moored_registry::control::RunState;

/// Whether a server still has a client that needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// Its client is alive.
    Attached,
    /// A newer instance serves the same client.
    Superseded,
    /// Its client is gone, and it is not yet.
    Lingering,
    /// It cannot be told.
    Unknown,
}

/// Who asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClientRow {
    /// Its number.
    pub pid: u32,
    /// What it is called.
    pub name: String,
}

/// How strongly it is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContainmentRow {
    /// In one word.
    pub strength: StrengthLevel,
    /// In detail.
    pub layers: Vec<Layer>,
}

impl From<&Strength> for ContainmentRow {
    fn from(strength: &Strength) -> Self {
        Self { strength: strength.level, layers: strength.layers.clone() }
    }
}

/// One process of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessRow {
    /// Its number.
    pub pid: u32,
    /// Its parent's.
    pub ppid: u32,
    /// Its argv, secrets masked.
    pub command: Vec<String>,
    /// What it has in memory.
    pub rss_bytes: u64,
    /// Its state's letter, as in `ps`.
    pub state: char,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerRow {
    /// Its name for programs.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Who started it.
    pub origin: Origin,
    /// What it is doing.
    pub state: RunState,
    /// Whether it still has a client that needs it.
    pub verdict: Verdict,
    /// A sentence with the facts behind the verdict.
    pub reason: String,
    /// The server process, if there is one.
    pub pid: Option<u32>,
    /// Who asked for it.
    pub client: Option<ClientRow>,
    /// Its argv, secrets masked.
    pub command: Vec<String>,
    /// Its working directory.
    pub cwd: String,
    /// The client's config in which it stands, if that is known.
    pub config_file: Option<String>,
    /// When its `run` began, by the wall clock.
    pub started_at: Timestamp,
    /// When it ended, by the wall clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// What moored exited with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How long its `run` has lived, on a clock that does not step; for one that ended, by the wall clock.
    pub uptime_seconds: f64,
    /// What all of its processes have in memory.
    pub rss_bytes: u64,
    /// What all of its processes have used of one processor over their lives.
    pub cpu_percent: f64,
    /// How strongly it is held; nothing holds what does not exist.
    pub containment: ContainmentRow,
    /// The server and all below it.
    pub processes: Vec<ProcessRow>,
    /// Its containers.
    pub containers: Vec<String>,
    /// Its version, as it or the command line said.
    pub server_version: Option<String>,
    /// Whether the disk has something newer than what runs.
    pub stale: bool,
    /// How many clients it serves.
    pub sessions: u32,
    /// When a message last passed, by the wall clock.
    pub last_activity_at: Option<Timestamp>,
}
