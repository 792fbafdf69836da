//! Registers each process of a set in the user's runtime folder while it lives, so that `moored ps`, `inspect` and `stop` find
//! it, and answers on its control socket.
//!
//! The registration belongs to what holds the process (`process_hold`), and goes with it: a set that is dropped without a runtime
//! removes file and socket too. The task that answers only reads the slot and gives the order that the set itself would give;
//! without its runtime no task answers, and operators see what is on file. What is written, and who may remove it, is said in
//! `moored_registry`.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use moored_containment::aio::Contained;
use moored_containment::{ProcessIdentity, RuntimeDir, SessionId, Strength};
use moored_launch::ProcessEnv;
use moored_registry::boot_time::millis_since_boot;
use moored_registry::control::{Counters, Reply, Request, RunState, Status, StopBy};
use moored_registry::{
    Client, ControlRequest, ControlServer, Origin, RunId, RunInfo, RunRegistration, Timestamp,
};
use tokio::sync::oneshot;

use super::life::EndedWhy;
use super::process_hold::Outcome;
use super::slot::{Order, Phase, Slot, SlotState};

/// Whether the servers of a set are registered in the user's runtime folder, where `moored ps` and `moored stop` find them.
///
/// ```
/// use moored_client::{Registration, SetOptions};
/// let options = SetOptions::default().registration(Registration::Off);
/// # drop(options);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Registration {
    /// Each server is registered while its process lives. Where that fails, it runs all the same.
    #[default]
    On,
    /// None is. Their containments are on record in any case.
    Off,
}

/// The registration of one process. Dropping it removes the file and the control socket.
pub(crate) struct ServerRegistration {
    registration: RunRegistration,
    /// To the task that answers.
    ended: oneshot::Sender<Outcome>,
}

impl ServerRegistration {
    /// Registers a process that was just started. To be called on a runtime. The few calls to the file system are of the
    /// kind that starting the process took: its record is in the same folder.
    pub(crate) fn of(contained: &Contained, slot: &Arc<Slot>) -> Option<Self> {
        // A server that cannot be found by an operator is better than none.
        Self::try_of(contained, slot).ok()
    }

    fn try_of(contained: &Contained, slot: &Arc<Slot>) -> io::Result<Self> {
        let folder = RuntimeDir::of_user()?;
        let host = host()?;
        let process = ServerProcess {
            session: contained.id(),
            server: contained.identity(),
            guardians: contained.guardians().to_vec(),
            strength: contained.strength().clone(),
        };
        let registration = RunRegistration::take(&folder, &run_info(slot, &host, process.session)?)?;
        let (ended, has_ended) = oneshot::channel();
        // Without a socket it is found all the same, and does not answer.
        if let Ok(control) = ControlServer::open(&registration.socket()) {
            let task = ControlTask { slot: slot.clone(), host, process, stops: Vec::new() };
            tokio::spawn(task.answer(control, has_ended));
        }
        Ok(Self { registration, ended })
    }

    /// Removes it because its process has ended; then tells operators who wait for that.
    pub(crate) fn remove(self, outcome: &Outcome) {
        let Self { registration, ended } = self;
        drop(registration);
        // The task is gone if its runtime is.
        let _ = ended.send(outcome.clone());
    }
}

/// This program, as the client of its servers.
fn host() -> io::Result<Client> {
    let identity = ProcessIdentity::of(std::process::id())?;
    let program = std::env::current_exe().unwrap_or_default();
    let name = program.file_name().map(OsStr::to_string_lossy).unwrap_or_default().into_owned();
    Ok(Client { pid: identity.pid, identity: Some(identity), name })
}

