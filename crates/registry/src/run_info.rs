//! What a session says of itself in its registration file.

use std::path::PathBuf;

use jiff::Timestamp;
use moored_containment::ProcessIdentity;
use moored_launch::Key;
use serde::{Deserialize, Serialize};

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
    /// When it began, by the wall clock.
    pub started_at: Timestamp,
    /// Where the server's stderr is kept.
    pub log_file: Option<PathBuf>,
    /// Where its PID file is.
    pub pid_file: Option<PathBuf>,
    /// How many instances of this server may be awake at once.
    pub max_instances: Option<u32>,
}
