//! The kinds of escapes in `escapes.pl`: who can try each, and whom it is directed against.

use moored_testkit::User;

use crate::common::ending::Ending;
use crate::common::hold::{Cell, Hold};

/// One kind of escape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// What `escapes.pl` calls it.
    pub(crate) name: &'static str,
    pub(crate) family: Family,
    pub(crate) against: Against,
    /// Only root can do it.
    root_only: bool,
    /// The server does not end at the end of its input, or nobody sees it: it is frozen itself, or both guardians are stopped and
    /// the owner waits for nobody else.
    hides_exit: bool,
}

/// By what a kind escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Clone,
    Threads,
    Namespaces,
    Parents,
    Change,
    Signals,
    Attributes,
    Cgroups,
    Guardians,
}

/// Whom of ours a kind stops or kills. What can be expected of the rest depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Against {
    Nobody,
    OneGuardian,
    BothGuardians,
}

const fn kind(family: Family, name: &'static str) -> Kind {
    Kind { name, family, against: Against::Nobody, root_only: false, hides_exit: false }
}

const fn against(against: Against, name: &'static str) -> Kind {
    Kind { against, ..kind(Family::Guardians, name) }
}

/// Every kind.
pub(crate) const KINDS: [Kind; 63] = [
    kind(Family::Clone, "clone-parent"),
    kind(Family::Clone, "clone-parent-again-and-again"),
    kind(Family::Clone, "clone-without-a-signal"),
    kind(Family::Clone, "clone-with-another-signal"),
    kind(Family::Clone, "clone-untraced"),
    kind(Family::Clone, "clone-that-shares-files"),
    kind(Family::Clone, "vfork-that-holds-its-parent"),
    kind(Family::Threads, "thread-that-forks"),
    kind(Family::Threads, "first-thread-gone"),
    kind(Family::Threads, "first-thread-gone-clone-parent"),
    kind(Family::Threads, "first-thread-of-the-server-gone"),
    kind(Family::Threads, "thread-that-execs"),
    kind(Family::Namespaces, "own-user-namespace"),
    kind(Family::Namespaces, "own-pid-namespace"),
    kind(Family::Namespaces, "pid-namespaces-three-deep"),
    kind(Family::Namespaces, "setns-into-another"),
    kind(Family::Namespaces, "own-mounts-without-proc"),
    kind(Family::Namespaces, "own-time-namespace"),
    kind(Family::Parents, "daemon"),
    kind(Family::Parents, "own-group"),
    kind(Family::Parents, "subreaper"),
    kind(Family::Parents, "subreapers-twenty-deep"),
    kind(Family::Parents, "subreaper-that-goes"),
    kind(Family::Parents, "chain-of-a-hundred"),
    kind(Family::Parents, "hundred-children"),
    kind(Family::Parents, "fifty-zombies"),
    kind(Family::Parents, "parent-death-signal"),
    kind(Family::Change, "storm"),
    kind(Family::Change, "storm-of-sessions"),
    kind(Family::Change, "exec-loop"),
    kind(Family::Change, "fork-at-term"),
    kind(Family::Change, "exec-at-term"),
    kind(Family::Signals, "all-signals-blocked"),
    kind(Family::Signals, "all-signals-ignored"),
    kind(Family::Signals, "stopped"),
    kind(Family::Signals, "stopped-again-and-again"),
    kind(Family::Signals, "traced-by-each-other"),
    kind(Family::Signals, "server-traced"),
    kind(Family::Attributes, "not-dumpable"),
    kind(Family::Attributes, "without-the-cookie"),
    kind(Family::Attributes, "without-limits-to-live-on"),
    kind(Family::Attributes, "odd-name"),
    kind(Family::Attributes, "named-like-a-guardian"),
    kind(Family::Attributes, "every-file-closed"),
    kind(Family::Attributes, "idle-and-nice"),
    kind(Family::Attributes, "io-uring"),
    Kind { root_only: true, ..kind(Family::Attributes, "another-user") },
    Kind { root_only: true, ..kind(Family::Attributes, "chroot") },
    kind(Family::Attributes, "record-removed"),
    kind(Family::Cgroups, "leaf-left"),
    kind(Family::Cgroups, "groups-inside-the-leaf"),
    kind(Family::Cgroups, "frozen"),
    Kind { hides_exit: true, ..kind(Family::Cgroups, "leaf-left-and-frozen") },
    kind(Family::Cgroups, "born-in-another-group"),
    Kind { against: Against::BothGuardians, ..kind(Family::Cgroups, "guardians-in-the-leaf") },
    against(Against::OneGuardian, "inner-stopped"),
    against(Against::OneGuardian, "outer-stopped"),
    Kind { hides_exit: true, ..against(Against::BothGuardians, "both-stopped") },
    against(Against::OneGuardian, "inner-killed"),
    against(Against::OneGuardian, "outer-killed"),
    against(Against::BothGuardians, "both-killed"),
    against(Against::BothGuardians, "inner-stopped-outer-killed"),
    kind(Family::Guardians, "guardians-without-files"),
];

impl Kind {
    /// Whether this user can try it, in a session that is held like this.
    pub(crate) fn can_be_tried_in(&self, (user, hold): Cell) -> bool {
        let has_what_it_needs = match self.family {
            Family::Cgroups => hold == Hold::Cgroup,
            _ => matches!(hold, Hold::Loop | Hold::Cgroup),
        };
        has_what_it_needs && (user == User::Root || !self.root_only)
    }

    /// Whether its session can end like this.
    pub(crate) fn can_end_by(&self, ending: Ending) -> bool {
        ending != Ending::InputCloses || !self.hides_exit
    }
}
