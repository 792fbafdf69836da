//! How a session ends: who does what, and what must be true of it afterwards.

use std::time::{Duration, Instant};

use crate::stage::{Stage, Who};

/// The ladder of the matrix, short: 150 ms after EOF, 150 ms after SIGTERM.
pub(crate) const SHORT_LADDER: [&str; 4] = ["--grace", "150", "--kill-after", "150"];
const SHORT_BOUND: Duration = Duration::from_millis(300);
/// The library's own ladder for a dropped handle.
const DROP_BOUND: Duration = Duration::from_millis(500);
/// No bound is promised for what is left to a sweep: this one only passes when something is wrong.
const SWEEP_BOUND: Duration = Duration::from_secs(60);

/// One ending of the matrix.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) name: &'static str,
    /// For the owner.
    pub(crate) owner: &'static [&'static str],
    /// For the server.
    pub(crate) server: &'static [&'static str],
    pub(crate) cause: Cause,
    pub(crate) owner_exits: OwnerExits,
    pub(crate) report: Option<Expected>,
    /// When the last of them is killed, if nobody is late.
    pub(crate) bound: Duration,
}

/// What brings the ending about, once everything is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The owner is told to go on, and does it.
    Owner,
    /// The server, which does not stay.
    Server,
    /// SIGKILL from outside, one right after the other.
    Killed(&'static [Who]),
    /// The same, but all are stopped first, so that none can react to the death of another.
    KilledAtOnce(&'static [Who]),
    /// SIGKILL to the owner's process group.
    GroupKilled,
}

/// How the owner itself must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnerExits {
    Code(i32),
    Signal(i32),
}

/// What its report must say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) reason: &'static str,
    pub(crate) verified: bool,
}

const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;

const fn by_owner(name: &'static str, owner: &'static [&'static str]) -> Ending {
    Ending {
        name,
        owner,
        server: &[],
        cause: Cause::Owner,
        owner_exits: OwnerExits::Code(0),
        report: None,
        bound: SHORT_BOUND,
    }
}

const fn reported(ending: Ending, reason: &'static str) -> Ending {
    Ending { report: Some(Expected { reason, verified: true }), ..ending }
}

/// The owner dies with the session.
const fn killed(name: &'static str, cause: Cause) -> Ending {
    let owner_exits = OwnerExits::Signal(SIGKILL);
    Ending { cause, owner_exits, ..by_owner(name, &["--ending", "hold"]) }
}

/// The owner lives and waits.
const fn guardian_killed(name: &'static str, who: &'static [Who]) -> Ending {
    let ending = by_owner(name, &["--ending", "wait"]);
    reported(Ending { cause: Cause::Killed(who), ..ending }, "guardian-died")
}

/// Every ending of the matrix.
pub(crate) const ENDINGS: [Ending; 18] = [
    reported(by_owner("end", &["--ending", "end"]), "requested"),
    Ending { bound: DROP_BOUND, ..by_owner("drop", &["--ending", "drop"]) },
    by_owner("return", &["--ending", "return"]),
    Ending { owner_exits: OwnerExits::Code(7), ..by_owner("exit", &["--ending", "exit"]) },
    Ending {
        owner_exits: OwnerExits::Code(101),
        bound: DROP_BOUND,
        ..by_owner("panic", &["--ending", "panic"])
    },
    Ending { owner_exits: OwnerExits::Signal(SIGABRT), ..by_owner("abort", &["--ending", "abort"]) },
    reported(by_owner("async-end", &["--async", "--ending", "end"]), "requested"),
    Ending { bound: DROP_BOUND, ..by_owner("async-drop-without-runtime", &["--async", "--ending", "drop"]) },
    Ending {
        cause: Cause::Server,
        server: &["--exit-now", "3"],
        ..reported(by_owner("server-exits", &["--ending", "wait"]), "server-exited")
    },
    killed("owner-killed", Cause::Killed(&[Who::Owner])),
    killed("owner-group-killed", Cause::GroupKilled),
    guardian_killed("outer-killed", &[Who::Outer]),
    guardian_killed("inner-killed", &[Who::Inner]),
    killed("owner-and-outer-killed", Cause::Killed(&[Who::Outer, Who::Owner])),
    killed("owner-and-inner-killed", Cause::Killed(&[Who::Inner, Who::Owner])),
    Ending {
        // Nobody who could prove it is left; the owner finds by mark what there is.
        report: Some(Expected { reason: "guardians-died", verified: false }),
        cause: Cause::KilledAtOnce(&[Who::Outer, Who::Inner]),
        bound: SWEEP_BOUND,
        ..by_owner("both-guardians-killed", &["--ending", "wait"])
    },
    Ending {
        bound: SWEEP_BOUND,
        ..killed("all-killed-at-once", Cause::KilledAtOnce(&[Who::Owner, Who::Outer, Who::Inner]))
    },
    Ending {
        owner: &["--async", "--ending", "wait"],
        ..guardian_killed("async-inner-killed", &[Who::Inner])
    },
];

impl Ending {
    /// Brings it about, and tells when it began.
    pub(crate) fn bring_about(&self, stage: &Stage) -> Instant {
        let began = Instant::now();
        stage.go();
        match self.cause {
            Cause::Owner | Cause::Server => began,
            Cause::Killed(who) => stage.kill(who),
            Cause::KilledAtOnce(who) => stage.kill_at_once(who),
            Cause::GroupKilled => stage.kill_owner_group(),
        }
    }

    /// Whether the one guardian that is left may have handed its last duties to the other just before that one died: the
    /// tree is gone in time, and the record may be left to the next start.
    pub(crate) fn may_leave_a_record(&self) -> bool {
        matches!(self.cause, Cause::Killed([_, _]))
    }

    /// Whether the owner has to end the session by itself.
    pub(crate) fn leaves_the_owner_alone(&self) -> bool {
        matches!(self.cause, Cause::KilledAtOnce([Who::Outer, Who::Inner]))
    }

    /// Whether nobody of ours is left to end the session, so that only the kernel or the next start can.
    pub(crate) fn leaves_nobody(&self) -> bool {
        matches!(self.cause, Cause::KilledAtOnce([Who::Owner, Who::Outer, Who::Inner]))
    }
}
