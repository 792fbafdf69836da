//! How the driver takes an end: of the server, of its tree, of the session. What was said before it is passed on, whoever
//! waits for an answer gets one, and what is left is told.

use std::time::Duration;

use moored_containment::{EndReport, ServerExit};
use tokio::time::Instant;

use super::driver::Driver;
use super::server_files::ServerFiles;
use super::start::{RunError, RunOutcome};
use super::state::{Event, Exit, State};
use crate::control::Reply;
use crate::event::{EndCause, Ended, What};
use crate::mcp::{Failure, error_line, ids_in_batch};
use crate::relay::Envelope;
use moored_launch::{BackOff, Restart};

/// How long the client may take to fetch the server's last words, without fetching any.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// A server that lived this long has answered `initialize`, if it ever does.
pub(super) const BEGINNING: Duration = Duration::from_secs(10);

impl Driver {
    pub(super) fn exited(&mut self, exit: Option<ServerExit>) {
        // What it said before counts as said.
        self.drain();
        self.exit = exit;
        let failed = !exit.is_some_and(ServerExit::success);
        if failed && self.state == State::Serving {
            if !self.is_past_beginning()
                && self.has_client()
                && let Some(crashes) = &self.crashes
            {
                crashes.note(exit);
            }
            // The next one could not talk to the client over a pipe that this one has closed.
            if self.spec.rules.restart == Restart::OnCrash && !self.is_half_closed {
                return self.crashed();
            }
        }
        self.dispatch(Event::Exited(Exit::Done));
    }

    /// What is said directly is not heard: there its age has to tell.
    fn is_past_beginning(&self) -> bool {
        let lived = self.live.as_ref().map_or(Duration::ZERO, |live| live.since.elapsed());
        self.talk.is_settled() || self.spec.is_direct() && lived > BEGINNING
    }

    /// Somebody who speaks MCP may be there: what is typed into a terminal, or runs in a script, is nobody's crash loop.
    fn has_client(&self) -> bool {
        self.counters.messages_to_server > 0
            || self.client.as_ref().is_some_and(|client| client.stdin.is_possible())
    }

    pub(super) fn crashed(&mut self) {
        let lived = self.live.as_ref().map_or(Duration::ZERO, |live| live.since.elapsed());
        self.crashes_in_a_row = BackOff::RUN.count(self.crashes_in_a_row, lived);
        self.dispatch(Event::Exited(Exit::Crashed(self.crashes_in_a_row)));
    }

    pub(super) fn tree_gone(&mut self, report: Result<EndReport, String>) {
        self.drain();
        if matches!(self.state, State::FallingAsleep | State::Crashed(_)) {
            self.drop_half_output();
        } else {
            self.finish_output();
        }
        self.live = None;
        self.pump.server = ServerFiles::default();
        self.pump.to_server.clear();
        self.replay = None;
        self.talk.forget_asked();
        match report {
            Ok(report) => {
                self.exit = self.exit.or(report.status);
                self.warn_of_survivors(&report);
                self.report = Some(report);
            }
            Err(error) => self.warn(&format!("how the tree ended is not known: {error}")),
        }
        self.dispatch(Event::TreeGone);
        if self.state == State::BackingOff {
            let after =
                self.tick_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
            self.note(What::Restarting {
                attempt: self.crashes_in_a_row,
                after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
                exit: self.exit,
            });
        }
    }

    pub(super) fn warn_of_survivors(&mut self, report: &EndReport) {
        if !report.survivors.is_empty() {
            let who: Vec<String> = report
                .survivors
                .iter()
                .map(|survivor| format!("{} ({:?})", survivor.process.pid, survivor.reason))
                .collect();
            self.warn(&format!("still running after the end: {}", who.join(", ")));
        } else if !report.verified {
            self.warn("it could not be proven that nothing is left");
        }
    }

    /// Answers whatever is in flight or waits for a server, with an error.
    pub(super) fn fail_calls(&mut self) {
        let (failure, why) = match self.exit {
            Some(exit) => (Failure::ServerEnded, format!("the server ended ({})", words(exit))),
            None => (Failure::NotStarted, "the server could not be started".to_owned()),
        };
        for id in self.talk.take_calls() {
            self.pump.push_line(&error_line(&id, failure, &why));
        }
        // What waits for a server that will be started again can go on waiting.
        if !matches!(self.state, State::Crashed(_)) {
            for held in self.take_held() {
                if let Some(envelope) = &held.envelope {
                    self.refuse(envelope, &held.line, failure, &why);
                }
            }
        }
    }

