//! Properties of the ladder: whatever happens in whatever order, it ends, and in the right order.

use proptest::prelude::*;

use super::*;

fn any_rung() -> impl Strategy<Value = Rung> {
    prop_oneof![Just(Rung::Close), Just(Rung::Terminate), Just(Rung::Kill)]
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => any_rung().prop_map(Event::End),
        1 => Just(Event::ServerExited),
        1 => Just(Event::Empty),
        1 => Just(Event::Hopeless),
        4 => Just(Event::Tick),
    ]
}

fn any_ladder() -> impl Strategy<Value = Ladder> {
    let time = || (0_u64..5_000).prop_map(Duration::from_millis);
    (any_rung(), time(), time(), time()).prop_map(|(from, grace, kill_after, verify)| Ladder {
        from,
        grace,
        kill_after,
        verify,
    })
}

/// Events with the milliseconds that pass before each.
fn any_story() -> impl Strategy<Value = Vec<(Event, u64)>> {
    prop::collection::vec((any_event(), 0_u64..2_000), 0..40)
}

/// Everything that was done, and when.
fn tell(ladder: &Ladder, story: &[(Event, u64)]) -> (State, Vec<(Action, Instant)>, Instant) {
    let (mut state, mut done, mut now) = (State::Running, Vec::new(), 1);
    for (event, pause) in story {
        now += pause * 1_000_000;
        let (next, action) = state.step(ladder, *event, now);
        state = next;
        if action != Action::Nothing {
            done.push((action, now));
        }
    }
    (state, done, now)
}

fn at(done: &[(Action, Instant)], action: Action) -> Option<Instant> {
    done.iter().find(|(a, _)| *a == action).map(|(_, at)| *at)
}

proptest! {
    #[test]
    fn it_always_ends_within_its_bound(ladder in any_ladder(), story in any_story()) {
        let (mut state, _, mut now) = tell(&ladder, &story);
        (state, _) = state.step(&ladder, Event::End(ladder.from), now);
        let began = now;
        let mut steps = 0;
        while let Some(deadline) = state.deadline() {
            now = now.max(deadline);
            (state, _) = state.step(&ladder, Event::Tick, now);
            steps += 1;
            prop_assert!(steps <= 3, "three deadlines at most");
        }
        prop_assert_eq!(state, State::Ended);
        let longest = ladder.grace + ladder.kill_after + ladder.verify;
        prop_assert!(now - began <= u64::try_from(longest.as_nanos()).expect("short"));
    }

    #[test]
    fn kill_comes_never_before_its_time(ladder in any_ladder(), story in any_story()) {
        let asked_for_kill = story.iter().any(|(event, _)| *event == Event::End(Rung::Kill));
        let (_, done, _) = tell(&ladder, &story);
        if let Some(killed) = at(&done, Action::Kill)
            && !asked_for_kill
        {
            let asked = at(&done, Action::Terminate).expect("TERM comes before KILL");
            prop_assert!(killed - asked >= u64::try_from(ladder.kill_after.as_nanos()).expect("short"));
        }
    }

    #[test]
    fn each_step_is_taken_once_and_in_order(ladder in any_ladder(), story in any_story()) {
        let (_, done, _) = tell(&ladder, &story);
        let order = [Action::Close, Action::Terminate, Action::Kill, Action::Verify];
        let places: Vec<usize> =
            done.iter().map(|(a, _)| order.iter().position(|o| o == a).expect("a step")).collect();
        prop_assert!(places.is_sorted_by(|a, b| a < b), "{done:?}");
    }

    #[test]
    fn nothing_comes_after_verify(ladder in any_ladder(), story in any_story(), more in any_story()) {
        let (state, done, now) = tell(&ladder, &story);
        if at(&done, Action::Verify).is_some() {
            prop_assert_eq!(state, State::Ended);
        }
        if state == State::Ended {
            for (event, pause) in more {
                prop_assert_eq!(state.step(&ladder, event, now + pause), (State::Ended, Action::Nothing));
            }
        }
    }

    #[test]
    fn repeated_eof_and_term_change_nothing(ladder in any_ladder(), story in any_story(), rung in any_rung()) {
        let (state, _, now) = tell(&ladder, &story);
        let (once, _) = state.step(&ladder, Event::End(rung), now);
        let again = once.step(&ladder, Event::End(rung), now);
        // Unless the deadline is now, in which case time itself moves on.
        if once.deadline().is_none_or(|until| until > now) {
            prop_assert_eq!(again, (once, Action::Nothing));
        }
    }

    #[test]
    fn nothing_ends_that_nobody_asked_to_end(ladder in any_ladder(), pauses in prop::collection::vec(0_u64..100_000, 0..40)) {
        let story: Vec<_> = pauses.into_iter().map(|pause| (Event::Tick, pause)).collect();
        let (state, done, _) = tell(&ladder, &story);
        prop_assert_eq!((state, done.len()), (State::Running, 0));
    }
}

#[test]
fn a_polite_server_sees_no_signal() {
    let ladder = Ladder::default();
    let (state, action) = State::Running.step(&ladder, Event::End(Rung::Close), 1);
    assert_eq!(action, Action::Close);
    assert_eq!(state.step(&ladder, Event::Empty, 2), (State::Ended, Action::Verify));
}

#[test]
fn codes_are_read_back_as_what_was_written() {
    for rung in [Rung::Close, Rung::Terminate, Rung::Kill] {
        assert_eq!(Rung::from_code(rung.code()), rung);
    }
    let until = 7;
    let with_deadline = [State::Closing { until }, State::Terminating { until }, State::Killing { until }];
    for state in with_deadline.into_iter().chain([State::Running, State::Ended]) {
        assert_eq!(State::from_code(state.code(), until), state);
    }
}
