//! Runs and events of the past: the ledger, after importing what was left in the spool. Opened only by the commands that show
//! history; what is alive is shown without it.

use std::collections::BTreeSet;
use std::fmt;

use moored_containment::{RuntimeDir, StrengthLevel};
use moored_registry::control::RunState;
use moored_supervisor::event::{EndCause, RunId, What};
use moored_supervisor::ledger::{
    EventQuery, Ledger, LedgerError, RunQuery, RunRow, StoredEvent, import_spool, lives, open_to_read,
};

use crate::operator::Operator;
use crate::row::{ClientRow, ContainmentRow, Origin, ServerRow, Verdict};

/// History could not be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// It cannot be read.
    #[error("read history: {0}")]
    Ledger(#[from] LedgerError),
}

/// History that was opened.
pub struct History {
    ledger: Box<dyn Ledger>,
    operator: Operator,
    /// What is to be told of its opening.
    pub warnings: Vec<String>,
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History").field("operator", &self.operator).finish_non_exhaustive()
    }
}

impl Operator {
    /// Opens history.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn history(&self) -> Result<History, HistoryError> {
        let spools = self.folders().iter().map(RuntimeDir::path);
        let (ledger, warnings) = open_to_read(self.history_store(), spools)?;
        Ok(History { ledger, operator: self.clone(), warnings })
    }
}

impl History {
    /// Imports the events that sessions could not write.
    fn import_spools(&mut self) {
        for folder in self.operator.folders() {
            // What cannot be imported now stays for the next one.
            let _ = import_spool(folder.path(), self.ledger.as_mut());
        }
    }

    /// Those that have ended, the oldest first. `alive` are the ids of those that have not.
    ///
    /// # Errors
    /// If history cannot be read.
    pub fn ended(&self, alive: &BTreeSet<String>) -> Result<Vec<ServerRow>, HistoryError> {
        let runs = self.ledger.runs(&RunQuery::default())?;
        let is_over = |run: &&RunRow| {
            // One that is about to show itself in the runtime folder has a moored that lives.
            !alive.contains(&run.run.to_string())
                && (run.ended_at.is_some() || !run.moored.as_ref().is_some_and(lives))
        };
        Ok(runs.iter().rev().filter(is_over).map(ended_row).collect())
    }

    /// One `run`, alive or not.
    ///
    /// # Errors
    /// If history cannot be read.
    pub fn run(&self, run: RunId) -> Result<Option<RunRow>, HistoryError> {
        Ok(self.ledger.run(run)?)
    }

    /// Events in the order in which they were written down, what was spooled until now included.
    ///
    /// # Errors
    /// If history cannot be read.
    pub fn events(&mut self, query: &EventQuery) -> Result<Vec<StoredEvent>, HistoryError> {
        self.import_spools();
        Ok(self.ledger.events(query)?)
    }

    /// Where the stderr of a `run` was kept: where it said at its beginning, else where it is by default.
    #[must_use]
    pub fn log_of(&self, row: &ServerRow) -> Option<std::path::PathBuf> {
        let run = row.id.parse().ok()?;
        let events = self.ledger.events(&EventQuery { run: Some(run), ..EventQuery::default() });
        let told = events.unwrap_or_default().into_iter().find_map(|stored| match stored.event.what {
            What::Begun(begun) => begun.log_file,
            _ => None,
        });
        told.or_else(|| Some(self.operator.logs()?.log_of(&row.name, run)))
    }
}

fn ended_row(run: &RunRow) -> ServerRow {
    let unheld = ContainmentRow { strength: StrengthLevel::None, layers: Vec::new() };
    let ended_at = run.ended_at.unwrap_or(run.last_at);
    ServerRow {
        id: run.run.to_string(),
        name: run.name.clone(),
        origin: Origin::Run,
        state: RunState::Ended,
        verdict: Verdict::Unknown,
        reason: format!("ended: {}", seen_end(run).map_or_else(|| "it is not known how".to_owned(), cause)),
        pid: None,
        client: run.client.as_ref().map(|c| ClientRow { pid: c.pid, name: c.name.clone() }),
        command: run.command.clone(),
        cwd: run.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned()).unwrap_or_default(),
        config_file: None,
        started_at: run.started_at,
        ended_at: Some(ended_at),
        exit_code: run.exit_code,
        uptime_seconds: ended_at.duration_since(run.started_at).as_secs_f64().max(0.0),
        rss_bytes: 0,
        cpu_percent: 0.0,
        containment: run.strength.as_ref().map_or(unheld, ContainmentRow::from),
        processes: Vec::new(),
        containers: Vec::new(),
        server_version: run.server_version.clone(),
        stale: false,
        sessions: 0,
        last_activity_at: None,
    }
}

