//! What could not be written in time is taken in by whoever comes next.

use std::fs;
use std::path::Path;
use std::time::Duration;

use moored_supervisor::event::{EndCause, RunId};
use moored_supervisor::ledger::{
    EventQuery, Imported, Ledger as _, LedgerError, MemoryLedger, Retention, RunQuery, RunRow, SqliteLedger,
    SqliteStore, StoredEvent, Writer, import_spool, open_to_read,
};
use moored_supervisor::places::{PlaceError, StateDir};
use moored_testkit::{Scratch, User, wait_until};

use crate::program::History;
use crate::samples::{begun, ended, event, life, us};

const LONG: Duration = Duration::from_secs(60);

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// Leaves a life in the spool.
fn leave(spool: &Path) -> RunId {
    let run = RunId::generate();
    let writer = Writer::start(SqliteStore::from(Err(PlaceError::NoHome)), spool.to_owned());
    life(run, 1).into_iter().for_each(|event| writer.send(event));
    assert_eq!(writer.finish(LONG).spooled, 3);
    run
}

#[test]
fn what_a_killed_writer_could_not_write_is_taken_in_by_the_next() {
    let scratch = Scratch::for_user(User::current());
    let (file, spool) = (scratch.join("file"), scratch.join("run"));
    fs::write(&file, "").expect("a file");
    let history = History::begin(User::current(), &file.join("state"), &spool, &["60000", "hold"]);
    wait_until("its beginning is in the spool", LONG, || {
        names(&spool).iter().any(|name| !name.starts_with('.') && name.ends_with(".events")).then_some(())
    });
    let killed = history.run;
    history.kill();

    let state = StateDir::at(scratch.join("state"));
    let run = RunId::generate();
    let writer = Writer::start(SqliteStore::at(state.clone()), spool.clone());
    writer.send(event(run, 1, begun(us())));
    assert_eq!(writer.finish(LONG).warning, None);
    assert_eq!(names(&spool), [""; 0]);
    let ledger = SqliteLedger::open(&state).expect("a ledger");
    assert!(ledger.run(run).expect("a row").is_some());
    let row = ledger.run(killed).expect("a row").expect("the killed one's");
    assert!(row.moored.is_some() && row.ended_at.is_none());
}

#[test]
fn a_writer_whose_patience_is_over_leaves_what_it_has_and_the_next_takes_it() {
    let scratch = Scratch::for_user(User::current());
    let state = StateDir::at(scratch.join("state"));
    let spool = scratch.join("run");
    // Somebody holds the database.
    drop(SqliteLedger::open(&state).expect("a ledger"));
    let other = rusqlite::Connection::open(state.database()).expect("a connection");
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let run = RunId::generate();
    let writer = Writer::start(SqliteStore::at(state.clone()), spool.clone());
    life(run, 1).into_iter().for_each(|event| writer.send(event));
    let outcome = writer.finish(Duration::from_millis(50));
    assert_eq!((outcome.spooled, outcome.warning), (3, None));
    other.execute_batch("ROLLBACK").expect("the lock is given back");

    let mut ledger = SqliteLedger::open(&state).expect("a ledger");
    assert_eq!(import_spool(&spool, &mut ledger).expect("imported").events, 3);
    let row = ledger.run(run).expect("a row").expect("its row");
    assert_eq!(row.end_cause, Some(EndCause::ClientEof));
    // The one that had lost patience writes them after all: they are there once.
    assert_eq!(writer.finish(LONG).spooled, 0);
    assert_eq!(ledger.events(&EventQuery::default()).expect("events").len(), 3);
}

#[test]
fn whoever_reads_history_takes_in_what_was_spooled() {
    let scratch = Scratch::for_user(User::current());
    let (state, spool) = (StateDir::at(scratch.join("state")), scratch.join("run"));
    let run = leave(&spool);
    let (ledger, warnings) = open_to_read(&SqliteStore::at(state), [spool.as_path()]).expect("a ledger");
    assert_eq!(warnings, [""; 0]);
    assert!(ledger.run(run).expect("a row").is_some());
    assert_eq!(names(&spool), [""; 0]);
}