fn run_info(slot: &Slot, host: &Client, session: SessionId) -> io::Result<RunInfo> {
    let launch = &slot.spec.launch;
    let ours = ProcessEnv { cwd: std::env::current_dir()?, env: std::env::vars_os().collect() };
    Ok(RunInfo {
        run: RunId::generate(),
        moored: ProcessIdentity::of(std::process::id())?,
        moored_version: env!("CARGO_PKG_VERSION").to_owned(),
        name: launch.name.clone(),
        command: launch.masked_argv(),
        cwd: PathBuf::from(launch.cwd_in(&ours).to_string_lossy().into_owned()),
        server_key: launch.server_key(),
        entry_key: launch.entry_key(&ours),
        client: Some(host.clone()),
        client_holds_stdin: true,
        origin: Origin::Client,
        began_ms: Some(millis_since_boot()),
        session: Some(session),
        started_at: Timestamp::now(),
        log_file: None,
        pid_file: None,
        max_instances: None,
    })
}

/// What is known of the process from its start.
struct ServerProcess {
    session: SessionId,
    server: ProcessIdentity,
    guardians: Vec<ProcessIdentity>,
    strength: Strength,
}

/// Answers operators for one process of a server.
struct ControlTask {
    slot: Arc<Slot>,
    host: Client,
    process: ServerProcess,
    /// Operators who wait for its end.
    stops: Vec<oneshot::Sender<Reply>>,
}

impl ControlTask {
    /// Until the process has ended.
    async fn answer(mut self, mut control: ControlServer, mut ended: oneshot::Receiver<Outcome>) {
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = &mut ended => break outcome.ok(),
                Some(request) = control.next() => self.take(request),
            }
        };
        for waiting in self.stops {
            let reply = match &outcome {
                Some(Ok(report)) => Reply::Stopped { report: Some(report.clone()) },
                Some(Err(error)) => Reply::Refused { reason: format!("its end is not known: {error}") },
                None => Reply::Refused { reason: "its end is not known".into() },
            };
            // The operator may have left.
            let _ = waiting.send(reply);
        }
        control.close().await;
    }

    fn take(&mut self, request: ControlRequest) {
        let ControlRequest { request, answer } = request;
        let reply = match request {
            Request::Status => Reply::Status(Box::new(self.status())),
            Request::Stop { by: StopBy::Operator } => {
                // As when the set is shut down: calls in flight are told, and it is not started again.
                self.slot.order(Order::Stop { why: EndedWhy::Stopped, drain: Duration::ZERO });
                return self.stops.push(answer);
            }
            Request::Stop { by: StopBy::OverLimit } | Request::Hibernate { .. } => {
                let Client { pid, name, .. } = &self.host;
                Reply::Refused { reason: format!("only its host {name} ({pid}) decides when it rests") }
            }
        };
        let _ = answer.send(reply);
    }

    fn status(&self) -> Status {
        let ServerProcess { session, server, guardians, strength } = &self.process;
        let (state, server_version, in_flight, silent) = self.slot.look(|slot_state| {
            let silent =
                if slot_state.in_flight > 0 { Duration::ZERO } else { slot_state.last_used.elapsed() };
            (state(slot_state), version(slot_state), slot_state.in_flight as u64, silent)
        });
        Status {
            state,
            session: Some(*session),
            server: Some(*server),
            guardians: guardians.clone(),
            strength: Some(strength.clone()),
            server_version,
            stale: None,
            last_activity_at: Timestamp::now().checked_sub(silent).ok(),
            silent_ms: u64::try_from(silent.as_millis()).unwrap_or(u64::MAX),
            in_flight,
            // Messages are rmcp's here, which does not count them.
            subscriptions: 0,
            counters: Counters::default(),
            superseded_by: None,
        }
    }
}

fn state(slot_state: &SlotState) -> RunState {
    match slot_state.phase {
        Phase::Starting => RunState::Starting,
        Phase::Up(_) => RunState::Running,
        // Its process is still there, and ends.
        Phase::Asleep | Phase::Down { .. } | Phase::Ending(_) | Phase::Ended(_) => RunState::Ending,
    }
}

fn version(slot_state: &SlotState) -> Option<String> {
    let Phase::Up(live) = &slot_state.phase else { return None };
    Some(live.connection.peer_info()?.server_info.as_ref()?.version.clone())
}