    /// Answers a call, or each of a batch, with an error. A batch that is not to be read any more is answered as a whole.
    pub(super) fn refuse(&mut self, envelope: &Envelope, line: &[u8], failure: Failure, why: &str) {
        if envelope.batch {
            let ids = ids_in_batch(line);
            let ids = if line.is_empty() { vec![b"null".to_vec()] } else { ids };
            ids.iter().for_each(|id| self.pump.push_line(&error_line(id, failure, why)));
        } else if let Some(id) = envelope.real_id().filter(|_| envelope.is_request()) {
            self.pump.push_line(&error_line(id, failure, why));
        }
    }

    /// The first start failed; it is on record all the same.
    pub(super) fn not_started(&mut self, error: &RunError) {
        let exit_code = Some(error.exit_code());
        let ended = Ended { why: EndCause::StartFailed, exit_code, counters: self.counters, report: None };
        self.note(What::Ended(ended));
        std::mem::take(&mut self.waiting).into_iter().for_each(&mut self.around.note);
    }

    pub(super) fn fell_asleep(&mut self) {
        self.crashes_in_a_row = 0;
        self.exit = None;
        if let Some(report) = self.report.clone() {
            self.note(What::Hibernated { why: self.sleep_reason, report });
        }
        let report = self.report.clone();
        for waiting in std::mem::take(&mut self.sleeps) {
            // Whoever asked may have left.
            let _ = waiting.send(Reply::Hibernating { report: report.clone() });
        }
        self.pump.shrink();
        if !self.held.is_empty() {
            self.wake();
        }
    }

    /// Lets the last words out, and says how it was.
    pub(super) async fn leave(mut self) -> RunOutcome {
        // Whoever waits for a server that does not come any more gets an answer; a call that the server had and did not
        // answer is as it would be without us.
        self.talk.take_calls();
        self.fail_calls();
        self.flush().await;
        let why = match self.state {
            _ if self.gave_up => EndCause::CrashLoop,
            State::Ended(cause) => cause,
            _ => EndCause::ServerExited,
        };
        let exit_code = self.exit_code.or(self.exit.map(ServerExit::exit_code)).unwrap_or(match why {
            EndCause::Signal(signal) => 128 + signal,
            // Nobody lived to see how the server ended.
            EndCause::ServerExited | EndCause::StartFailed => 125,
            _ => 0,
        });
        let ended =
            Ended { why, exit_code: Some(exit_code), counters: self.counters, report: self.report.take() };
        for waiting in std::mem::take(&mut self.stops) {
            let _ = waiting.send(Reply::Stopped { report: ended.report.clone() });
        }
        for waiting in std::mem::take(&mut self.sleeps) {
            let _ = waiting.send(Reply::Refused { reason: "it has ended".into() });
        }
        if let Some(door) = self.door.take() {
            door.close().await;
        }
        self.last_look().await;
        self.note(What::Ended(ended.clone()));
        RunOutcome { exit_code, ended }
    }

    /// As long as the client fetches anything.
    pub(super) async fn flush(&mut self) {
        self.pump.client = None;
        while !self.pump.to_client.is_empty() || !self.pump.to_errors.is_empty() {
            let patience = if self.pump.to_client.is_empty() { LAST_WORDS / 10 } else { LAST_WORDS };
            if tokio::time::timeout(patience, self.pump.step()).await.is_err() {
                return;
            }
        }
        let (output, errors) = (self.pump.output.take(), self.pump.errors.take());
        for (outlet, patience) in [(output, LAST_WORDS), (errors, LAST_WORDS / 10)] {
            if let Some(outlet) = outlet {
                // Whoever does not fetch it goes without.
                let _ = tokio::time::timeout(patience, outlet.finish()).await;
            }
        }
    }
}

fn words(exit: ServerExit) -> String {
    match exit {
        ServerExit::Code(code) => format!("exit code {code}"),
        ServerExit::Signal(signal) => format!("signal {signal}"),
    }
}
