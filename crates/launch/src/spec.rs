//! One server of `moored run`: what to launch, the process that it is launched from, and the rules for its life.

use std::path::PathBuf;

use crate::environment::ProcessEnv;
use crate::key::Key;
use crate::launch::{Launch, LaunchStdio};
use crate::rules::Rules;

/// One server: what to launch, and the rules for its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSpec {
    /// What to launch.
    pub launch: Launch,
    /// Our own folder and variables, which the server has where the launch does not say otherwise.
    pub process_env: ProcessEnv,
    /// The rules for its life.
    pub rules: Rules,
}

impl ServerSpec {
    /// Whether the server gets our own stdio, and we only watch (`--direct`).
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.launch.stdio == LaunchStdio::INHERITED
    }

    /// Its working directory.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        self.launch.cwd_in(&self.process_env)
    }

    /// What all instances of one entry of a client's config share.
    #[must_use]
    pub fn entry_key(&self) -> Key {
        self.launch.entry_key(&self.process_env)
    }
}