/// Why it ended. A moored that is dead and has not said so was killed; the next `run` writes that down.
fn seen_end(run: &RunRow) -> Option<EndCause> {
    run.end_cause.or(run.moored.map(|_| EndCause::MooredKilled))
}

/// Why a `run` ended, in a few words.
#[must_use]
pub fn cause(cause: EndCause) -> String {
    match cause {
        EndCause::ClientEof => "its client closed the input".to_owned(),
        EndCause::ClientGone => "its client died".to_owned(),
        EndCause::Signal(signal) => format!("by signal {signal}"),
        EndCause::ServerExited => "the server ended by itself".to_owned(),
        EndCause::Operator => "an operator stopped it".to_owned(),
        EndCause::OverLimit => "a newer one took its place".to_owned(),
        EndCause::MooredKilled => "moored was killed, its guardians ended it".to_owned(),
        EndCause::StartFailed => "it could not be started".to_owned(),
        EndCause::CrashLoop => "it crashed too often".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use moored_containment::ProcessIdentity;
    use moored_testkit::{Scratch, User};

    use super::*;
    use moored_supervisor::event::{Begun, Counters, Ended, Event};
    use moored_supervisor::ledger::{LedgerStore, MemoryStore, SqliteStore};
    use moored_supervisor::places::StateDir;

    fn begun(run: RunId, moored: ProcessIdentity, at: i64) -> Event {
        let what = What::Begun(Begun {
            moored,
            moored_version: "0".into(),
            command: vec!["srv".into()],
            cwd: "/".into(),
            client: None,
            log_file: None,
        });
        Event { at: Timestamp::from_second(at).expect("a time"), run, server: "srv".into(), what }
    }

    fn ended(run: RunId, at: i64) -> Event {
        let what = What::Ended(Ended {
            why: EndCause::ClientEof,
            exit_code: Some(3),
            counters: Counters::default(),
            report: None,
        });
        Event { at: Timestamp::from_second(at).expect("a time"), run, server: "srv".into(), what }
    }

    #[test]
    fn what_has_ended_is_listed_and_what_lives_is_not() {
        let scratch = Scratch::for_user(User::current());
        let state = StateDir::at(scratch.join("state"));
        let operator = Operator::at(RuntimeDir::at(scratch.join("run")).expect("a folder"));
        let stores: [Arc<dyn LedgerStore>; 2] =
            [Arc::new(SqliteStore::at(state.clone())), Arc::new(MemoryStore::default())];
        for store in stores {
            let operator = operator.clone().with_history(store, state.clone());
            lists_what_has_ended(operator.history().expect("history"));
        }
    }

    fn lists_what_has_ended(mut history: History) {
        let us = ProcessIdentity::of(std::process::id()).expect("us");
        let dead = ProcessIdentity { start_ticks: 1, ..us };
        let [over, lost, alive] = [(); 3].map(|()| RunId::generate());
        let events = [begun(over, us, 10), ended(over, 25), begun(lost, dead, 30), begun(alive, us, 40)];
        history.ledger.record(&events).expect("written down");

        let rows = history.ended(&BTreeSet::new()).expect("rows");
        let mut ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        ids.sort_unstable();
        let mut expected = [over.to_string(), lost.to_string()];
        expected.sort_unstable();
        assert_eq!(ids, expected);
        let row = rows.iter().find(|row| row.id == over.to_string()).expect("one");
        assert_eq!((row.state, row.exit_code, row.uptime_seconds), (RunState::Ended, Some(3), 15.0));
        assert_eq!(row.reason, "ended: its client closed the input");
        let row = rows.iter().find(|row| row.id == lost.to_string()).expect("the other");
        assert_eq!(
            (row.exit_code, row.reason.as_str()),
            (None, "ended: moored was killed, its guardians ended it")
        );
        assert_eq!(
            history.events(&EventQuery { run: Some(over), ..EventQuery::default() }).expect("events").len(),
            2
        );
        assert_eq!(history.ended(&BTreeSet::from([over.to_string()])).expect("rows").len(), 1);
    }
}
