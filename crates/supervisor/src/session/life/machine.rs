//! The state machine: triggers in, orders out. See the module for the picture.

use std::time::Duration;

use moored_containment::Rung;
use moored_launch::{AfterCrash, BackOff, CrashLimit};

use crate::event::{EndCause, StartReason};

/// How long a server may take to end by the SIGINT that was passed on to it.
const INTERRUPTED: Duration = Duration::from_secs(1);
const BACK_OFF: BackOff = BackOff::RUN;
const CRASH_LIMIT: CrashLimit = CrashLimit::DEFAULT;
/// SIGINT has this number everywhere.
const INTERRUPT: i32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Phase {
    /// Other instances are asked to make room.
    Queued(StartReason),
    /// The client left before there was room for a first start; what came of making room is waited for.
    Dequeued(EndCause),
    Starting(StartReason),
    /// It is being started, and ended as soon as it is there.
    Doomed(EndCause),
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
    fn cause(self) -> EndCause {
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

use Order::{CloseInput, End, FailCalls, FailPending, LeaveQueue, MakeRoom, PassInterrupt, SetTimer, Start};

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

/// What a transition function returns: the next phase and what is to be done.
type Next = (Phase, Vec<Order>);

#[derive(Clone, Debug)]
pub(in crate::session) struct ServerLife {
    phase: Phase,
    limit: Limit,
    is_draining: bool,
    crashes_in_a_row: u32,
}

impl ServerLife {
    pub(in crate::session) fn begin(how: Begin, limit: Limit) -> (Self, Vec<Order>) {
        let (phase, orders) = match how {
            Begin::Start => start(StartReason::First, limit),
            Begin::Tripped(cooling) => (Phase::Tripped, vec![SetTimer(Timer::Phase, cooling)]),
        };
        (Self { phase, limit, is_draining: false, crashes_in_a_row: 0 }, orders)
    }

    pub(in crate::session) fn phase(&self) -> Phase {
        self.phase
    }

    pub(in crate::session) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// The client has closed its end, and waits for answers.
    pub(in crate::session) fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Whether a server is there that may be written to.
    pub(in crate::session) fn has_server(&self) -> bool {
        matches!(self.phase, Phase::Serving | Phase::Interrupted)
    }

    pub(in crate::session) fn crashes_in_a_row(&self) -> u32 {
        self.crashes_in_a_row
    }

    /// Takes in what happened, and says what is to be done. The only place where the phase changes.
    pub(in crate::session) fn handle(&mut self, trigger: Trigger) -> Vec<Order> {
        match trigger {
            Trigger::Exited(Exit::Crashed { lived }) => {
                self.crashes_in_a_row = BACK_OFF.count(self.crashes_in_a_row, lived);
            }
            // A server that was put to sleep had not crashed.
            Trigger::TreeGone if self.phase == Phase::FallingAsleep => self.crashes_in_a_row = 0,
            _ => {}
        }
        let (phase, mut orders) = self.next(trigger);
        if let Trigger::Eof { wanted: 1.., patience } = trigger
            && !self.is_draining
            && may_drain(phase)
        {
            self.is_draining = true;
            orders.push(SetTimer(Timer::Drain, patience));
        }
        self.phase = if self.is_draining { caused_by_eof(phase) } else { phase };
        orders
    }

    fn next(&self, trigger: Trigger) -> Next {
        match trigger {
            Trigger::Eof { wanted: 0, .. } => return without_client(self.phase, EndCause::ClientEof),
            Trigger::ClientGone => return without_client(self.phase, EndCause::ClientGone),
            Trigger::Quiet if self.is_draining => return without_client(self.phase, EndCause::ClientEof),
            Trigger::Fired(Timer::Drain) => return out_of_patience(self.phase),
            _ => {}
        }
        match self.phase {
            Phase::Queued(why) => queued(why, trigger),
            Phase::Dequeued(cause) => dequeued(cause, trigger),
            Phase::Starting(why) => starting(why, trigger),
            Phase::Doomed(cause) => doomed(cause, trigger),
            Phase::Serving => self.serving(trigger),
            Phase::Interrupted => interrupted(trigger),
            Phase::Ending(cause) => ending(cause, trigger),
            Phase::FallingAsleep => falling_asleep(trigger),
            Phase::Crashed => self.crashed(trigger),
            Phase::Asleep | Phase::BackingOff | Phase::Tripped => self.without_server(trigger),
            // Nothing comes after the end.
            Phase::Ended(_) => (self.phase, vec![]),
        }
    }

    fn serving(&self, trigger: Trigger) -> Next {
        match trigger {
            Trigger::Eof { .. } => (Phase::Serving, vec![CloseInput]),
            Trigger::Signal(signal) if self.is_draining => terminate(signal.cause()),
            Trigger::Signal(Signal::End(signal)) => terminate(EndCause::Signal(signal)),
            Trigger::Signal(Signal::Interrupt) => {
                (Phase::Interrupted, vec![PassInterrupt, SetTimer(Timer::Phase, INTERRUPTED)])
            }
            Trigger::Exited(Exit::Done) => (Phase::Ending(EndCause::ServerExited), vec![]),
            Trigger::Exited(Exit::Crashed { .. }) => (Phase::Crashed, vec![FailCalls]),
            // The guardians were killed, and the server with them.
            Trigger::TreeGone => over(EndCause::ServerExited),
            // The session is ending already; a sleep would be no less of an end.
            Trigger::Hibernate if self.is_draining => (Phase::Serving, vec![]),
            Trigger::Hibernate => (Phase::FallingAsleep, vec![CloseInput, End(Rung::Close)]),
            Trigger::Stop(cause) => close(cause),
            // Messages pass without us; a start is over; no phase timer is set.
            Trigger::Started
            | Trigger::StartFailed
            | Trigger::RoomMade
            | Trigger::NoRoom
            | Trigger::Message
            | Trigger::Quiet
            | Trigger::ClientGone
            | Trigger::Fired(_) => (Phase::Serving, vec![]),
        }
    }

    fn crashed(&self, trigger: Trigger) -> Next {
        match trigger {
            Trigger::TreeGone => match BACK_OFF.after_crash(self.crashes_in_a_row, CRASH_LIMIT) {
                AfterCrash::CoolFor(cooling) => {
                    (Phase::Tripped, vec![FailCalls, FailPending, SetTimer(Timer::Phase, cooling)])
                }
                // The client waits for an answer, and not for long.
                AfterCrash::StartAfter(_) if self.is_draining => start(StartReason::Restart, self.limit),
                AfterCrash::StartAfter(pause) => (Phase::BackingOff, vec![SetTimer(Timer::Phase, pause)]),
            },
            Trigger::Signal(signal) => terminate(signal.cause()),
            Trigger::Stop(cause) => (Phase::Ending(cause), vec![]),
            // What the server left is being ended; all else waits for that.
            _ => (Phase::Crashed, vec![]),
        }
    }

    /// Asleep, backing off or tripped: there is no tree, so an end is at once.
    fn without_server(&self, trigger: Trigger) -> Next {
        match (self.phase, trigger) {
            (_, Trigger::Signal(signal)) => over(signal.cause()),
            (_, Trigger::Stop(cause)) => over(cause),
            (Phase::Asleep, Trigger::Message | Trigger::Eof { .. }) => start(StartReason::Wake, self.limit),
            // A client that waits for answers does not wait for the pause.
            (Phase::BackingOff, Trigger::Fired(_) | Trigger::Eof { .. }) => {
                start(StartReason::Restart, self.limit)
            }
            // Its calls have been refused.
            (Phase::Tripped, Trigger::Eof { .. }) => over(EndCause::ClientEof),
            (Phase::Tripped, Trigger::Fired(_)) => (Phase::Asleep, vec![]),
            // A message waits while the server backs off, and is refused while it is tripped.
            (phase, _) => (phase, vec![]),
        }
    }
}

/// The reason of an end while the client waits for answers is the EOF that came first. A start that failed is another.
fn caused_by_eof(phase: Phase) -> Phase {
    match phase {
        Phase::Ending(_) => Phase::Ending(EndCause::ClientEof),
        Phase::Doomed(_) => Phase::Doomed(EndCause::ClientEof),
        Phase::Dequeued(_) => Phase::Dequeued(EndCause::ClientEof),
        Phase::Ended(cause) if cause != EndCause::StartFailed => Phase::Ended(EndCause::ClientEof),
        other => other,
    }
}

/// Whether answers can still come in this phase.
fn may_drain(phase: Phase) -> bool {
    !matches!(
        phase,
        Phase::Ended(_) | Phase::Ending(_) | Phase::Doomed(_) | Phase::Dequeued(_) | Phase::Interrupted
    )
}

/// A server is to be there. Room is made for a first start and for a wake; one that crashed had its place.
fn start(why: StartReason, limit: Limit) -> Next {
    match (limit, why) {
        (Limit::Instances, StartReason::First | StartReason::Wake) => {
            (Phase::Queued(why), vec![MakeRoom(why)])
        }
        (Limit::None, _) | (_, StartReason::Restart) => (Phase::Starting(why), vec![Start(why)]),
    }
}

/// The client will say no more, and waits for nothing.
fn without_client(phase: Phase, cause: EndCause) -> Next {
    match phase {
        Phase::Serving => close(cause),
        Phase::Starting(_) => (Phase::Doomed(cause), vec![]),
        Phase::FallingAsleep | Phase::Crashed => (Phase::Ending(cause), vec![]),
        // ^C is often followed by the end of the client: no reason for less patience.
        Phase::Interrupted | Phase::Ending(_) => (phase, vec![CloseInput]),
        Phase::Queued(StartReason::First) => (Phase::Dequeued(cause), vec![LeaveQueue]),
        Phase::Queued(_) | Phase::Asleep | Phase::BackingOff | Phase::Tripped => over(cause),
        Phase::Dequeued(_) | Phase::Doomed(_) | Phase::Ended(_) => (phase, vec![]),
    }
}

/// The answers did not come in the time that the bound leaves for them.
fn out_of_patience(phase: Phase) -> Next {
    match phase {
        Phase::Serving => terminate(EndCause::ClientEof),
        other => without_client(other, EndCause::ClientEof),
    }
}

fn queued(why: StartReason, trigger: Trigger) -> Next {
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

fn dequeued(cause: EndCause, trigger: Trigger) -> Next {
    match trigger {
        // A stdin that was at its end from the start is no reason not to run.
        Trigger::RoomMade if cause == EndCause::ClientEof => {
            (Phase::Doomed(cause), vec![Start(StartReason::First)])
        }
        Trigger::RoomMade => over(cause),
        Trigger::NoRoom => over(EndCause::StartFailed),
        Trigger::Signal(_) | Trigger::Stop(_) => over(cause),
        // There is no server to which anything else could happen.
        _ => (Phase::Dequeued(cause), vec![]),
    }
}

fn starting(why: StartReason, trigger: Trigger) -> Next {
    match trigger {
        Trigger::Started => (Phase::Serving, vec![]),
        Trigger::StartFailed if why == StartReason::First => over(EndCause::StartFailed),
        // The client is still there: its calls fail, and the next one is another try.
        Trigger::StartFailed => (Phase::Asleep, vec![FailCalls, FailPending]),
        Trigger::Signal(signal) => (Phase::Doomed(signal.cause()), vec![]),
        Trigger::Stop(cause) => (Phase::Doomed(cause), vec![]),
        // Messages wait. There is no server to which anything else could happen.
        _ => (Phase::Starting(why), vec![]),
    }
}

fn doomed(cause: EndCause, trigger: Trigger) -> Next {
    match trigger {
        Trigger::Started if matches!(cause, EndCause::Signal(_)) => terminate(cause),
        Trigger::Started => close(cause),
        Trigger::StartFailed => over(cause),
        // The first reason stays.
        _ => (Phase::Doomed(cause), vec![]),
    }
}

fn interrupted(trigger: Trigger) -> Next {
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

fn ending(cause: EndCause, trigger: Trigger) -> Next {
    match trigger {
        Trigger::TreeGone => over(cause),
        // Idempotent: a second one does not make it worse.
        Trigger::Signal(_) => (Phase::Ending(cause), vec![End(Rung::Terminate)]),
        Trigger::Eof { .. } => (Phase::Ending(cause), vec![CloseInput]),
        // The ladder runs, and only its proof is waited for.
        _ => (Phase::Ending(cause), vec![]),
    }
}

fn falling_asleep(trigger: Trigger) -> Next {
    match trigger {
        Trigger::TreeGone => (Phase::Asleep, vec![]),
        Trigger::Signal(signal) => terminate(signal.cause()),
        Trigger::Stop(cause) => (Phase::Ending(cause), vec![]),
        // A message waits until it sleeps, and wakes it then.
        _ => (Phase::FallingAsleep, vec![]),
    }
}

fn close(cause: EndCause) -> Next {
    (Phase::Ending(cause), vec![CloseInput, End(Rung::Close)])
}

fn terminate(cause: EndCause) -> Next {
    (Phase::Ending(cause), vec![CloseInput, End(Rung::Terminate)])
}

fn over(cause: EndCause) -> Next {
    (Phase::Ended(cause), vec![])
}
