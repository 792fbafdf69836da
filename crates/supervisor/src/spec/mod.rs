//! What to run and by which rules: values, made from argv and settings, that know no clock and no process.

mod mask;
mod name;
mod rules;

pub use mask::{masked, masked_text};
pub use name::server_name;
pub use rules::{Idle, OverLimit, Restart, Rules};

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One server: its command, where it runs, and the rules for its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSpec {
    /// What it is called in `ps`, the log and the ledger.
    pub name: String,
    /// Program and arguments, as they were given; never empty.
    pub command: Vec<OsString>,
    /// Where it runs: where we were started.
    pub cwd: PathBuf,
    /// The environment, which is ours unchanged; only for telling entries apart.
    pub env: BTreeMap<OsString, OsString>,
    /// The rules for its life.
    pub rules: Rules,
}

impl ServerSpec {
    /// The command for people and files: secrets are masked.
    #[must_use]
    pub fn masked_command(&self) -> Vec<String> {
        masked(&self.command)
    }

    /// What all instances of the same server share: its name and its command.
    #[must_use]
    pub fn server_key(&self) -> Key {
        Key::of(&(&self.name, &self.command))
    }

    /// What all instances of one entry of a client's config share: command, folder and environment.
    #[must_use]
    pub fn entry_key(&self) -> Key {
        Key::of(&(&self.command, &self.cwd, &self.env))
    }
}

/// A number that stands for a value that we do not want to write down whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(u64);

impl Key {
    fn of(value: &impl std::hash::Hash) -> Self {
        // Its keys are fixed, so two runs of one build agree; two builds need not.
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
