//! The state machine: triggers in, orders out. See the module for the picture.

use std::time::Duration;

use moored_containment::Rung;
use moored_launch::{AfterCrash, BackOff, CrashLimit};

use super::transitions::{
    Next, caused_by_eof, close, dequeued, doomed, ending, falling_asleep, interrupted, may_drain,
    out_of_patience, over, queued, start, starting, terminate, without_client,
};
use super::vocabulary::Order::{CloseInput, End, FailCalls, FailPending, PassInterrupt, SetTimer};
use super::vocabulary::{Begin, Exit, Limit, Order, Phase, Signal, Timer, Trigger};
use crate::event::{EndCause, StartReason};

/// How long a server may take to end by the SIGINT that was passed on to it.
const INTERRUPTED: Duration = Duration::from_secs(1);
const BACK_OFF: BackOff = BackOff::RUN;
const CRASH_LIMIT: CrashLimit = CrashLimit::DEFAULT;

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
            Phase::Doomed { why, cause, from } => doomed(why, cause, from, trigger),
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
            (Phase::Asleep, Trigger::Message) => start(StartReason::Wake, self.limit),
            (Phase::BackingOff, Trigger::Fired(_)) => start(StartReason::Restart, self.limit),
            // A client that waits for answers before it leaves does not wait for the pause.
            (Phase::BackingOff, Trigger::Message) if self.is_draining => {
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
