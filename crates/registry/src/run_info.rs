//! What a session says of itself in its registration file.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use moored_containment::{ProcessIdentity, SessionId};
use moored_launch::Key;
use serde::{Deserialize, Serialize};

use crate::boot_time::{from_ticks, since_boot};
use crate::run_id::RunId;

/// Who asked for the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// Its process id.
    pub pid: u32,
    /// Its identity, if its process could be looked at.
    pub identity: Option<ProcessIdentity>,
    /// What it is called: `claude`, `codex`, `node` ….
    pub name: String,
}

/// What kind of program runs a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Origin {
    /// `moored run`: one session, for the client at the other end of its stdio.
    #[default]
    Run,
    /// `moored serve`: many sessions, for clients that speak HTTP.
    Serve,
    /// A program that has its servers from the `moored-client` library.
    Client,
}

/// What does not change while a session lives: the content of its registration file. Other versions of moored read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Its id.
    pub run: RunId,
    /// The process that holds the lock: moored itself, or the host of a `moored-client` set.
    pub moored: ProcessIdentity,
    /// The version of moored.
    pub moored_version: String,
    /// The server's name.
    pub name: String,
    /// The server's argv, secrets masked.
    pub command: Vec<String>,
    /// The server's working directory.
    pub cwd: PathBuf,
    /// Which server: same for all its instances.
    pub server_key: Key,
    /// Which entry of a client's config: same for all that were started from it.
    pub entry_key: Key,
    /// Who asked for it.
    pub client: Option<Client>,
    /// Whether the client was seen to hold the other end of stdin. Older versions did not say.
    #[serde(default)]
    pub client_holds_stdin: bool,
    /// What kind of program runs the session. Older versions knew only `run`.
    #[serde(default)]
    pub origin: Origin,
    /// The session's own start, in milliseconds since boot (`CLOCK_BOOTTIME`). Older versions ran one session per process, and
    /// did not say: [`RunInfo::began`] has the start of the process for those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ms: Option<u64>,
    /// The containment of its server, where that stays the same for as long as the session is registered. One of `run` has a
    /// new one after each wake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// When it began, by the wall clock: for people.
    pub started_at: Timestamp,
    /// Where the server's stderr is kept.
    pub log_file: Option<PathBuf>,
    /// Where its PID file is.
    pub pid_file: Option<PathBuf>,
    /// How many instances of this server may be awake at once.
    pub max_instances: Option<u32>,
}

impl RunInfo {
    /// When the session began, on the clock since boot.
    #[must_use]
    pub fn began(&self) -> Duration {
        self.began_ms.map_or_else(|| from_ticks(self.moored.start_ticks), Duration::from_millis)
    }

    /// How long the session has lived, on a clock that does not step.
    #[must_use]
    pub fn age(&self) -> Duration {
        since_boot().saturating_sub(self.began())
    }

    /// Sorts sessions by their starts. Ids are in the order of the wall clock, which may have been set since: they only decide
    /// between two of the same millisecond.
    #[must_use]
    pub fn order(&self) -> (Duration, RunId) {
        (self.began(), self.run)
    }
}
