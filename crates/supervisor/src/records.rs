//! What is kept of one session, put together: its history in a store, its server's stderr in a log, and the folder in which
//! it is found while it lives. This file owns which of them go where; each of them is a room of its own (`ledger`, `log`,
//! `places`). Sessions of one process differ in their [`Storage`] only if they are told to.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moored_containment::RuntimeDir;
use moored_launch::ServerSpec;
use moored_registry::Origin;

use crate::event::{Event, RunId};
use crate::ledger::{LedgerStore, SqliteStore, Writer};
use crate::log::{Limits, ServerLog};
use crate::places::StateDir;
use crate::session::{Housekeeping, SessionHost};

/// Where sessions are found while they live, and what is kept of them.
#[derive(Debug)]
pub struct Storage {
    /// The folder of live sessions; without one no other process can find them.
    pub runtime: io::Result<RuntimeDir>,
    /// The folder of logs; without one the stderr of a server is kept only where its rules name a file.
    pub logs: Option<StateDir>,
    /// History.
    pub history: Arc<dyn LedgerStore>,
}

impl Storage {
    /// The user's own. What cannot be had is told when it is used, and keeps no server from running.
    #[must_use]
    pub fn of_user() -> Self {
        let state = StateDir::of_user();
        Self {
            runtime: RuntimeDir::of_user(),
            logs: state.as_ref().ok().cloned(),
            history: Arc::new(SqliteStore::from(state)),
        }
    }
}

/// The program that runs the session, for what others are told of it and what the guardians run.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its version.
    pub version: &'static str,
    /// A command that removes a PID file whose process is dead; its path is added as the last word.
    pub remove_pid_file: Vec<OsString>,
}

/// What is written down of one session while it lives.
#[derive(Debug)]
pub struct SessionRecords {
    writer: Arc<Writer>,
    log: Arc<Mutex<Option<ServerLog>>>,
}

impl SessionRecords {
    /// Names the session and makes ready to write of it; opens no file before there is something to write. The session
    /// itself is run with what is returned beside it.
    #[must_use]
    pub fn begin(spec: &ServerSpec, storage: Storage, program: Program) -> (Self, SessionHost) {
        let Storage { runtime: folder, logs, history } = storage;
        let run = RunId::generate();
        let usual_log = || logs.map(|logs| logs.log_of(&spec.launch.name, run));
        let log_file = spec.rules.log_file.clone().or_else(usual_log);
        let records = Self {
            writer: Arc::new(Writer::start(history, spool_in(&folder))),
            log: Arc::new(Mutex::new(log_file.clone().map(|path| ServerLog::open(path, Limits::default())))),
        };
        let (writer, log) = (Arc::clone(&records.writer), Arc::clone(&records.log));
        let host = SessionHost {
            folder,
            events: Box::new(move |event| writer.send(event)),
            log: Box::new(move |bytes| {
                if let Some(log) = log.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                    log.write(bytes);
                }
            }),
            log_file,
            run,
            version: program.version,
            remove_pid_file: program.remove_pid_file,
            housekeeping: Housekeeping::BySession,
            origin: Origin::Run,
        };
        (records, host)
    }

    /// Waits up to `timeout` for the log and then up to `timeout` for the history to be written, and says what could not be.
    /// Events that are not written by then are in the spool.
    #[must_use]
    pub fn finish(self, timeout: Duration) -> Vec<String> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner).take();
        let log = log.and_then(|log| log.finish(timeout)).map(|warning| format!("log: {warning}"));
        let history = self.writer.finish(timeout).warning.map(|warning| format!("history: {warning}"));
        log.into_iter().chain(history).collect()
    }
}

/// What is written down of all sessions of one process: one writer of history for all of them, and a log for each.
#[derive(Debug)]
pub struct HostRecords {
    writer: Arc<Writer>,
    folder: Result<RuntimeDir, String>,
    logs: Option<StateDir>,
    program: Program,
}

impl HostRecords {
    /// Makes ready to write; opens no file before there is something to write.
    #[must_use]
    pub fn new(storage: Storage, program: Program) -> Self {
        let Storage { runtime, logs, history } = storage;
        let writer = Arc::new(Writer::start(history, spool_in(&runtime)));
        Self { writer, folder: runtime.map_err(|error| error.to_string()), logs, program }
    }

