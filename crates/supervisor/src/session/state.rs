//! What a session does about what happens to it: pure and total. See the module for the picture.

use std::time::Duration;

use moored_containment::{Ladder, Rung};
use moored_launch::{AfterCrash, BackOff, CrashLimit};

use crate::event::{EndCause, StartReason};

/// How long calls in flight may keep a session alive whose client wrote them and left, but for somebody who reads.
pub(super) const ONE_SHOT: Duration = Duration::from_secs(30);
/// What is left for SIGTERM when calls in flight have taken all the time that there is for an ending.
const TERMINATING: Duration = Duration::from_secs(1);
/// How long a server may take to end by the SIGINT that was passed on to it.
const INTERRUPTED: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Starting(StartReason),
    Serving,
    Draining,
    /// ^C was passed on.
    Interrupted,
    Ending(EndCause),
    FallingAsleep,
    Asleep,
    /// The server crashed, the how-manieth time in a row, and what it left is being ended.
    Crashed(u32),
    BackingOff,
    Tripped,
    Ended(EndCause),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The server runs.
    Started,
    /// It could not be started.
    StartFailed,
    /// It has crashed too often lately, and may be started again after so long.
    CrashLoop(Duration),
    /// The client said something, and there is no server.
    Message,
    /// The client closed our stdin; with so many calls in flight that it still wants to hear about, for so long.
    Eof {
        wanted: usize,
        patience: Duration,
    },
    /// The process that held the other end of our stdin is dead.
    ClientGone,
    Signal(Signal),
    /// The server ended by itself; `Crashed` if it should be started again for it.
    Exited(Exit),
    /// Nothing of the tree is left.
    TreeGone,
    /// The last call in flight was answered.
    Quiet,
    /// The time that was asked for is over.
    Tick,
    Hibernate,
    Stop(EndCause),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGTERM, SIGHUP or SIGQUIT, by number.
    End(i32),
    /// SIGINT.
    Interrupt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Done,
    /// It is to be started again. The how-manieth crash in a row this is.
    Crashed(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Start(StartReason),
    /// The server's input ends when what waits for it is written.
    CloseInput,
    /// The ladder, from this rung.
    End(Rung),
    /// SIGINT to the server.
    PassInterrupt,
    /// A `Tick` after this long.
    Wait(Duration),
    /// Whatever is in flight is answered with an error.
    FailCalls,
    /// All is over.
    Leave,
}

use Action::{CloseInput, End, FailCalls, Leave, PassInterrupt, Start, Wait};

impl State {
    /// Whether a server is there to be written to.
    pub(super) fn has_server(self) -> bool {
        matches!(self, Self::Serving | Self::Draining | Self::Interrupted)
    }

    /// Where an end of the input that came before this state has to be told again: it would be forgotten otherwise.
    pub(super) fn ends_at_eof(self) -> bool {
        matches!(self, Self::Serving | Self::Asleep | Self::BackingOff | Self::Tripped)
    }

    /// What follows, and what is to be done.
    pub(super) fn next(self, event: Event) -> (Self, Vec<Action>) {
        match self {
            Self::Starting(why) => starting(why, event),
            Self::Serving => serving(event),
            Self::Draining => draining(event),
            Self::Interrupted => interrupted(event),
            Self::Ending(cause) => ending(cause, event),
            Self::FallingAsleep => falling_asleep(event),
            Self::Crashed(count) => crashed(count, event),
            Self::Asleep => without_server(self, event),
            Self::BackingOff => without_server(self, event),
            Self::Tripped => without_server(self, event),
            // Nothing comes after the end.
            Self::Ended(_) => (self, vec![]),
        }
    }
}

