//! Disks that do not do what they should: nothing is lost, nobody waits, and somebody is told.

use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use moored_supervisor::event::{EndCause, RunId};
use moored_supervisor::ledger::{
    Ledger as _, MemoryLedger, RunQuery, SqliteLedger, SqliteStore, Writer, import_spool,
};
use moored_supervisor::places::{PlaceError, StateDir};
use moored_testkit::{Scratch, User};

use crate::program::{History, example};
use crate::samples::{begun, ended, event, life, us, warned};

const LONG: Duration = Duration::from_secs(60);

/// Writes a short life down, and says how that went.
fn write(state: &StateDir, spool: &Path) -> (RunId, Option<String>) {
    let run = RunId::generate();
    let writer = Writer::start(SqliteStore::at(state.clone()), spool.to_owned());
    writer.send(event(run, 1, begun(us())));
    writer.send(event(run, 2, ended(EndCause::Operator)));
    let outcome = writer.finish(LONG);
    assert_eq!(outcome.spooled, 0);
    (run, outcome.warning)
}

/// What another ledger finds in the spool.
fn spooled(spool: &Path) -> Vec<RunId> {
    let mut ledger = MemoryLedger::default();
    import_spool(spool, &mut ledger).expect("a spool");
    let whole = |row: &moored_supervisor::ledger::RunRow| row.moored.is_some() && row.ended_at.is_some();
    let rows = ledger.runs(&RunQuery::default()).expect("rows");
    rows.into_iter().filter(whole).map(|row| row.run).collect()
}

#[test]
fn a_file_that_is_no_database_is_moved_aside_and_a_new_one_begun() {
    let scratch = Scratch::for_user(User::current());
    let state = StateDir::at(scratch.path());
    fs::write(state.database(), "not at all ".repeat(1000)).expect("a file");
    let (run, warning) = write(&state, &scratch.join("run"));
    let aside = scratch.join("state.db.corrupt-1");
    assert!(warning.is_some_and(|warning| warning.contains(aside.to_str().expect("a path"))));
    assert!(fs::read_to_string(aside).expect("what it was").starts_with("not at all"));
    let ledger = SqliteLedger::open(&state).expect("a ledger");
    assert!(ledger.run(run).expect("a row").is_some());
    let (_, warning) = write(&state, &scratch.join("run"));
    assert_eq!(warning, None, "the new one is whole");
}

#[test]
fn damage_that_shows_only_when_it_is_written_to_is_found_too() {
    let scratch = Scratch::for_user(User::current());
    let state = StateDir::at(scratch.path());
    let mut ledger = SqliteLedger::open(&state).expect("a ledger");
    for second in 0..100 {
        ledger.record(&life(RunId::generate(), second)).expect("recorded");
    }
    drop(ledger);
    let file = fs::File::options().write(true).open(state.database()).expect("the file");
    let size = file.metadata().expect("a size").len();
    // The first two pages are the schema and the page map: with these it can still be opened.
    file.write_all_at(&vec![0xa5; usize::try_from(size).expect("small") - 8192], 8192).expect("damage");
    let (run, warning) = write(&state, &scratch.join("run"));
    assert!(warning.is_some_and(|warning| warning.contains("corrupt-1")));
    let ledger = SqliteLedger::open(&state).expect("a ledger");
    assert!(ledger.run(run).expect("a row").is_some());
}

#[test]
fn of_many_who_find_the_damage_one_moves_it_aside() {
    let scratch = Scratch::for_user(User::current());
    let state = StateDir::at(scratch.path());
    fs::write(state.database(), "not at all ".repeat(1000)).expect("a file");
    let outcomes: Vec<(RunId, Option<String>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..24).map(|_| scope.spawn(|| write(&state, &scratch.join("run")))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a run")).collect()
    });
    assert_eq!(outcomes.iter().filter(|(_, warning)| warning.is_some()).count(), 1, "{outcomes:?}");
    assert!(!scratch.join("state.db.corrupt-2").exists());
    let ledger = SqliteLedger::open(&state).expect("a ledger");
    for (run, _) in outcomes {
        assert!(ledger.run(run).expect("a row").is_some());
    }
}

