//! Files of other versions. What an older moored has made is written here as it was then, not as the code has it now.

use moored_supervisor::event::RunId;
use moored_supervisor::ledger::{EventQuery, Ledger as _, LedgerError, Retention, SqliteLedger};
use moored_supervisor::places::StateDir;
use moored_testkit::{Scratch, User};

use crate::samples::{at, life};

const FIRST: &str = "
    CREATE TABLE runs (run TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, command TEXT NOT NULL, cwd TEXT, client TEXT,
        moored TEXT, moored_version TEXT, server_version TEXT, strength TEXT, started_at INTEGER NOT NULL,
        last_at INTEGER NOT NULL, ended_at INTEGER, end_cause TEXT, exit_code INTEGER, counters TEXT NOT NULL,
        report TEXT) STRICT;
    CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, at INTEGER NOT NULL,
        key INTEGER NOT NULL, line TEXT NOT NULL) STRICT;
    CREATE UNIQUE INDEX events_once ON events (run, key);
    INSERT INTO runs (run, name, command, started_at, last_at, ended_at, end_cause, counters) VALUES
        ('01KA45Y7G0000000000000000A', 'old', '[\"old\"]', 1000000000, 2000000000, 2000000000, '\"operator\"', '{}');
    INSERT INTO events (run, at, key, line) VALUES ('01KA45Y7G0000000000000000A', 1000000000, 1,
        '{\"at\":\"1970-01-01T00:00:01Z\",\"run\":\"01KA45Y7G0000000000000000A\",\"server\":\"old\",
          \"event\":\"warned\",\"message\":\"once\"}');
    PRAGMA user_version = 1;";

fn make(scratch: &Scratch, sql: &str) -> StateDir {
    let state = StateDir::at(scratch.path());
    let db = rusqlite::Connection::open(state.database()).expect("a file");
    db.execute_batch(sql).expect("an older schema");
    state
}

#[test]
fn what_the_first_version_wrote_is_there_and_can_be_added_to_and_pruned() {
    let scratch = Scratch::for_user(User::current());
    let state = make(&scratch, FIRST);
    let mut ledger = SqliteLedger::open(&state).expect("it is brought up");
    let old: RunId = "01KA45Y7G0000000000000000A".parse().expect("an id");
    let row = ledger.run(old).expect("a row").expect("the old row");
    assert_eq!((row.name.as_str(), row.ended_at), ("old", Some(at(2))));
    assert_eq!(ledger.events(&EventQuery::default()).expect("events").len(), 1);
    let new = RunId::generate();
    ledger.record(&life(new, 5000)).expect("recorded");
    let retention = Retention { age: std::time::Duration::from_secs(100), bytes: u64::MAX };
    assert_eq!(ledger.prune(&retention, at(5000), &|_| false).expect("pruned"), 1);
    assert!(ledger.run(old).expect("a row").is_none() && ledger.run(new).expect("a row").is_some());
}

#[test]
fn what_a_newer_moored_wrote_is_left_alone() {
    let scratch = Scratch::for_user(User::current());
    let state = make(&scratch, "CREATE TABLE of_the_future (x); PRAGMA user_version = 1000;");
    let before = std::fs::read(state.database()).expect("the file");
    let error = SqliteLedger::open(&state).expect_err("it is newer");
    assert!(matches!(error, LedgerError::Newer { found: 1000, .. }), "{error}");
    SqliteLedger::open_or_begin_anew(&state).expect_err("to be newer is not to be damaged");
    let after = std::fs::read(state.database()).expect("the file");
    assert!(after == before, "not a byte of it is changed");
    assert!(!scratch.join("state.db.corrupt-1").exists());
}