    /// The folder of live sessions, if there is one.
    #[must_use]
    pub fn folder(&self) -> Option<&RuntimeDir> {
        self.folder.as_ref().ok()
    }

    /// What a new session of this process is run with. `listener` is told of its events too, before they are written.
    pub fn session(
        &self,
        spec: &ServerSpec,
        mut listener: impl FnMut(&Event) + Send + 'static,
    ) -> SessionHost {
        let run = RunId::generate();
        let usual_log = || self.logs.as_ref().map(|logs| logs.log_of(&spec.launch.name, run));
        let log_file = spec.rules.log_file.clone().or_else(usual_log);
        let log = log_file.clone().map(|path| ServerLog::open(path, Limits::default()));
        let writer = Arc::clone(&self.writer);
        SessionHost {
            folder: self.folder.clone().map_err(io::Error::other),
            events: Box::new(move |event| {
                listener(&event);
                writer.send(event);
            }),
            log: Box::new(move |bytes| {
                if let Some(log) = &log {
                    log.write(bytes);
                }
            }),
            log_file,
            run,
            version: self.program.version,
            remove_pid_file: self.program.remove_pid_file.clone(),
            housekeeping: Housekeeping::ByHost,
            origin: Origin::Serve,
        }
    }

    /// Waits up to `timeout` for the history to be written, and says what could not be. Events that are not written by then
    /// are in the spool.
    #[must_use]
    pub fn finish(&self, timeout: Duration) -> Vec<String> {
        let warning = self.writer.finish(timeout).warning;
        warning.map(|warning| format!("history: {warning}")).into_iter().collect()
    }
}

/// Events that cannot be written are left in the folder of live sessions, which is in memory on most machines.
fn spool_in(folder: &io::Result<RuntimeDir>) -> PathBuf {
    folder.as_ref().map_or_else(|_| std::env::temp_dir(), |folder| folder.path().to_path_buf())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use moored_launch::{Launch, ProcessEnv, Rules};
    use moored_testkit::{Scratch, User};

    use super::*;
    use crate::event::What;
    use crate::ledger::{EventQuery, Ledger as _, MemoryStore};

    const LONG: Duration = Duration::from_secs(60);

    fn spec(rules: Rules) -> ServerSpec {
        ServerSpec { launch: Launch::new("srv", "srv"), process_env: ProcessEnv::default(), rules }
    }

    fn program() -> Program {
        Program { version: "0", remove_pid_file: Vec::new() }
    }

    #[test]
    fn what_a_session_says_is_in_the_history_and_the_log_of_its_storage() {
        let scratch = Scratch::for_user(User::current());
        let history = MemoryStore::default();
        let storage = Storage {
            runtime: RuntimeDir::at(scratch.join("run")),
            logs: Some(StateDir::at(scratch.join("state"))),
            history: Arc::new(history.clone()),
        };
        let (records, mut session) = SessionRecords::begin(&spec(Rules::default()), storage, program());
        let what = What::Warned { message: "hm".into() };
        (session.events)(Event { at: Timestamp::UNIX_EPOCH, run: session.run, server: "srv".into(), what });
        (session.log)(b"said\n");
        assert_eq!(records.finish(LONG), [""; 0]);
        let events = history.events(&EventQuery { run: Some(session.run), ..EventQuery::default() });
        assert_eq!(events.expect("events").len(), 1);
        let log = session.log_file.expect("a log");
        assert!(log.starts_with(scratch.join("state")), "{log:?}");
        assert_eq!(std::fs::read_to_string(log).expect("the log"), "said\n");
    }

    #[test]
    fn a_log_that_cannot_be_written_is_told_of_at_the_end() {
        let scratch = Scratch::for_user(User::current());
        let file = scratch.join("file");
        std::fs::write(&file, "").expect("a file");
        let storage = Storage {
            runtime: Err(io::Error::other("none")),
            logs: None,
            history: Arc::new(SqliteStore::at(StateDir::at(file.join("state")))),
        };
        let rules = Rules { log_file: Some(file.join("log")), ..Rules::default() };
        let (records, mut session) = SessionRecords::begin(&spec(rules), storage, program());
        (session.log)(b"said\n");
        let warnings = records.finish(LONG);
        assert!(matches!(&warnings[..], [log] if log.starts_with("log: ")), "{warnings:?}");
    }
}