fn starting(why: StartReason, event: Event) -> (State, Vec<Action>) {
    match event {
        Event::Started => (State::Serving, vec![]),
        Event::StartFailed if why == StartReason::First => over(EndCause::StartFailed),
        Event::CrashLoop(pause) => (State::Tripped, vec![Wait(pause)]),
        // The client is still there: its calls fail, and the next one is another try.
        Event::StartFailed => (State::Asleep, vec![FailCalls]),
        // Starting is one step of the driver: nothing else is looked at meanwhile.
        _ => (State::Starting(why), vec![]),
    }
}

fn serving(event: Event) -> (State, Vec<Action>) {
    match event {
        Event::Eof { wanted: 0, .. } => closing(EndCause::ClientEof),
        Event::Eof { patience, .. } => (State::Draining, vec![CloseInput, Wait(patience)]),
        Event::ClientGone => closing(EndCause::ClientGone),
        Event::Signal(Signal::End(signal)) => terminating(EndCause::Signal(signal)),
        Event::Signal(Signal::Interrupt) => (State::Interrupted, vec![PassInterrupt, Wait(INTERRUPTED)]),
        Event::Exited(Exit::Done) => (State::Ending(EndCause::ServerExited), vec![]),
        Event::Exited(Exit::Crashed(count)) => (State::Crashed(count), vec![FailCalls]),
        // Somebody killed the guardians, and the server with them.
        Event::TreeGone => over(EndCause::ServerExited),
        Event::Hibernate => (State::FallingAsleep, vec![CloseInput, End(Rung::Close)]),
        Event::Stop(cause) => closing(cause),
        // It is passed on without us; and no time was asked for.
        Event::Started | Event::StartFailed | Event::CrashLoop(_) => (State::Serving, vec![]),
        Event::Message | Event::Quiet | Event::Tick => (State::Serving, vec![]),
    }
}

fn draining(event: Event) -> (State, Vec<Action>) {
    match event {
        Event::Quiet | Event::ClientGone => (State::Ending(EndCause::ClientEof), vec![End(Rung::Close)]),
        Event::Tick => (State::Ending(EndCause::ClientEof), vec![End(Rung::Terminate)]),
        Event::Signal(_) => (State::Ending(EndCause::ClientEof), vec![End(Rung::Terminate)]),
        Event::Exited(_) => (State::Ending(EndCause::ClientEof), vec![]),
        Event::TreeGone => over(EndCause::ClientEof),
        Event::Stop(_) => (State::Ending(EndCause::ClientEof), vec![End(Rung::Close)]),
        // It is ending already; sleep would be no less of an end.
        Event::Hibernate => (State::Draining, vec![]),
        Event::Eof { .. } | Event::Message => (State::Draining, vec![]),
        Event::Started | Event::StartFailed | Event::CrashLoop(_) => (State::Draining, vec![]),
    }
}

fn interrupted(event: Event) -> (State, Vec<Action>) {
    let cause = EndCause::Signal(INTERRUPT);
    match event {
        Event::Tick | Event::Signal(_) | Event::Stop(_) => terminating(cause),
        // ^C is often followed by the end of the client: no reason for less patience.
        Event::Eof { .. } | Event::ClientGone => (State::Interrupted, vec![CloseInput]),
        Event::Exited(_) => (State::Ending(cause), vec![]),
        Event::TreeGone => over(cause),
        Event::Hibernate | Event::Message | Event::Quiet => (State::Interrupted, vec![]),
        Event::Started | Event::StartFailed | Event::CrashLoop(_) => (State::Interrupted, vec![]),
    }
}

/// SIGINT has this number everywhere.
const INTERRUPT: i32 = 2;

fn ending(cause: EndCause, event: Event) -> (State, Vec<Action>) {
    match event {
        Event::TreeGone => over(cause),
        // Idempotent: a second one does not make it worse.
        Event::Signal(_) => (State::Ending(cause), vec![End(Rung::Terminate)]),
        Event::Eof { .. } | Event::ClientGone => (State::Ending(cause), vec![CloseInput]),
        Event::Exited(_) | Event::Stop(_) | Event::Hibernate | Event::Quiet | Event::Tick => {
            (State::Ending(cause), vec![])
        }
        Event::Started | Event::StartFailed | Event::CrashLoop(_) | Event::Message => {
            (State::Ending(cause), vec![])
        }
    }
}

