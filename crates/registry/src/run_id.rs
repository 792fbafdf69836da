//! The id of a session: what its files in the runtime folder are called, and what operators name it by.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of one `run`: unique, and in the order of their starts. It stays the same when its server sleeps and wakes,
/// which gives each waking a [`SessionId`](moored_containment::SessionId) of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(ulid::Ulid);

impl RunId {
    /// A new one.
    #[must_use]
    pub fn generate() -> Self {
        Self(ulid::Ulid::generate())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RunId {
    type Err = ParseRunIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|_| ParseRunIdError)
    }
}

/// It is no id of a `run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id is 26 letters and digits")]
pub struct ParseRunIdError;