#[test]
fn a_claim_whose_importer_died_is_taken_up() {
    let scratch = Scratch::for_user(User::current());
    let run = leave(scratch.path());
    let [name] = names(scratch.path()).try_into().expect("one file");
    fs::rename(scratch.join(name), scratch.join("01ABC.taken")).expect("a claim that nobody locks");
    let mut ledger = MemoryLedger::default();
    import_spool(scratch.path(), &mut ledger).expect("imported");
    assert!(ledger.run(run).expect("a row").is_some());
    assert_eq!(names(scratch.path()), [""; 0]);
}

#[test]
fn a_draft_is_left_alone_while_its_writer_lives_and_read_as_far_as_it_goes_afterwards() {
    let scratch = Scratch::for_user(User::current());
    let run = leave(scratch.path());
    let [name] = names(scratch.path()).try_into().expect("one file");
    let text = fs::read_to_string(scratch.join(&name)).expect("the file");
    fs::remove_file(scratch.join(&name)).expect("the file");
    let draft = scratch.join(format!(".{name}"));
    fs::write(&draft, &text[..text.len() - 9]).expect("a torn draft");
    let writer = fs::File::open(&draft).expect("the draft");
    writer.lock().expect("its writer's lock");
    let mut ledger = MemoryLedger::default();
    assert_eq!(import_spool(scratch.path(), &mut ledger).expect("imported"), Imported::default());
    drop(writer);
    let imported = import_spool(scratch.path(), &mut ledger).expect("imported");
    assert_eq!(imported, Imported { events: 2, unknown: 1 });
    assert!(ledger.run(run).expect("a row").is_some_and(|row| row.ended_at.is_none()));
    assert_eq!(names(scratch.path()), [""; 0]);
}

#[test]
fn importers_at_once_take_every_event_and_every_file() {
    let scratch = Scratch::for_user(User::current());
    let (state, spool) = (StateDir::at(scratch.join("state")), scratch.join("run"));
    let runs: Vec<RunId> = (0..20).map(|_| leave(&spool)).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut ledger = SqliteLedger::open(&state).expect("a ledger");
                import_spool(&spool, &mut ledger).expect("imported");
            });
        }
    });
    let mut ledger = SqliteLedger::open(&state).expect("a ledger");
    // Two that wanted the same one may have left it to each other.
    import_spool(&spool, &mut ledger).expect("imported");
    assert_eq!(names(&spool), [""; 0]);
    for run in runs {
        assert!(ledger.run(run).expect("a row").is_some_and(|row| row.ended_at.is_some()));
    }
}

/// Takes nothing.
struct Full;

impl moored_supervisor::ledger::Ledger for Full {
    fn record(&mut self, _: &[moored_supervisor::event::Event]) -> Result<(), LedgerError> {
        Err(LedgerError::Place("full".into()))
    }

    fn runs(&self, _: &RunQuery) -> Result<Vec<RunRow>, LedgerError> {
        Ok(Vec::new())
    }

    fn run(&self, _: RunId) -> Result<Option<RunRow>, LedgerError> {
        Ok(None)
    }

    fn events(&self, _: &EventQuery) -> Result<Vec<StoredEvent>, LedgerError> {
        Ok(Vec::new())
    }

    fn prune(
        &mut self,
        _: &Retention,
        _: jiff::Timestamp,
        _: moored_supervisor::ledger::Lives<'_>,
    ) -> Result<u64, LedgerError> {
        Ok(0)
    }
}

#[test]
fn what_a_ledger_does_not_take_stays_in_the_spool() {
    let scratch = Scratch::for_user(User::current());
    let run = leave(scratch.path());
    import_spool(scratch.path(), &mut Full).expect_err("it takes nothing");
    let mut ledger = MemoryLedger::default();
    import_spool(scratch.path(), &mut ledger).expect("imported");
    assert!(ledger.run(run).expect("a row").is_some());
}

#[test]
fn two_who_leave_events_of_one_run_do_not_replace_each_other() {
    let scratch = Scratch::for_user(User::current());
    let run = RunId::generate();
    for what in [begun(us()), ended(EndCause::MooredKilled)] {
        let writer = Writer::start(SqliteStore::from(Err(PlaceError::NoHome)), scratch.path().to_owned());
        writer.send(event(run, 1, what));
        assert_eq!(writer.finish(LONG).spooled, 1);
    }
    let mut ledger = MemoryLedger::default();
    import_spool(scratch.path(), &mut ledger).expect("imported");
    let row = ledger.run(run).expect("a row").expect("its row");
    assert!(row.moored.is_some() && row.end_cause == Some(EndCause::MooredKilled));
}