fn falling_asleep(event: Event) -> (State, Vec<Action>) {
    match event {
        Event::TreeGone => (State::Asleep, vec![]),
        Event::Eof { wanted: 0, .. } => (State::Ending(EndCause::ClientEof), vec![]),
        // Another server answers what is wanted, if this one is gone in time.
        Event::Eof { patience, .. } => (State::FallingAsleep, vec![Wait(patience)]),
        Event::Tick => (State::Ending(EndCause::ClientEof), vec![]),
        Event::ClientGone => (State::Ending(EndCause::ClientGone), vec![]),
        Event::Signal(signal) => terminating(EndCause::Signal(number(signal))),
        Event::Stop(cause) => (State::Ending(cause), vec![]),
        // A message waits until it sleeps, and wakes it then.
        Event::Message | Event::Exited(_) | Event::Hibernate | Event::Quiet => (State::FallingAsleep, vec![]),
        Event::Started | Event::StartFailed | Event::CrashLoop(_) => (State::FallingAsleep, vec![]),
    }
}

fn crashed(count: u32, event: Event) -> (State, Vec<Action>) {
    match event {
        Event::TreeGone => after_crash(count),
        Event::Eof { wanted: 0, .. } => (State::Ending(EndCause::ClientEof), vec![]),
        // Another server answers what is wanted, if this one is gone in time.
        Event::Eof { patience, .. } => (State::Crashed(count), vec![Wait(patience)]),
        Event::Tick => (State::Ending(EndCause::ClientEof), vec![]),
        Event::ClientGone => (State::Ending(EndCause::ClientGone), vec![]),
        Event::Signal(signal) => terminating(EndCause::Signal(number(signal))),
        Event::Stop(cause) => (State::Ending(cause), vec![]),
        // What it left is being ended; all else waits for that.
        _ => (State::Crashed(count), vec![]),
    }
}

/// Asleep, backing off or tripped: there is no tree, so an end is at once.
fn without_server(state: State, event: Event) -> (State, Vec<Action>) {
    match (state, event) {
        // A call waits while room is made for a wake: for so long that there is time left to answer it.
        (State::Asleep, Event::Eof { wanted: 1.., patience }) => (State::Asleep, vec![Wait(patience / 2)]),
        // There is no time to back off any longer.
        (State::BackingOff, Event::Eof { wanted: 1.., .. }) => {
            (State::Starting(StartReason::Restart), vec![Start(StartReason::Restart)])
        }
        (_, Event::Eof { .. }) => over(EndCause::ClientEof),
        (_, Event::ClientGone) => over(EndCause::ClientGone),
        (_, Event::Signal(signal)) => over(EndCause::Signal(number(signal))),
        (_, Event::Stop(cause)) => over(cause),
        (State::Asleep, Event::Message | Event::Tick) => {
            (State::Starting(StartReason::Wake), vec![Start(StartReason::Wake)])
        }
        (State::BackingOff, Event::Tick) => {
            (State::Starting(StartReason::Restart), vec![Start(StartReason::Restart)])
        }
        (State::Tripped, Event::Tick) => (State::Asleep, vec![]),
        // A message waits while we back off, and is refused when tripped, by the driver.
        (state, _) => (state, vec![]),
    }
}

/// How long calls in flight may be waited for so that the tree is gone by the bound of its ladder.
pub(super) fn draining_time(ladder: &Ladder) -> Duration {
    ladder.grace.saturating_add(ladder.kill_after).saturating_sub(TERMINATING.min(ladder.kill_after))
}

