use std::time::Duration;

use moored_containment::{Ladder, Rung};
use proptest::prelude::*;

use super::*;
use crate::event::{EndCause, StartReason};

fn trigger() -> impl Strategy<Value = Trigger> {
    prop_oneof![
        Just(Trigger::RoomMade),
        Just(Trigger::NoRoom),
        Just(Trigger::Started),
        Just(Trigger::StartFailed),
        Just(Trigger::Message),
        (0_usize..3).prop_map(eof),
        Just(Trigger::ClientGone),
        Just(Trigger::Signal(Signal::End(15))),
        Just(Trigger::Signal(Signal::Interrupt)),
        Just(Trigger::Exited(Exit::Done)),
        Just(crash()),
        Just(Trigger::TreeGone),
        Just(Trigger::Quiet),
        Just(Trigger::Fired(Timer::Phase)),
        Just(Trigger::Fired(Timer::Drain)),
        Just(Trigger::Hibernate),
        Just(Trigger::Stop(EndCause::Operator)),
    ]
}

fn triggers(most: usize) -> impl Strategy<Value = Vec<Trigger>> {
    prop::collection::vec(trigger(), 0..most)
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![Just(Limit::None), Just(Limit::Instances)]
}

fn eof(wanted: usize) -> Trigger {
    Trigger::Eof { wanted, patience: ONE_SHOT }
}

fn crash() -> Trigger {
    Trigger::Exited(Exit::Crashed { lived: Duration::ZERO })
}

fn new(limit: Limit) -> ServerLife {
    ServerLife::begin(Begin::Start, limit).0
}

fn serving() -> ServerLife {
    let mut life = new(Limit::None);
    life.handle(Trigger::Started);
    life
}

