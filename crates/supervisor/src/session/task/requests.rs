//! What an operator asks of a session over its control socket.

use std::sync::mpsc as std_mpsc;

use jiff::Timestamp;
use moored_containment::EndReport;
use tokio::sync::oneshot;
use tracing::debug;

use moored_registry::ControlRequest;
use moored_registry::control::{Reply, Request, RunState, Status, StopBy};

use super::session::Session;
use crate::event::{EndCause, StartReason};
use crate::session::life::{Phase, Trigger};
use crate::session::port::ClientPort;
use crate::session::server::{RunningServer, StartServer};

/// Who waits for something that the session does.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    stops: Vec<oneshot::Sender<Reply>>,
    sleeps: Vec<oneshot::Sender<Reply>>,
    /// A thread that made room for a wake; dropped when the server has woken.
    pub(super) woken: Option<std_mpsc::Sender<()>>,
}

impl Waiters {
    pub(super) fn slept(&mut self, report: Option<&EndReport>) {
        for waiting in self.sleeps.drain(..) {
            // The operator may have left.
            let _ = waiting.send(Reply::Hibernating { report: report.cloned() });
        }
    }

    pub(super) fn ended(&mut self, report: Option<&EndReport>) {
        for waiting in self.stops.drain(..) {
            let _ = waiting.send(Reply::Stopped { report: report.cloned() });
        }
        for waiting in self.sleeps.drain(..) {
            let _ = waiting.send(Reply::Refused { reason: "it has ended".into() });
        }
    }
}

impl<P: ClientPort, S: StartServer> Session<P, S> {
    pub(super) fn asked(&mut self, asked: ControlRequest) {
        let ControlRequest { request, answer } = asked;
        debug!(run = %self.facts.run, ?request, "an operator asks");
        match request {
            Request::Status => self.jobs.answer_status(self.status(), self.server.code.clone(), answer),
            Request::Stop { by: StopBy::Operator } => self.stop(EndCause::Operator, answer),
            Request::Stop { by: StopBy::OverLimit } => {
                match self.idle_facts().use_of_it(self.server_load()) {
                    None => self.stop(EndCause::OverLimit, answer),
                    Some(reason) => refuse(answer, reason),
                }
            }
            Request::Hibernate { why } => match self.idle_facts().refusal(self.server_load()) {
                None if self.life.phase() == Phase::Asleep => {
                    let _ = answer.send(Reply::Hibernating { report: None });
                }
                None => {
                    self.waiters.sleeps.push(answer);
                    self.sleep(why);
                }
                Some(reason) => refuse(answer, reason),
            },
        }
    }

    fn stop(&mut self, why: EndCause, answer: oneshot::Sender<Reply>) {
        self.waiters.stops.push(answer);
        self.dispatch(Trigger::Stop(why));
    }

    /// How the session is, but for whether its code is stale: that takes reading the disk.
    pub(super) fn status(&self) -> Status {
        let running = self.pump.server.as_ref().map(|server| &server.running);
        let idle = self.idle_facts();
        let silent = idle.silent;
        Status {
            state: self.run_state(),
            session: running.map(|running| running.started().session),
            server: running.map(|running| running.started().process),
            guardians: running.map(|running| running.guardians().to_vec()).unwrap_or_default(),
            strength: running.map(|running| running.started().strength.clone()),
            server_version: self.server.version.clone(),
            stale: None,
            last_activity_at: self.pump.last_activity.and_then(|_| Timestamp::now().checked_sub(silent).ok()),
            silent_ms: u64::try_from(silent.as_millis()).unwrap_or(u64::MAX),
            in_flight: idle.waiting() as u64,
            subscriptions: self.conversation.streams() as u64,
            counters: self.pump.counters,
            superseded_by: self.server.superseded_by,
        }
    }

    fn run_state(&self) -> RunState {
        match self.life.phase() {
            // A server that is to wake counts as awake when there is room for it.
            Phase::Queued(StartReason::Wake) | Phase::Asleep => RunState::Hibernating,
            Phase::Queued(_) | Phase::Dequeued(_) | Phase::Starting(_) | Phase::Doomed { .. } => {
                RunState::Starting
            }
            // A server that crashed keeps its place among the instances.
            Phase::Crashed | Phase::BackingOff => RunState::Starting,
            Phase::Serving if self.life.is_draining() => RunState::Ending,
            Phase::Serving if self.conversation.has_answered() || !self.pump.port.relays() => {
                RunState::Running
            }
            Phase::Serving => RunState::Starting,
            Phase::Interrupted | Phase::Ending(_) | Phase::FallingAsleep => RunState::Ending,
            Phase::Tripped => RunState::BackingOff,
            Phase::Ended(_) => RunState::Ended,
        }
    }
}

/// The operator may have left.
fn refuse(answer: oneshot::Sender<Reply>, reason: String) {
    let _ = answer.send(Reply::Refused { reason });
}