/// The ladder from this rung, cut so that its bound counts from the end of the input: what calls in flight have taken of it is
/// taken from the grace first.
pub(super) fn within_bound(ladder: Ladder, from: Rung, since_eof: Option<Duration>) -> Ladder {
    let ladder = Ladder { from, ..ladder };
    let Some(since) = since_eof else { return ladder };
    let left = ladder.grace.saturating_add(ladder.kill_after).saturating_sub(since);
    let kill_after = ladder.kill_after.min(left);
    match from {
        Rung::Close if left > kill_after => ladder.grace(ladder.grace.min(left - kill_after)),
        Rung::Close | Rung::Terminate => Ladder { from: Rung::Terminate, ..ladder }.kill_after(kill_after),
        Rung::Kill => ladder,
    }
}

/// After a crash: how long to wait, or that it was one too many.
fn after_crash(crashes_in_a_row: u32) -> (State, Vec<Action>) {
    match BackOff::RUN.after_crash(crashes_in_a_row, CrashLimit::DEFAULT) {
        AfterCrash::CoolFor(time) => (State::Tripped, vec![FailCalls, Wait(time)]),
        AfterCrash::StartAfter(time) => (State::BackingOff, vec![Wait(time)]),
    }
}

fn closing(cause: EndCause) -> (State, Vec<Action>) {
    (State::Ending(cause), vec![CloseInput, End(Rung::Close)])
}

fn terminating(cause: EndCause) -> (State, Vec<Action>) {
    (State::Ending(cause), vec![CloseInput, End(Rung::Terminate)])
}

fn over(cause: EndCause) -> (State, Vec<Action>) {
    (State::Ended(cause), vec![Leave])
}

