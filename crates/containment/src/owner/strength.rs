//! Which layers hold a containment: a value that the caller gets, never only a log line.

use std::fmt;

use crate::shared::board::layer;

/// A mechanism that holds a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Layer {
    /// The guardians are subreapers: whatever loses its parent falls to them, and they kill children until there is
    /// none. Without it they hold the server's process group only.
    Guardian,
    /// A cgroup v2 leaf, killed at one stroke.
    Cgroup,
    /// A Landlock domain, within which `kill(-1)` reaches everything and outside of it nothing. Opt-in ("sealed").
    Landlock,
    /// A PID namespace, which the kernel itself ends with its first process. Opt-in ("strict").
    Pidns,
}

impl Layer {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Guardian, Self::Cgroup, Self::Landlock, Self::Pidns];

    fn bit(self) -> u64 {
        match self {
            Self::Guardian => layer::GUARDIAN,
            Self::Cgroup => layer::CGROUP,
            Self::Landlock => layer::LANDLOCK,
            Self::Pidns => layer::PIDNS,
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guardian => "guardian",
            Self::Cgroup => "cgroup",
            Self::Landlock => "landlock",
            Self::Pidns => "pidns",
        })
    }
}

/// Whether a layer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Not even if it could be had.
    Off,
    /// If it can be had; [`Strength`] says whether it was.
    IfAvailable,
    /// Or else nothing is started at all.
    Required,
}

/// How strong a containment is, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum StrengthLevel {
    /// Nothing holds it.
    None,
    /// The server's process group: a `setsid` escapes it.
    Group,
    /// Guardian subreapers: a loop over children until there is none.
    Loop,
    /// Enforced by the kernel, at one stroke.
    Kernel,
}

/// How what is left could be found after all of our processes were killed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Findable {
    /// By the record and by a mark that every descendant carries.
    ByCookie,
    /// There is a record but no mark (too many sessions inside one another, or an administrator's own limit): a sweep
    /// knows of the session, but not who belongs to it.
    RecordOnly,
    /// Not at all: there is no record.
    No,
}

/// Which layers hold a containment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Strength {
    /// In one word.
    #[cfg_attr(feature = "serde", serde(rename = "strength"))]
    pub level: StrengthLevel,
    /// In detail.
    pub layers: Vec<Layer>,
    /// What a sweep could do.
    pub findable: Findable,
}

impl Strength {
    pub(crate) fn from_bits(bits: u64, recorded: bool) -> Self {
        let layers: Vec<Layer> = Layer::ALL.into_iter().filter(|layer| bits & layer.bit() != 0).collect();
        let level = match layers.as_slice() {
            [] => StrengthLevel::Group,
            [Layer::Guardian] => StrengthLevel::Loop,
            _ => StrengthLevel::Kernel,
        };
        let findable = match (recorded, bits & layer::COOKIE != 0) {
            (false, _) => Findable::No,
            (true, true) => Findable::ByCookie,
            (true, false) => Findable::RecordOnly,
        };
        Self { level, layers, findable }
    }

    /// Whether this layer holds.
    #[must_use]
    pub fn has(&self, layer: Layer) -> bool {
        self.layers.contains(&layer)
    }
}

impl fmt::Display for StrengthLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Group => "group",
            Self::Loop => "loop",
            Self::Kernel => "kernel",
        })
    }
}
