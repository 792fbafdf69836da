//! The rules for a server's life under `moored run`, as the command line and the settings give them. How it is held and
//! ended is part of the launch description.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// When a server is put to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// When a newer instance serves the same client and this one has been silent for so long (30 minutes unless told
    /// otherwise), with nothing in flight, no subscription and no task.
    Auto(Duration),
    /// After this much silence.
    After(Duration),
    /// Never.
    Off,
}

impl Default for Idle {
    fn default() -> Self {
        Self::Auto(Duration::from_mins(30))
    }
}

/// What to do when a start would be one instance too many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverLimit {
    /// Put the longest idle one to sleep.
    #[default]
    Hibernate,
    /// End the oldest that is not busy.
    StopOldest,
    /// Do not start.
    Refuse,
}

/// What to do when the server crashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Exit as it did.
    #[default]
    Never,
    /// Start it again, later each time.
    OnCrash,
}

/// The rules for a server's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// When it is put to sleep.
    pub idle: Idle,
    /// After how long it is put to sleep for the sake of a fresh start, as soon as it is idle.
    pub max_lifetime: Option<Duration>,
    /// How many instances of this server may be awake at once.
    pub max_instances: Option<u32>,
    /// What to do when there would be more.
    pub over_limit: OverLimit,
    /// What to do when it crashes.
    pub restart: Restart,
    /// The version to show instead of the one that the server gives.
    pub server_version: Option<String>,
    /// Where to write the PID file.
    pub pid_file: Option<PathBuf>,
    /// Whether `get_server_info` is added to the server's tools.
    pub info_tool: bool,
    /// Where the server's stderr is kept, instead of the usual place.
    pub log_file: Option<PathBuf>,
    /// The longest message that is passed on.
    pub line_limit: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            idle: Idle::default(),
            max_lifetime: None,
            max_instances: None,
            over_limit: OverLimit::default(),
            restart: Restart::default(),
            server_version: None,
            pid_file: None,
            info_tool: false,
            log_file: None,
            line_limit: 64 << 20,
        }
    }
}