fn number(signal: Signal) -> i32 {
    match signal {
        Signal::End(number) => number,
        Signal::Interrupt => INTERRUPT,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            Just(Event::Started),
            Just(Event::StartFailed),
            Just(Event::CrashLoop(ONE_SHOT)),
            Just(Event::Message),
            (0_usize..3).prop_map(eof),
            Just(Event::ClientGone),
            Just(Event::Signal(Signal::End(15))),
            Just(Event::Signal(Signal::Interrupt)),
            Just(Event::Exited(Exit::Done)),
            (1_u32..9).prop_map(|n| Event::Exited(Exit::Crashed(n))),
            Just(Event::TreeGone),
            Just(Event::Quiet),
            Just(Event::Tick),
            Just(Event::Hibernate),
            Just(Event::Stop(EndCause::Operator)),
        ]
    }

    fn eof(wanted: usize) -> Event {
        Event::Eof { wanted, patience: ONE_SHOT }
    }

    fn after(events: &[Event]) -> (State, Vec<Action>) {
        let mut state = State::Starting(StartReason::First);
        let mut done = Vec::new();
        for event in events {
            let (next, actions) = state.next(*event);
            (state, done) = (next, [done, actions].concat());
        }
        (state, done)
    }

    proptest! {
        #[test]
        fn whatever_came_before_an_eof_ends_it(mut events in prop::collection::vec(event(), 0..20)) {
            events.insert(0, Event::Started);
            events.extend([eof(0), Event::Tick, Event::Tick, Event::TreeGone]);
            // A start that the events brought about is done, and the end of the input is seen after it.
            let (mut state, _) = after(&events);
            for event in [Event::Started, eof(0), Event::Tick, Event::TreeGone] {
                state = state.next(event).0;
            }
            prop_assert!(matches!(state, State::Ended(_)), "{state:?}");
        }

        #[test]
        fn leaving_is_the_last_action_and_happens_once(events in prop::collection::vec(event(), 0..40)) {
            let (state, done) = after(&events);
            let left = done.iter().filter(|action| **action == Leave).count();
            prop_assert_eq!(left, usize::from(matches!(state, State::Ended(_))));
            prop_assert!(left == 0 || done.last() == Some(&Leave));
        }

        #[test]
        fn the_first_reason_of_an_end_stays(events in prop::collection::vec(event(), 0..20)) {
            let mut state = State::Ending(EndCause::ClientEof);
            for event in events {
                state = state.next(event).0;
                prop_assert!(matches!(state, State::Ending(EndCause::ClientEof) | State::Ended(EndCause::ClientEof)));
            }
        }

        #[test]
        fn a_server_is_started_only_where_there_is_none(events in prop::collection::vec(event(), 0..40)) {
            let mut state = State::Starting(StartReason::First);
            for event in events {
                let (next, actions) = state.next(event);
                if actions.iter().any(|action| matches!(action, Start(_))) {
                    prop_assert!(matches!(state, State::Asleep | State::BackingOff));
                }
                state = next;
            }
        }
    }

    #[test]
    fn a_call_in_flight_is_answered_before_the_ladder_begins() {
        let (state, done) = after(&[Event::Started, eof(1)]);
        assert_eq!((state, &done[..1]), (State::Draining, &[CloseInput][..]));
        assert_eq!(state.next(Event::Quiet), (State::Ending(EndCause::ClientEof), vec![End(Rung::Close)]));
    }

    #[test]
    fn f03_a_crash_loop_that_a_run_begins_in_is_over_after_its_pause() {
        let pause = Duration::from_secs(7);
        let (state, done) = after(&[Event::CrashLoop(pause)]);
        assert_eq!((state, done), (State::Tripped, vec![Wait(pause)]));
        let (cooled, _) = state.next(Event::Tick);
        assert_eq!(cooled.next(Event::Message).1, [Start(StartReason::Wake)]);
    }

    /// With a call that is wanted, the end of the input waits for a server that can answer it; without one nothing does.
    #[test]
    fn f05_a_last_call_gets_a_server_from_every_state_that_can_have_one() {
        for state in [State::FallingAsleep, State::Asleep, State::Crashed(1), State::BackingOff] {
            assert!(matches!(state.next(eof(0)).0, State::Ending(_) | State::Ended(_)), "{state:?}");
            let (mut next, mut done) = state.next(eof(1));
            for event in [Event::TreeGone, eof(1), Event::Message] {
                let (then, actions) = next.next(event);
                (next, done) = (then, [done, actions].concat());
            }
            assert!(done.iter().any(|action| matches!(action, Start(_))), "{state:?}: {done:?}");
            assert_eq!(next.next(Event::Started).0.next(eof(1)).0, State::Draining, "{state:?}");
        }
    }

    #[test]
    fn f05_a_server_that_is_not_gone_in_time_is_not_followed_by_another() {
        for state in [State::FallingAsleep, State::Crashed(1)] {
            let (waiting, done) = state.next(eof(1));
            assert_eq!(done, [Wait(ONE_SHOT)]);
            assert_eq!(waiting.next(Event::Tick), (State::Ending(EndCause::ClientEof), vec![]));
        }
    }

    proptest! {
        #[test]
        fn whatever_was_waited_for_the_bound_counts_from_the_end_of_the_input(
            grace in 0_u64..5000, kill_after in 0_u64..5000, since in 0_u64..10_000, close: bool,
        ) {
            let ms = Duration::from_millis;
            let ladder = Ladder::default().grace(ms(grace)).kill_after(ms(kill_after));
            let from = if close { Rung::Close } else { Rung::Terminate };
            let cut = within_bound(ladder, from, Some(ms(since)));
            prop_assert!(ms(since) + cut.bound() <= ladder.bound().max(ms(since)));
            prop_assert!(cut.grace <= ladder.grace && cut.kill_after <= ladder.kill_after);
            prop_assert!(draining_time(&ladder) <= ladder.bound());
        }
    }

    #[test]
    fn the_pause_after_a_crash_doubles_and_five_in_a_row_are_too_many() {
        let pauses: Vec<Action> = (1..5).flat_map(|n| after_crash(n).1).collect();
        let wait = |ms| Wait(Duration::from_millis(ms));
        assert_eq!(pauses, [wait(500), wait(1000), wait(2000), wait(4000)]);
        assert_eq!(after_crash(5).0, State::Tripped);
    }
}
