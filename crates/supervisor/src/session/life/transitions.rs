//! What follows in each phase, where neither the limit nor the crashes of the life matter.

use moored_containment::Rung;

use super::vocabulary::Order::{
    CloseInput, End, FailCalls, FailPending, LeaveQueue, MakeRoom, SetTimer, Start,
};
use super::vocabulary::{INTERRUPT, Limit, Order, Phase, Timer, Trigger};
use crate::event::{EndCause, StartReason};

/// The next phase, and what is to be done.
pub(super) type Next = (Phase, Vec<Order>);

/// The reason of an end while the client waits for answers is the EOF that came first. A start that failed is another.
pub(super) fn caused_by_eof(phase: Phase) -> Phase {
    match phase {
        Phase::Ending(_) => Phase::Ending(EndCause::ClientEof),
        Phase::Doomed { why, from, .. } => Phase::Doomed { why, cause: EndCause::ClientEof, from },
        Phase::Dequeued(_) => Phase::Dequeued(EndCause::ClientEof),
        Phase::Ended(cause) if cause != EndCause::StartFailed => Phase::Ended(EndCause::ClientEof),
        other => other,
    }
}

/// Whether answers can still come in this phase.
pub(super) fn may_drain(phase: Phase) -> bool {
    !matches!(
        phase,
        Phase::Ended(_) | Phase::Ending(_) | Phase::Doomed { .. } | Phase::Dequeued(_) | Phase::Interrupted
    )
}

/// A server is to be there. Room is made for a first start and for a wake; one that crashed had its place.
pub(super) fn start(why: StartReason, limit: Limit) -> Next {
    match (limit, why) {
        (Limit::Instances, StartReason::First | StartReason::Wake) => {
            (Phase::Queued(why), vec![MakeRoom(why)])
        }
        (Limit::None, _) | (_, StartReason::Restart) => (Phase::Starting(why), vec![Start(why)]),
    }
}

/// The client will say no more, and waits for nothing.
pub(super) fn without_client(phase: Phase, cause: EndCause) -> Next {
    match phase {
        Phase::Serving => close(cause),
        Phase::Starting(why) => (Phase::Doomed { why, cause, from: Rung::Close }, vec![]),
        Phase::FallingAsleep | Phase::Crashed => (Phase::Ending(cause), vec![]),
        // ^C is often followed by the end of the client: no reason for less patience.
        Phase::Interrupted | Phase::Ending(_) => (phase, vec![CloseInput]),
        Phase::Queued(StartReason::First) => (Phase::Dequeued(cause), vec![LeaveQueue]),
        Phase::Queued(_) | Phase::Asleep | Phase::BackingOff | Phase::Tripped => over(cause),
        Phase::Dequeued(_) | Phase::Doomed { .. } | Phase::Ended(_) => (phase, vec![]),
    }
}

/// The answers did not come in the time that the bound leaves for them.
pub(super) fn out_of_patience(phase: Phase) -> Next {
    match phase {
        Phase::Serving => terminate(EndCause::ClientEof),
        other => without_client(other, EndCause::ClientEof),
    }
}

pub(super) fn queued(why: StartReason, trigger: Trigger) -> Next {
    match trigger {
        Trigger::RoomMade => (Phase::Starting(why), vec![Start(why)]),
        Trigger::NoRoom if why == StartReason::First => over(EndCause::StartFailed),
        Trigger::NoRoom => (Phase::Asleep, vec![FailPending]),
        // A client that waits for an answer before it leaves does not wait for all the time that making room may take.
        Trigger::Eof { patience, .. } if why == StartReason::Wake => {
            (Phase::Queued(why), vec![SetTimer(Timer::Phase, patience / 2)])
        }
        Trigger::Fired(_) => (Phase::Starting(why), vec![Start(why)]),
        Trigger::Signal(signal) => over(signal.cause()),
        Trigger::Stop(cause) => over(cause),
        // Messages wait. There is no server to which anything else could happen.
        _ => (Phase::Queued(why), vec![]),
    }
}

