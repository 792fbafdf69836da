//! How a session starts a server: for the first time, after a sleep, after a crash; or not, after too many.

use std::io;
use std::sync::mpsc as std_mpsc;
use std::time::Duration;

use moored_containment::StartError;
use tokio::time::Instant;

use moored_registry::{ControlServer, NoRoom, RegisteredRun, RunRegistration};

use super::session::{Session, not_findable};
use crate::event::{EndCause, StartReason, What};
use crate::session::life::{Phase, Trigger};
use crate::session::pid_file::PidFile;
use crate::session::port::ClientPort;
use crate::session::pump::LiveServer;
use crate::session::server::{RunningServer, StartServer};

/// How long a server that was started again may take to answer what it is told again.
const REPLAY: Duration = Duration::from_secs(60);

impl<P: ClientPort, S: StartServer> Session<P, S> {
    /// Takes a place in the runtime folder, if there is one.
    pub(super) fn register(&mut self) {
        let Some(folder) = &self.presence.folder else { return };
        let taken = RunRegistration::take(folder, &self.facts);
        self.registered(taken);
    }

    fn registered(&mut self, taken: io::Result<RunRegistration>) {
        let opened = taken.and_then(|registration| {
            let control = ControlServer::open(&registration.socket());
            self.presence.registration = Some(registration);
            self.presence.control = Some(control?);
            Ok(())
        });
        if let Err(error) = opened {
            self.warn(&not_findable(&error));
        }
    }

    /// It crashed so often lately that it is not started: its client is told at once.
    pub(super) fn begin_tripped(&mut self, code: i32) {
        self.end.is_crash_loop = true;
        self.end.exit_code = Some(code);
        let name = self.spec.launch.name.clone();
        self.refuse_calls();
        self.warn(&format!(
            "`{name}` has crashed too often within the last minute (last exit {code}) and is not started"
        ));
        if !self.pump.port.relays() {
            // No call can be answered where the client is to talk to the server itself: it learns by our end.
            self.dispatch(Trigger::Stop(EndCause::CrashLoop));
        }
    }

    pub(super) fn make_room(&mut self, why: StartReason) {
        let (Some(folder), Some(limit)) = (self.presence.folder.clone(), self.spec.rules.max_instances)
        else {
            return self.dispatch(Trigger::RoomMade);
        };
        if why == StartReason::First {
            self.jobs.make_first_room(folder, self.facts.clone(), limit, self.spec.rules.over_limit);
        } else {
            self.jobs.make_wake_room(folder, self.facts.clone(), limit);
        }
    }

    pub(super) fn first_room(&mut self, room: Result<io::Result<RunRegistration>, NoRoom>) {
        match room {
            Ok(taken) => {
                self.registered(taken);
                self.dispatch(Trigger::RoomMade);
            }
            Err(no_room) => {
                self.end.failure = Some(no_room.into());
                self.dispatch(Trigger::NoRoom);
            }
        }
    }

    /// The thread that made room holds its turn to count until the server has woken.
    pub(super) fn wake_room(&mut self, woken: std_mpsc::Sender<()>) {
        self.dispatch(Trigger::RoomMade);
        if matches!(self.life.phase(), Phase::Starting(_)) {
            self.waiters.woken = Some(woken);
        }
    }

    pub(super) fn start_finished(&mut self, started: Result<S::Server, StartError>) {
        let (Phase::Starting(why) | Phase::Doomed { why, .. }) = self.life.phase() else {
            // A start is waited for in these two phases only.
            return;
        };
        match started {
            Ok(running) => self.started(running, why),
            Err(error) if why == StartReason::First => {
                self.end.failure = Some(error.into());
                self.dispatch(Trigger::StartFailed);
            }
            Err(error) => {
                self.warn(&format!("the server could not be started again: {error}"));
                self.dispatch(Trigger::StartFailed);
            }
        }
        self.waiters.woken = None;
    }

    fn started(&mut self, running: S::Server, why: StartReason) {
        let started = running.started().clone();
        let pid_file = self.write_pid_file(started.process.pid);
        self.reporter.note(What::Started(started));
        self.pump.server = Some(LiveServer::new(running, pid_file, self.spec.rules.line_limit));
        // It was over for a server that was put to sleep; for this one it is if the client has closed its end.
        self.is_input_over = self.pump.is_client_over();
        (self.end.is_crash_loop, self.end.exit_code) = (false, None);
        self.timers.half_close = None;
        match why {
            StartReason::First => {}
            StartReason::Restart => self.pump.counters.restarts += 1,
            StartReason::Wake => self.pump.counters.wakes += 1,
        }
        if why != StartReason::First {
            self.jobs.look_at_code(&self.spec);
        }
        // Its client may have left meanwhile: what it said before counts as said.
        if matches!(self.life.phase(), Phase::Starting(_)) || self.conversation.has_pending() {
            let effects = self.conversation.server_started();
            self.apply(effects);
            if self.conversation.is_replaying() {
                self.timers.replay = Some(Instant::now() + REPLAY);
            }
        }
        self.dispatch(Trigger::Started);
        self.close_input();
    }

    fn write_pid_file(&mut self, pid: u32) -> Option<PidFile> {
        let path = self.facts.pid_file.clone()?;
        let all = self
            .presence
            .folder
            .as_ref()
            .and_then(|folder| RegisteredRun::all(folder).ok())
            .unwrap_or_default();
        let others: Vec<_> =
            all.into_iter().map(|found| found.info).filter(|facts| facts.run != self.facts.run).collect();
        match PidFile::write(&path, pid, self.server.version.as_deref(), &others) {
            Ok(file) => Some(file),
            Err(error) => {
                self.warn(&error.to_string());
                None
            }
        }
    }
}
