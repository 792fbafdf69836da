//! Who starts the session, and which layers hold it.

use std::fmt;

use moored_testkit::{User, lacking};

use crate::cgroups;

/// A set of layers: these are required, all others are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layers {
    pub(crate) name: &'static str,
    /// In the order in which a report lists them.
    pub(crate) held_by: &'static [&'static str],
}

const ALL: [&str; 4] = ["guardian", "cgroup", "landlock", "pidns"];

pub(crate) const LOOP: Layers = Layers { name: "loop", held_by: &["guardian"] };
pub(crate) const CGROUP: Layers = Layers { name: "cgroup", held_by: &["guardian", "cgroup"] };
pub(crate) const SEALED: Layers = Layers { name: "sealed", held_by: &["guardian", "landlock"] };
pub(crate) const STRICT: Layers = Layers { name: "strict", held_by: &["guardian", "pidns"] };
pub(crate) const SEALED_CGROUP: Layers =
    Layers { name: "sealed+cgroup", held_by: &["guardian", "cgroup", "landlock"] };
pub(crate) const STRICT_CGROUP: Layers =
    Layers { name: "strict+cgroup", held_by: &["guardian", "cgroup", "pidns"] };

impl Layers {
    pub(crate) fn has(&self, layer: &str) -> bool {
        self.held_by.contains(&layer)
    }

    /// The owner's switches that ask for exactly these.
    pub(crate) fn switches(&self) -> impl Iterator<Item = &'static str> {
        ALL.into_iter().flat_map(|layer| [if self.has(layer) { "--require" } else { "--off" }, layer])
    }

    /// The strength in one word.
    pub(crate) fn level(&self) -> &'static str {
        match self.held_by {
            [] => "group",
            ["guardian"] => "loop",
            _ => "kernel",
        }
    }
}

/// A user and a set of layers: one test of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) user: User,
    pub(crate) layers: Layers,
}

const fn setting(user: User, layers: Layers) -> Setting {
    Setting { user, layers }
}

/// Every setting of the matrix. Root cannot be sealed, and the plain user needs no stricter than strict.
pub(crate) const SETTINGS: [Setting; 9] = [
    setting(User::Root, LOOP),
    setting(User::Root, CGROUP),
    setting(User::Root, STRICT),
    setting(User::Root, STRICT_CGROUP),
    setting(User::Plain, LOOP),
    setting(User::Plain, CGROUP),
    setting(User::Plain, SEALED),
    setting(User::Plain, STRICT),
    setting(User::Plain, SEALED_CGROUP),
];

impl Setting {
    /// Why it cannot be had here; only root can act as both users, and delegate a group.
    pub(crate) fn unavailable(self) -> Option<&'static str> {
        match self {
            _ if !User::available().contains(&self.user) => Some("the tests do not run as root"),
            Self { layers, .. } if !layers.has("cgroup") => None,
            _ if User::current() != User::Root => Some("only root can delegate a cgroup"),
            _ if cgroups::group_of(std::process::id()).is_none() => {
                lacking("a cgroup v2 hierarchy");
                Some("no cgroup v2 hierarchy is mounted")
            }
            _ => None,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = match self.user {
            User::Root => "root",
            User::Plain => "plain",
        };
        write!(f, "{user}/{}", self.layers.name)
    }
}