pub(super) fn dequeued(cause: EndCause, trigger: Trigger) -> Next {
    match trigger {
        // A stdin that was at its end from the start is no reason not to run.
        Trigger::RoomMade if cause == EndCause::ClientEof => {
            let why = StartReason::First;
            (Phase::Doomed { why, cause, from: Rung::Close }, vec![Start(why)])
        }
        Trigger::RoomMade => over(cause),
        Trigger::NoRoom => over(EndCause::StartFailed),
        Trigger::Signal(_) | Trigger::Stop(_) => over(cause),
        // There is no server to which anything else could happen.
        _ => (Phase::Dequeued(cause), vec![]),
    }
}

pub(super) fn starting(why: StartReason, trigger: Trigger) -> Next {
    match trigger {
        Trigger::Started => (Phase::Serving, vec![]),
        Trigger::StartFailed if why == StartReason::First => over(EndCause::StartFailed),
        // The client is still there: its calls fail, and the next one is another try.
        Trigger::StartFailed => (Phase::Asleep, vec![FailCalls, FailPending]),
        Trigger::Signal(signal) => {
            (Phase::Doomed { why, cause: signal.cause(), from: Rung::Terminate }, vec![])
        }
        Trigger::Stop(cause) => (Phase::Doomed { why, cause, from: Rung::Close }, vec![]),
        // Messages wait. There is no server to which anything else could happen.
        _ => (Phase::Starting(why), vec![]),
    }
}

pub(super) fn doomed(why: StartReason, cause: EndCause, from: Rung, trigger: Trigger) -> Next {
    match trigger {
        Trigger::Started => (Phase::Ending(cause), vec![CloseInput, End(from)]),
        // A first start that failed says so by the exit code; the client of a later one has left.
        Trigger::StartFailed => over(cause),
        // The first reason stays, but a signal shortens the ladder.
        Trigger::Signal(_) => (Phase::Doomed { why, cause, from: Rung::Terminate }, vec![]),
        _ => (Phase::Doomed { why, cause, from }, vec![]),
    }
}

pub(super) fn interrupted(trigger: Trigger) -> Next {
    let cause = EndCause::Signal(INTERRUPT);
    match trigger {
        Trigger::Fired(_) | Trigger::Signal(_) | Trigger::Stop(_) => terminate(cause),
        Trigger::Eof { .. } => (Phase::Interrupted, vec![CloseInput]),
        Trigger::Exited(_) => (Phase::Ending(cause), vec![]),
        Trigger::TreeGone => over(cause),
        // The server is about to end: nothing is to be started or put to sleep.
        _ => (Phase::Interrupted, vec![]),
    }
}

pub(super) fn ending(cause: EndCause, trigger: Trigger) -> Next {
    match trigger {
        Trigger::TreeGone => over(cause),
        // Idempotent: a second one does not make it worse.
        Trigger::Signal(_) => (Phase::Ending(cause), vec![End(Rung::Terminate)]),
        Trigger::Eof { .. } => (Phase::Ending(cause), vec![CloseInput]),
        // The ladder runs, and only its proof is waited for.
        _ => (Phase::Ending(cause), vec![]),
    }
}

pub(super) fn falling_asleep(trigger: Trigger) -> Next {
    match trigger {
        Trigger::TreeGone => (Phase::Asleep, vec![]),
        Trigger::Signal(signal) => terminate(signal.cause()),
        Trigger::Stop(cause) => (Phase::Ending(cause), vec![]),
        // A message waits until it sleeps, and wakes it then.
        _ => (Phase::FallingAsleep, vec![]),
    }
}

pub(super) fn close(cause: EndCause) -> Next {
    (Phase::Ending(cause), vec![CloseInput, End(Rung::Close)])
}

pub(super) fn terminate(cause: EndCause) -> Next {
    (Phase::Ending(cause), vec![CloseInput, End(Rung::Terminate)])
}

pub(super) fn over(cause: EndCause) -> Next {
    (Phase::Ended(cause), vec![])
}