#[test]
fn a_folder_that_cannot_be_written_costs_a_warning_and_no_row() {
    let scratch = Scratch::for_user(User::Plain);
    let (state, spool) = (scratch.join("state"), scratch.join("run"));
    fs::create_dir(&state).expect("a folder");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o555)).expect("a folder of ours");
    let history = History::begin(User::Plain, &state, &spool, &[]);
    let run = history.run;
    let outcome = history.end();
    assert_eq!(outcome.spooled, 2);
    assert!(outcome.warning.is_some_and(|warning| warning.contains("history could not be written")));
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(&spool), 0o700);
    for entry in fs::read_dir(&spool).expect("a folder") {
        assert_eq!(mode(&entry.expect("an entry").path()), 0o600);
    }
    assert_eq!(spooled(&spool), [run]);
}

#[test]
fn needs_unshare_a_full_disk_costs_a_warning_and_no_row() {
    let scratch = Scratch::for_user(User::current());
    let (state, spool) = (scratch.join("state"), scratch.join("run"));
    fs::create_dir(&state).expect("a folder");
    let mut command = Command::new("unshare");
    if User::current() != User::Root {
        command.arg("--map-root-user");
    }
    // The mount goes with its namespace. It is full before we come.
    let script = r#"mount -t tmpfs -o size=16k,mode=700 none "$1" && { head -c 99999 /dev/zero >"$1/fill" 2>/dev/null; exec "$3" "$1" "$2"; }"#;
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(&state).arg(&spool).arg(example());
    let history = History::of(&mut command);
    let run = history.run;
    let outcome = history.end();
    assert_eq!(outcome.spooled, 2);
    assert!(outcome.warning.is_some_and(|warning| warning.contains("history could not be written")));
    assert_eq!(spooled(&spool), [run]);
}

#[test]
fn beside_a_newer_history_events_wait_in_the_spool() {
    let scratch = Scratch::for_user(User::current());
    let state = StateDir::at(scratch.join("state"));
    state.prepare().expect("a folder");
    let db = rusqlite::Connection::open(state.database()).expect("a file");
    db.execute_batch("PRAGMA user_version = 1000").expect("a newer schema");
    drop(db);
    let run = RunId::generate();
    let writer = Writer::start(SqliteStore::at(state), scratch.join("run"));
    life(run, 1).into_iter().for_each(|event| writer.send(event));
    let outcome = writer.finish(LONG);
    assert_eq!(outcome.spooled, 3);
    assert!(outcome.warning.is_some_and(|warning| warning.contains("written by a newer one")));
    assert_eq!(spooled(&scratch.join("run")), [run]);
}

#[test]
fn without_a_home_history_waits_in_the_spool() {
    let scratch = Scratch::for_user(User::current());
    let run = RunId::generate();
    let writer = Writer::start(SqliteStore::from(Err(PlaceError::NoHome)), scratch.join("run"));
    life(run, 1).into_iter().for_each(|event| writer.send(event));
    let outcome = writer.finish(LONG);
    assert_eq!(outcome.spooled, 3);
    assert!(outcome.warning.is_some_and(|warning| warning.contains("no home folder is known")));
    assert_eq!(spooled(&scratch.join("run")), [run]);
}

#[test]
fn when_not_even_the_spool_can_be_written_somebody_is_told() {
    let scratch = Scratch::for_user(User::current());
    let file = scratch.join("file");
    fs::write(&file, "").expect("a file");
    let writer = Writer::start(SqliteStore::at(StateDir::at(file.join("state"))), file.join("run"));
    writer.send(event(RunId::generate(), 1, warned("x")));
    let outcome = writer.finish(LONG);
    assert!(outcome.warning.is_some_and(|warning| warning.contains("1 events of history are lost")));
}

#[test]
fn the_files_are_the_users_alone() {
    let scratch = Scratch::for_user(User::current());
    let state = StateDir::at(scratch.join("state"));
    let mut ledger = SqliteLedger::open(&state).expect("a ledger");
    ledger.record(&life(RunId::generate(), 1)).expect("recorded");
    // The file, its lock, and as long as it is open its log and the log's index.
    let modes: Vec<u32> = fs::read_dir(state.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").metadata().expect("a file").permissions().mode() & 0o777)
        .collect();
    assert_eq!(modes, [0o600; 4]);
}
