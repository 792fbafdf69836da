//! The words of the state machine: phases, what can happen, what can be ordered.

use std::time::Duration;

use moored_containment::Rung;

use crate::event::{EndCause, StartReason};

/// SIGINT has this number everywhere.
pub(super) const INTERRUPT: i32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Phase {
    /// Other instances are asked to make room.
    Queued(StartReason),
    /// The client left before there was room for a first start; what came of making room is waited for.
    Dequeued(EndCause),
    Starting(StartReason),
    /// It is being started, and ended from this rung as soon as it is there.
    Doomed {
        why: StartReason,
        cause: EndCause,
        from: Rung,
    },
    Serving,
    /// ^C was passed on.
    Interrupted,
    Ending(EndCause),
    FallingAsleep,
    Asleep,
    /// The server crashed, and what it left is being ended.
    Crashed,
    BackingOff,
    /// It crashed too often, and is not started for a while.
    Tripped,
    Ended(EndCause),
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Trigger {
    /// There is room for the server.
    RoomMade,
    /// There is none, and the session is to end by that.
    NoRoom,
    /// The server runs.
    Started,
    /// It could not be started.
    StartFailed,
    /// The client said something that waits for a server.
    Message,
    /// The client closed its end. `wanted` calls are unanswered that it still reads the answers of, for `patience` at most.
    Eof {
        wanted: usize,
        patience: Duration,
    },
    /// The client is dead, or reads no more.
    ClientGone,
    Signal(Signal),
    /// The server ended by itself.
    Exited(Exit),
    /// Nothing of the tree is left.
    TreeGone,
    /// No call is unanswered any more.
    Quiet,
    /// The time that was asked for is over.
    Fired(Timer),
    Hibernate,
    Stop(EndCause),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Signal {
    /// SIGTERM, SIGHUP or SIGQUIT, by number.
    End(i32),
    /// SIGINT.
    Interrupt,
}

impl Signal {
    pub(super) fn cause(self) -> EndCause {
        match self {
            Self::End(number) => EndCause::Signal(number),
            Self::Interrupt => EndCause::Signal(INTERRUPT),
        }
    }
}

/// How a server ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Exit {
    /// The session ends with it.
    Done,
    /// It is to be started again, after having lived for so long.
    Crashed { lived: Duration },
}

/// Two clocks run for a life: one per phase, which is reset by a change of phase, and one from the client's EOF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Timer {
    Phase,
    Drain,
}

/// Something to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Order {
    /// `RoomMade` or `NoRoom` is to follow.
    MakeRoom(StartReason),
    /// Room is not waited for any more. `NoRoom` is to follow, unless some has just been made.
    LeaveQueue,
    /// `Started` or `StartFailed` is to follow.
    Start(StartReason),
    /// The server's stdin is closed when what waits for it is written.
    CloseInput,
    /// The ladder, from this rung; `TreeGone` is to follow.
    End(Rung),
    /// SIGINT to the server.
    PassInterrupt,
    /// `Fired` is to follow after this long.
    SetTimer(Timer, Duration),
    /// Calls that the server has not answered are answered with an error.
    FailCalls,
    /// So are messages that wait for a server.
    FailPending,
}

/// Whether the number of awake instances is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Limit {
    None,
    Instances,
}

/// How a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Begin {
    Start,
    /// The server crashed too often lately, and is not started for this long.
    Tripped(Duration),
}
