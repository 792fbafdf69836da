//! What is too old or too much goes, and what lives stays.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use moored_supervisor::event::{EndCause, RunId, What};
use moored_supervisor::ledger::{
    EventQuery, Ledger as _, Retention, RunQuery, SqliteLedger, SqliteStore, Writer,
};
use moored_supervisor::places::StateDir;
use moored_testkit::{Scratch, User};

use crate::samples::{at, begun, dead, ended, event, life, us, warned};

const LONG: Duration = Duration::from_secs(60);
const DAY: i64 = 24 * 3600;

#[test]
fn what_is_older_than_the_limit_goes_and_what_lives_stays() {
    let scratch = Scratch::for_user(User::current());
    let mut ledger = SqliteLedger::open(&StateDir::at(scratch.path())).expect("a ledger");
    let [old, new, alive, crashed] = std::array::from_fn(|_| RunId::generate());
    ledger.record(&life(old, 0)).expect("recorded");
    ledger.record(&life(new, 2 * DAY)).expect("recorded");
    ledger.record(&[event(alive, 0, begun(us())), event(crashed, 0, begun(dead()))]).expect("recorded");
    let retention = Retention { age: Duration::from_hours(30 * 24), bytes: u64::MAX };
    let gone = ledger.prune(&retention, at(31 * DAY), &moored_supervisor::ledger::lives).expect("pruned");
    assert_eq!(gone, 2);
    let left: BTreeSet<RunId> =
        ledger.runs(&RunQuery::default()).expect("rows").iter().map(|row| row.run).collect();
    assert_eq!(left, BTreeSet::from([alive, new]));
    let events = ledger.events(&EventQuery::default()).expect("events");
    assert!(events.iter().all(|stored| left.contains(&stored.event.run)));
    assert_eq!(events.len(), 4);
}

#[test]
fn what_is_too_much_goes_the_oldest_first_and_the_file_gets_smaller() {
    let scratch = Scratch::for_user(User::current());
    let state = StateDir::at(scratch.path());
    let mut ledger = SqliteLedger::open(&state).expect("a ledger");
    let mut runs: Vec<RunId> = (0..100)
        .map(|second| {
            let run = RunId::generate();
            let long = event(run, second, warned("x".repeat(10_000)));
            ledger.record(&[long, event(run, second, ended(EndCause::Operator))]).expect("recorded");
            run
        })
        .collect();
    // Two of one millisecond are in no order.
    runs.sort();
    let alive = RunId::generate();
    ledger.record(&[event(alive, 0, begun(us()))]).expect("recorded");
    let retention = Retention { age: Duration::MAX, bytes: 300_000 };
    let gone = ledger.prune(&retention, at(200), &|_| true).expect("pruned");
    let left: Vec<RunId> =
        ledger.runs(&RunQuery::default()).expect("rows").iter().rev().map(|row| row.run).collect();
    assert!((70..100).contains(&gone), "{gone} went");
    let mut newest = runs[usize::try_from(gone).expect("few")..].to_vec();
    newest.push(alive);
    newest.sort();
    assert_eq!(left, newest);
    drop(ledger);
    let size = fs::metadata(state.database()).expect("the file").len();
    assert!(size <= 300_000, "{size} bytes");
}

#[test]
fn one_endless_run_cannot_fill_the_disk() {
    let scratch = Scratch::for_user(User::current());
    let state = StateDir::at(scratch.path());
    let mut ledger = SqliteLedger::open(&state).expect("a ledger");
    let run = RunId::generate();
    ledger.record(&[event(run, 0, begun(us()))]).expect("recorded");
    for second in 0..100 {
        ledger.record(&[event(run, second, warned("x".repeat(10_000)))]).expect("recorded");
    }
    ledger.prune(&Retention { age: Duration::MAX, bytes: 300_000 }, at(200), &|_| true).expect("pruned");
    assert!(ledger.run(run).expect("a row").is_some_and(|row| row.moored == Some(us())));
    let last = ledger.events(&EventQuery::default()).expect("events").pop().expect("the newest");
    assert_eq!(last.event.at, at(99));
    drop(ledger);
    assert!(fs::metadata(state.database()).expect("the file").len() <= 300_000);
}

#[test]
fn a_writer_prunes_once_a_day_and_no_more() {
    let scratch = Scratch::for_user(User::current());
    let (state, spool) = (StateDir::at(scratch.join("state")), scratch.join("run"));
    // Anything before this moment is too old.
    let retention = Retention { age: Duration::ZERO, bytes: u64::MAX };
    let write = |events: Vec<moored_supervisor::event::Event>| {
        let writer = Writer::with_retention(SqliteStore::at(state.clone()), spool.clone(), retention);
        events.into_iter().for_each(|event| writer.send(event));
        assert_eq!(writer.finish(LONG).warning, None);
    };
    let there = |run| {
        let ledger = SqliteLedger::open(&state).expect("a ledger");
        ledger.run(run).expect("a row").is_some()
    };
    let [first, second, third] = std::array::from_fn(|_| RunId::generate());
    write(life(first, 0));
    assert!(there(first), "the first writer had nothing to prune yet");
    write(life(second, 0));
    assert!(there(first), "somebody has pruned today");
    let db = rusqlite::Connection::open(state.database()).expect("the file");
    db.execute("UPDATE memo SET value = value - 86400000000000 WHERE name = 'pruned_at'", [])
        .expect("a day ago");
    drop(db);
    write(vec![event(third, 0, What::Warned { message: "now".into() })]);
    assert!(!there(first) && !there(second));
    assert!(there(third), "it prunes before it writes");
}
