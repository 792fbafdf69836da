//! Writer and readers know a store, and not which one: what holds of SQLite holds of any other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use moored_supervisor::event::{Event, RunId};
use moored_supervisor::ledger::{
    DatabaseFault, EventQuery, Ledger, LedgerError, LedgerStore, Lives, MemoryStore, Opened, Retention,
    RunQuery, RunRow, SqliteStore, StoredEvent, Writer, open_to_read,
};
use moored_supervisor::places::{PlaceError, StateDir};
use moored_testkit::{Scratch, User};

use crate::samples::life;

const LONG: Duration = Duration::from_secs(60);

/// One of each kind, empty.
fn stores(scratch: &Scratch) -> [Arc<dyn LedgerStore>; 2] {
    [Arc::new(SqliteStore::at(StateDir::at(scratch.join("state")))), Arc::new(MemoryStore::default())]
}

#[test]
fn what_a_session_writes_into_a_store_a_reader_finds_there_with_what_was_spooled() {
    let scratch = Scratch::for_user(User::current());
    let [written, left] = [(); 2].map(|()| RunId::generate());
    for store in stores(&scratch) {
        let writer = Writer::start(store.clone(), scratch.join("run"));
        life(written, 1).into_iter().for_each(|event| writer.send(event));
        assert_eq!(writer.finish(LONG), Default::default());
        let without = Writer::start(SqliteStore::from(Err(PlaceError::NoHome)), scratch.join("run"));
        life(left, 1).into_iter().for_each(|event| without.send(event));
        assert_eq!(without.finish(LONG).spooled, 3);

        let (ledger, warnings) = open_to_read(&store, [scratch.join("run").as_path()]).expect("history");
        assert_eq!(warnings, [""; 0]);
        for run in [written, left] {
            let row = ledger.run(run).expect("a row").expect("its row");
            assert!(row.moored.is_some() && row.ended_at.is_some(), "{store:?}: {row:?}");
        }
        assert_eq!(ledger.runs(&RunQuery::default()).expect("rows").len(), 2);
    }
}

/// Memory that is damaged when it is first written to, until it is put aside.
#[derive(Clone, Debug, Default)]
struct Damaged {
    whole: MemoryStore,
    set_aside: Arc<AtomicUsize>,
}

impl LedgerStore for Damaged {
    fn open(&self) -> Result<Opened, LedgerError> {
        match self.set_aside.load(Ordering::Relaxed) {
            0 => Ok(Opened { ledger: Box::new(Rotten), warning: None }),
            _ => self.whole.open(),
        }
    }

    fn set_aside_damaged(&self, damage: &LedgerError) -> Result<Option<String>, LedgerError> {
        assert!(damage.is_damage());
        self.set_aside.fetch_add(1, Ordering::Relaxed);
        Ok(Some("it was put aside".into()))
    }
}

/// Cannot be read or written.
struct Rotten;

fn rot<T>() -> Result<T, LedgerError> {
    let (path, message) = ("rotten".into(), "it is rotten".into());
    Err(LedgerError::Database { path, message, kind: DatabaseFault::Corrupt })
}

impl Ledger for Rotten {
    fn record(&mut self, _: &[Event]) -> Result<(), LedgerError> {
        rot()
    }

    fn runs(&self, _: &RunQuery) -> Result<Vec<RunRow>, LedgerError> {
        rot()
    }

    fn run(&self, _: RunId) -> Result<Option<RunRow>, LedgerError> {
        rot()
    }

    fn events(&self, _: &EventQuery) -> Result<Vec<StoredEvent>, LedgerError> {
        rot()
    }

    fn prune(&mut self, _: &Retention, _: jiff::Timestamp, _: Lives<'_>) -> Result<u64, LedgerError> {
        Ok(0)
    }
}

#[test]
fn a_store_that_is_damaged_is_put_aside_once_and_nothing_is_lost() {
    let scratch = Scratch::for_user(User::current());
    let (store, run) = (Damaged::default(), RunId::generate());
    let writer = Writer::start(store.clone(), scratch.join("run"));
    life(run, 1).into_iter().for_each(|event| writer.send(event));
    let outcome = writer.finish(LONG);
    assert_eq!((outcome.spooled, outcome.warning.as_deref()), (0, Some("it was put aside")));
    assert_eq!(store.set_aside.load(Ordering::Relaxed), 1);
    assert_eq!(store.whole.events(&EventQuery::default()).expect("events").len(), 3);
}
