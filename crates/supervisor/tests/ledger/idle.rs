//! A `run` to which nothing happens costs nothing here.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use moored_supervisor::ledger::{Ledger as _, SqliteLedger};
use moored_supervisor::places::StateDir;
use moored_testkit::{Scratch, User, wait_until};

use crate::program::History;

const LONG: Duration = Duration::from_secs(60);

#[test]
fn between_two_events_there_is_no_thread_and_no_open_database() {
    let scratch = Scratch::for_user(User::current());
    let (state, spool) = (StateDir::at(scratch.join("state")), scratch.join("run"));
    let history = History::begin(User::current(), state.path(), &spool, &["60000", "hold"]);
    let (run, pid) = (history.run, history.pid());
    wait_until("its beginning is written", LONG, || SqliteLedger::open(&state).ok()?.run(run).ok()?);
    wait_until("it has one thread and no file of the database", LONG, || {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives").count();
        let files: Vec<PathBuf> = fs::read_dir(format!("/proc/{pid}/fd"))
            .expect("it lives")
            .filter_map(|fd| fs::read_link(fd.ok()?.path()).ok())
            .filter(|path| path.starts_with(scratch.path()))
            .collect();
        (threads == 1 && files.is_empty()).then_some(())
    });
    assert_eq!(history.end().spooled, 0);
    let ledger = SqliteLedger::open(&state).expect("a ledger");
    assert!(ledger.run(run).expect("a row").is_some_and(|row| row.ended_at.is_some()));
}
