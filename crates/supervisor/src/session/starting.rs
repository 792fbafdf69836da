//! How the driver starts a server: for the first time, after a sleep, after a crash; or not, after too many.

use std::time::Duration;

use tokio::time::Instant;

use super::aside::look_at_code;
use super::crashes::CrashLoop;
use super::driver::{CatchingUp, Driver, Live};
use super::keeper::Keeper;
use super::pid_file::PidFile;
use super::server_files::ServerFiles;
use super::start::{self, RunError};
use super::state::{Event, State};
use crate::berth;
use crate::event::{EndCause, StartReason, Started, What};
use crate::mcp::Replay;

/// How long a server that was started again may take to answer what is said again.
const REPLAY: Duration = Duration::from_secs(60);

impl Driver {
    pub(super) fn start(&mut self, why: StartReason) -> Result<(), RunError> {
        (self.exit, self.report) = (None, None);
        let mut server = start::command(&self.spec, &self.around.remove_pid_file).spawn_async()?;
        let started = Started {
            session: server.id(),
            process: server.identity(),
            strength: server.strength().clone(),
            why,
        };
        (self.gave_up, self.exit_code, self.half_close_at) = (false, None, None);
        self.pump.server = ServerFiles::of(&mut server);
        self.pump.closing_input = false;
        // It was over for a server that was put to sleep; for this one it is if the client has closed it.
        self.is_input_over = self.pump.client.is_none();
        let pid_file = self.write_pid_file(started.process.pid);
        self.note(What::Started(started.clone()));
        self.live = Some(Live {
            guardians: server.guardians(),
            signals: server.signaller(),
            keeper: Keeper::of(server),
            started,
            since: Instant::now(),
            pid_file,
        });
        Ok(())
    }

    pub(super) fn start_again(&mut self, why: StartReason) {
        if let Err(error) = self.start(why) {
            self.warn(&format!("the server could not be started again: {error}"));
            return self.dispatch(Event::StartFailed);
        }
        match why {
            StartReason::Restart => self.counters.restarts += 1,
            StartReason::Wake | StartReason::First => self.counters.wakes += 1,
        }
        look_at_code(&self.spec, self.asides.clone());
        self.dispatch(Event::Started);
        match Replay::begin(&self.talk) {
            Some((replay, first)) => {
                self.pump.to_server.push(&first);
                self.replay = Some(CatchingUp { replay, until: Instant::now() + REPLAY });
            }
            None => {
                let lines = self.talk.listen_again();
                self.pump.to_server.push(&lines);
                self.release_held();
                self.close_input();
                self.note_quiet();
            }
        }
    }

    pub(super) fn write_pid_file(&mut self, pid: u32) -> Option<PidFile> {
        let path = self.facts.pid_file.clone()?;
        let all = self.folder.as_ref().and_then(|folder| berth::all(folder).ok()).unwrap_or_default();
        let others: Vec<_> =
            all.into_iter().map(|found| found.facts).filter(|facts| facts.run != self.facts.run).collect();
        match PidFile::write(&path, pid, self.server_version.as_deref(), &others) {
            Ok(file) => Some(file),
            Err(error) => {
                self.warn(&error.to_string());
                None
            }
        }
    }

    /// It crashed so often lately that it is not started for now: its client is told at once.
    pub(super) fn give_up(&mut self, found: CrashLoop) {
        let CrashLoop { exit_code: code, pause } = found;
        self.gave_up = true;
        self.exit_code = Some(code);
        if self.spec.is_direct() {
            // Where the client is to talk to the server itself, nobody could answer it: it learns by our end.
            self.state = State::Ended(EndCause::CrashLoop);
        } else {
            self.dispatch(Event::CrashLoop(pause));
        }
        self.warn(&format!(
            "`{}` has crashed too often within the last minute (last exit {code}) and is not started",
            self.spec.launch.name
        ));
    }
}