proptest! {
    #[test]
    fn whatever_came_before_a_client_that_is_gone_ends_the_session(limit in limit(), before in triggers(30)) {
        let mut life = new(limit);
        for trigger in before {
            life.handle(trigger);
        }
        // A start or a ladder that is under way is waited for; the timers fire.
        for trigger in [
            Trigger::ClientGone,
            Trigger::NoRoom,
            Trigger::Started,
            Trigger::Fired(Timer::Phase),
            Trigger::Fired(Timer::Drain),
            Trigger::TreeGone,
        ] {
            life.handle(trigger);
        }
        prop_assert!(life.is_over(), "{:?}", life.phase());
    }

    #[test]
    fn a_client_that_waits_for_answers_is_not_waited_for_longer_than_its_drain_timer(
        limit in limit(), before in triggers(30),
    ) {
        let mut life = new(limit);
        for trigger in before {
            life.handle(trigger);
        }
        for trigger in [
            eof(1),
            Trigger::Fired(Timer::Drain),
            Trigger::NoRoom,
            Trigger::Started,
            Trigger::Fired(Timer::Phase),
            Trigger::TreeGone,
        ] {
            life.handle(trigger);
        }
        prop_assert!(life.is_over(), "{:?}", life.phase());
    }

    #[test]
    fn nothing_is_ordered_after_the_end(limit in limit(), before in triggers(40), after in triggers(10)) {
        let mut life = new(limit);
        for trigger in before {
            life.handle(trigger);
        }
        life.handle(Trigger::Stop(EndCause::Operator));
        life.handle(Trigger::Started);
        life.handle(Trigger::TreeGone);
        let end = life.phase();
        prop_assert!(life.is_over());
        for trigger in after {
            prop_assert_eq!(life.handle(trigger), vec![]);
            prop_assert_eq!(life.phase(), end);
        }
    }

    #[test]
    fn the_first_reason_of_an_end_stays(after in triggers(20)) {
        let mut life = serving();
        life.handle(eof(0));
        for trigger in after {
            life.handle(trigger);
            prop_assert!(matches!(life.phase(), Phase::Ending(EndCause::ClientEof) | Phase::Ended(EndCause::ClientEof)));
        }
    }

    #[test]
    fn a_server_is_started_only_where_there_is_none(limit in limit(), all in triggers(60)) {
        let mut life = new(limit);
        for trigger in all {
            let before = life.phase();
            let orders = life.handle(trigger);
            if orders.iter().any(|order| matches!(order, Order::Start(_))) {
                prop_assert!(
                    matches!(
                        before,
                        Phase::Queued(_) | Phase::Dequeued(_) | Phase::Asleep | Phase::BackingOff | Phase::Crashed
                    ),
                    "{before:?}"
                );
                let is_starting = matches!(life.phase(), Phase::Starting(_) | Phase::Doomed { .. });
                prop_assert!(is_starting);
            }
        }
    }

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
fn a_call_in_flight_is_answered_before_the_ladder_begins() {
    let mut life = serving();
    assert_eq!(life.handle(eof(1)), [Order::CloseInput, Order::SetTimer(Timer::Drain, ONE_SHOT)]);
    assert!(life.is_draining() && life.has_server());
    assert_eq!(life.handle(Trigger::Quiet), [Order::CloseInput, Order::End(Rung::Close)]);
    assert_eq!(life.phase(), Phase::Ending(EndCause::ClientEof));
}

#[test]
fn f05_a_call_before_eof_starts_a_server_that_sleeps_falls_asleep_or_backs_off() {
    let asleep = [Trigger::Hibernate, Trigger::TreeGone, eof(1), Trigger::Message];
    let falling_asleep = [Trigger::Hibernate, eof(1), Trigger::TreeGone, Trigger::Message];
    let backing_off = [crash(), Trigger::TreeGone, eof(1), Trigger::Message];
    let crashed = [crash(), eof(1), Trigger::TreeGone, Trigger::Message];
    for (way, reason) in [
        (asleep.as_slice(), StartReason::Wake),
        (falling_asleep.as_slice(), StartReason::Wake),
        (backing_off.as_slice(), StartReason::Restart),
        (crashed.as_slice(), StartReason::Restart),
    ] {
        let mut life = serving();
        let orders: Vec<Order> = way.iter().flat_map(|trigger| life.handle(*trigger)).collect();
        assert!(orders.contains(&Order::Start(reason)), "{way:?}: {orders:?}");
        assert!(life.is_draining());
        life.handle(Trigger::Started);
        life.handle(Trigger::Quiet);
        assert_eq!(life.phase(), Phase::Ending(EndCause::ClientEof));
    }
}

#[test]
fn f05_a_call_before_eof_waits_for_the_room_that_is_being_made() {
    let mut life = new(Limit::Instances);
    life.handle(eof(1));
    assert_eq!(life.handle(Trigger::RoomMade), [Order::Start(StartReason::First)]);
    assert!(life.is_draining());
}

#[test]
fn f05_a_call_before_eof_does_not_wait_for_all_the_time_that_making_room_may_take() {
    let mut life = new(Limit::Instances);
    for trigger in
        [Trigger::RoomMade, Trigger::Started, Trigger::Hibernate, Trigger::TreeGone, Trigger::Message]
    {
        life.handle(trigger);
    }
    assert!(life.handle(eof(1)).contains(&Order::SetTimer(Timer::Phase, ONE_SHOT / 2)));
    assert_eq!(life.handle(Trigger::Fired(Timer::Phase)), [Order::Start(StartReason::Wake)]);
}

#[test]
fn a_client_that_leaves_before_there_is_room_for_its_first_start_leaves_the_queue() {
    for (trigger, orders) in [(eof(0), vec![Order::Start(StartReason::First)]), (Trigger::ClientGone, vec![])]
    {
        let mut life = new(Limit::Instances);
        assert_eq!(life.handle(trigger), [Order::LeaveQueue]);
        assert_eq!(life.clone().handle(Trigger::RoomMade), orders, "{trigger:?}");
        life.handle(Trigger::NoRoom);
        assert_eq!(life.phase(), Phase::Ended(EndCause::StartFailed));
    }
}

#[test]
fn f03_a_session_that_begins_tripped_takes_messages_when_its_time_is_over() {
    let minute = Duration::from_secs(60);
    let (mut life, orders) = ServerLife::begin(Begin::Tripped(minute), Limit::None);
    assert_eq!(orders, [Order::SetTimer(Timer::Phase, minute)]);
    assert_eq!(life.handle(Trigger::Message), []);
    life.handle(Trigger::Fired(Timer::Phase));
    assert_eq!(life.handle(Trigger::Message), [Order::Start(StartReason::Wake)]);
}

#[test]
fn the_pause_after_a_crash_doubles_and_five_in_a_row_are_too_many() {
    let mut life = serving();
    let mut pauses = Vec::new();
    for _ in 1..5 {
        life.handle(crash());
        pauses.extend(life.handle(Trigger::TreeGone));
        life.handle(Trigger::Fired(Timer::Phase));
        life.handle(Trigger::Started);
    }
    let wait = |ms| Order::SetTimer(Timer::Phase, Duration::from_millis(ms));
    assert_eq!(pauses, [wait(500), wait(1000), wait(2000), wait(4000)]);
    life.handle(crash());
    life.handle(Trigger::TreeGone);
    assert_eq!(life.phase(), Phase::Tripped);
}

#[test]
fn a_crash_after_a_long_life_is_the_first_again() {
    let mut life = serving();
    for _ in 0..9 {
        life.handle(Trigger::Exited(Exit::Crashed { lived: Duration::from_secs(61) }));
        life.handle(Trigger::TreeGone);
        assert_eq!((life.phase(), life.crashes_in_a_row()), (Phase::BackingOff, 1));
        life.handle(Trigger::Fired(Timer::Phase));
        life.handle(Trigger::Started);
    }
}

#[test]
fn a_signal_that_comes_during_the_start_ends_the_server_when_it_is_there() {
    let mut life = new(Limit::None);
    assert_eq!(life.handle(Trigger::Signal(Signal::End(15))), []);
    assert_eq!(life.handle(Trigger::Started), [Order::CloseInput, Order::End(Rung::Terminate)]);
    assert_eq!(life.phase(), Phase::Ending(EndCause::Signal(15)));
}
