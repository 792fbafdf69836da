//! The ledger in memory is the model; the one on disk answers the same, whatever happened.

use moored_supervisor::event::{EndCause, Event, RunId, StartReason, What};
use moored_supervisor::ledger::{EventQuery, Ledger, MemoryLedger, Retention, RunQuery, SqliteLedger};
use moored_supervisor::places::StateDir;
use moored_testkit::{Scratch, User};
use proptest::prelude::*;

use crate::samples::{at, begun, dead, ended, event, hibernated, started, us, warned};

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        Just(begun(us())),
        Just(begun(dead())),
        prop_oneof![Just(StartReason::First), Just(StartReason::Wake), Just(StartReason::Restart)]
            .prop_map(started),
        proptest::option::of("[a-z0-9.]{1,8}")
            .prop_map(|server_version| What::Initialized { server_name: None, server_version }),
        Just(hibernated()),
        ".{0,20}".prop_map(warned),
        prop_oneof![Just(EndCause::ClientEof), Just(EndCause::Signal(15)), Just(EndCause::MooredKilled)]
            .prop_map(ended),
    ]
}

/// Something that is done to a ledger.
#[derive(Clone, Debug)]
enum Step {
    Record(Vec<Event>),
    /// What was recorded in this step is recorded again.
    Repeat(usize),
    Prune {
        age: u64,
        now: i64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let runs: Vec<RunId> = (0..4).map(|_| RunId::generate()).collect();
    let one = (proptest::sample::select(runs), 0..1000_i64, 0..1_000_000_000_u32, "[ab]", what()).prop_map(
        |(run, seconds, nanos, server, what)| {
            let mut event = event(run, seconds, what);
            event.at += std::time::Duration::from_nanos(nanos.into());
            event.server = server;
            event
        },
    );
    let step = prop_oneof![
        6 => proptest::collection::vec(one, 0..6).prop_map(Step::Record),
        2 => (0..8_usize).prop_map(Step::Repeat),
        1 => (0..1000_u64, 0..1500_i64).prop_map(|(age, now)| Step::Prune { age, now }),
    ];
    proptest::collection::vec(step, 0..12)
}

fn take(ledger: &mut impl Ledger, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Record(events) => ledger.record(events).expect("recorded"),
            Step::Repeat(which) => {
                if let Some(Step::Record(events)) = steps.get(*which) {
                    ledger.record(events).expect("recorded");
                }
            }
            Step::Prune { age, now } => {
                let retention = Retention { age: std::time::Duration::from_secs(*age), bytes: u64::MAX };
                let alive = us();
                ledger.prune(&retention, at(*now), &|moored| *moored == alive).expect("pruned");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_ledgers_answer_the_same(
        steps in steps(),
        since in proptest::option::of(0..1000_i64),
        after_id in proptest::option::of(-1..20_i64),
        limit in proptest::option::of(0..8_usize),
        server in proptest::option::of("[ab]"),
    ) {
        let scratch = Scratch::for_user(User::current());
        let mut memory = MemoryLedger::default();
        let mut sqlite = SqliteLedger::open(&StateDir::at(scratch.path())).expect("a ledger");
        take(&mut memory, &steps);
        take(&mut sqlite, &steps);
        let since = since.map(at);
        let all = memory.runs(&RunQuery::default()).expect("rows");
        prop_assert_eq!(&all, &sqlite.runs(&RunQuery::default()).expect("rows"));
        let query = RunQuery { server, since, limit };
        prop_assert_eq!(memory.runs(&query).expect("rows"), sqlite.runs(&query).expect("rows"));
        for row in &all {
            let run = row.run;
            prop_assert_eq!(memory.run(run).expect("a row"), Some(row.clone()));
            prop_assert_eq!(sqlite.run(run).expect("a row"), Some(row.clone()));
            let query = EventQuery { run: Some(run), since, after_id, limit };
            prop_assert_eq!(memory.events(&query).expect("events"), sqlite.events(&query).expect("events"));
        }
        let query = EventQuery { run: None, since, after_id, limit };
        prop_assert_eq!(memory.events(&query).expect("events"), sqlite.events(&query).expect("events"));
    }
}

#[test]
fn a_row_says_what_its_events_said() {
    let run = RunId::generate();
    let mut ledger = MemoryLedger::default();
    let version = What::Initialized { server_name: None, server_version: Some("1.2".into()) };
    let whats = [
        begun(us()),
        started(StartReason::First),
        version,
        hibernated(),
        started(StartReason::Wake),
        ended(EndCause::Signal(15)),
    ];
    let events: Vec<Event> =
        whats.into_iter().zip(10..).map(|(what, second)| event(run, second, what)).collect();
    ledger.record(&events).expect("recorded");
    let row = ledger.run(run).expect("a row").expect("its row");
    assert_eq!((row.started_at, row.ended_at), (at(10), Some(at(15))));
    assert_eq!(row.server_version.as_deref(), Some("1.2"));
    assert_eq!((row.end_cause, row.exit_code), (Some(EndCause::Signal(15)), Some(3)));
    assert_eq!((row.counters.wakes, row.counters.bytes_to_server), (1, 10));
    assert_eq!(row.report.map(|report| report.ended.kill), Some(2));
    assert_eq!(row.moored, Some(us()));
}

#[test]
fn its_own_word_counts_more_than_what_others_concluded_whichever_comes_first() {
    let own = |run| event(run, 5, ended(EndCause::ClientEof));
    let theirs = |run| event(run, 9, ended(EndCause::MooredKilled));
    for own_first in [true, false] {
        let run = RunId::generate();
        let mut ledger = MemoryLedger::default();
        let events = if own_first { [own(run), theirs(run)] } else { [theirs(run), own(run)] };
        ledger.record(&events).expect("recorded");
        let row = ledger.run(run).expect("a row").expect("its row");
        assert_eq!((row.end_cause, row.ended_at), (Some(EndCause::ClientEof), Some(at(5))));
    }
}

#[test]
fn a_folder_with_an_odd_name_is_no_reason_to_forget_a_run() {
    use std::os::unix::ffi::OsStringExt as _;
    let scratch = Scratch::for_user(User::current());
    let run = RunId::generate();
    let What::Begun(mut beginning) = begun(us()) else { unreachable!("it is one") };
    beginning.cwd = std::ffi::OsString::from_vec(b"/odd\xff".to_vec()).into();
    let mut ledger = SqliteLedger::open(&StateDir::at(scratch.path())).expect("a ledger");
    ledger.record(&[event(run, 1, What::Begun(beginning))]).expect("recorded");
    let row = ledger.run(run).expect("a row").expect("its row");
    assert_eq!(row.cwd, Some("/odd\u{fffd}".into()));
    assert_eq!(ledger.events(&EventQuery::default()).expect("events").len(), 1);
}
