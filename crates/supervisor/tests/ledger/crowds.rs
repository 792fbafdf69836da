//! Many who write at once.

use std::collections::BTreeSet;
use std::time::Duration;

use moored_supervisor::event::{EndCause, RunId};
use moored_supervisor::ledger::{EventQuery, Ledger as _, RunQuery, SqliteLedger, SqliteStore, Writer};
use moored_supervisor::places::StateDir;
use moored_testkit::{Scratch, User};

use crate::program::History;
use crate::samples::{begun, ended, event, us};

const LONG: Duration = Duration::from_secs(60);

#[test]
fn heavy_two_hundred_processes_lose_no_row_and_none_sees_a_locked_database() {
    let scratch = Scratch::for_user(User::current());
    let (state, spool) = (scratch.join("state"), scratch.join("run"));
    let words = ["60000", "hold"];
    let mut all: Vec<History> =
        (0..200).map(|_| History::begin(User::current(), &state, &spool, &words)).collect();
    let began: BTreeSet<RunId> = all.iter().map(|history| history.run).collect();
    all.iter_mut().for_each(History::release);
    for history in all {
        let outcome = history.end();
        assert_eq!((outcome.spooled, outcome.warning), (0, None));
    }
    let ledger = SqliteLedger::open(&StateDir::at(&state)).expect("a ledger");
    let rows = ledger.runs(&RunQuery::default()).expect("rows");
    assert_eq!(rows.iter().map(|row| row.run).collect::<BTreeSet<_>>(), began);
    assert!(rows.iter().all(|row| row.end_cause == Some(EndCause::ClientEof) && row.moored.is_some()));
}

#[test]
fn heavy_two_hundred_writers_of_one_process_lose_no_row() {
    let scratch = Scratch::for_user(User::current());
    let state = StateDir::at(scratch.join("state"));
    let runs: BTreeSet<RunId> = std::thread::scope(|scope| {
        let write = || {
            let run = RunId::generate();
            let writer = Writer::start(SqliteStore::at(state.clone()), scratch.join("run"));
            writer.send(event(run, 1, begun(us())));
            writer.send(event(run, 2, ended(EndCause::Operator)));
            let outcome = writer.finish(LONG);
            assert_eq!((outcome.spooled, outcome.warning), (0, None));
            run
        };
        let threads: Vec<_> = (0..200).map(|_| scope.spawn(write)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a run")).collect()
    });
    let ledger = SqliteLedger::open(&state).expect("a ledger");
    let rows = ledger.runs(&RunQuery::default()).expect("rows");
    assert_eq!(rows.iter().map(|row| row.run).collect::<BTreeSet<_>>(), runs);
    assert_eq!(ledger.events(&EventQuery::default()).expect("events").len(), 400);
}
