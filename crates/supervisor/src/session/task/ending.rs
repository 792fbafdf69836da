//! How a session takes an end: of the server, of its tree, of itself. What was said before it is passed on, unanswered calls get
//! an error where the client would wait for ever, and what is left is told.

use std::time::Duration;

use moored_containment::{EndReport, ServerExit};
use moored_launch::Restart;

use super::session::Session;
use crate::event::{EndCause, Ended, What};
use crate::session::conversation::Failed;
use crate::session::idle::BEGINNING;
use crate::session::life::{Exit, Phase, Trigger};
use crate::session::outcome::{RunError, RunOutcome};
use crate::session::port::ClientPort;
use crate::session::server::StartServer;

/// How long the client may take to read the server's last messages, without reading any.
const LAST_READ: Duration = Duration::from_secs(2);
/// How long our own housekeeping may go on when all else is over, counted from when it began: what a dead session left takes
/// its time to be ended, and on a full machine more than our client should wait for our end.
const LAST_HOUSEKEEPING: Duration = Duration::from_secs(3);

impl<P: ClientPort, S: StartServer> Session<P, S> {
    pub(super) fn exited(&mut self, exit: Option<ServerExit>) {
        // What it said before counts as said.
        self.drain();
        self.end.exit = exit;
        let has_failed = !exit.is_some_and(ServerExit::success);
        if has_failed && self.life.phase() == Phase::Serving && !self.life.is_draining() {
            if !self.is_past_beginning()
                && self.has_client()
                && let Some(crashes) = &self.crashes
            {
                crashes.note(exit);
            }
            // The next one could not talk to the client over a pipe that this one has closed.
            let is_half_closed = self.pump.server.as_ref().is_some_and(|server| server.is_half_closed);
            if self.spec.rules.restart == Restart::OnCrash && !is_half_closed {
                return self.dispatch(Trigger::Exited(Exit::Crashed { lived: self.lived() }));
            }
        }
        self.dispatch(Trigger::Exited(Exit::Done));
    }

    /// Passes on what is left in the pipes of a server that has ended.
    fn drain(&mut self) {
        let stderr = self.pump.drain(&mut self.conversation, &mut self.follow_ups);
        self.server_stderr(&stderr);
    }

    fn lived(&self) -> Duration {
        self.pump.server.as_ref().map_or(Duration::ZERO, |server| server.since.elapsed())
    }

    /// Without a relay no answer is seen: there the server's age has to tell.
    fn is_past_beginning(&self) -> bool {
        self.conversation.has_answered() || !self.pump.port.relays() && self.lived() > BEGINNING
    }

    /// A program that speaks MCP may be there: a command in a terminal or a script is not in a crash loop.
    fn has_client(&self) -> bool {
        self.pump.counters.messages_to_server > 0 || self.pump.port.has_client()
    }

    pub(super) fn tree_gone(&mut self, report: Result<EndReport, String>) {
        self.drain();
        if matches!(self.life.phase(), Phase::FallingAsleep | Phase::Crashed) {
            // Another server is to speak next: half a message is of no use to the client, and must not run into the next one.
            self.pump.port.end_line();
        } else {
            self.pump.finish_output(&mut self.conversation, &mut self.follow_ups);
        }
        self.pump.server = None;
        self.conversation.server_gone();
        match report {
            Ok(report) => {
                self.end.exit = self.end.exit.or(report.status);
                self.warn_of_survivors(&report);
                self.end.report = Some(report);
            }
            Err(error) => self.warn(&format!("how the tree ended is not known: {error}")),
        }
        self.dispatch(Trigger::TreeGone);
        if self.life.phase() == Phase::BackingOff {
            self.reporter.note(What::Restarting {
                attempt: self.life.crashes_in_a_row(),
                after_ms: self.timers.millis_to_phase(),
                exit: self.end.exit,
            });
        }
    }

    fn warn_of_survivors(&mut self, report: &EndReport) {
        if !report.survivors.is_empty() {
            let survivors: Vec<String> = report
                .survivors
                .iter()
                .map(|survivor| format!("{} ({:?})", survivor.process.pid, survivor.reason))
                .collect();
            self.warn(&format!("still running after the end: {}", survivors.join(", ")));
        } else if !report.verified {
            self.warn("it could not be proven that nothing is left");
        }
    }

    pub(super) fn fell_asleep(&mut self) {
        self.end.exit = None;
        if let Some(report) = self.end.report.clone() {
            self.reporter.note(What::Hibernated { why: self.sleep_reason, report });
        }
        self.waiters.slept(self.end.report.as_ref());
        self.pump.shrink();
        if self.conversation.has_pending() {
            self.dispatch(Trigger::Message);
        }
    }

    /// Lets the last messages out, and says how it was.
    pub(super) async fn leave(mut self) -> Result<RunOutcome, RunError> {
        // Messages that wait for a server that does not come any more get an answer; a call that the server had and did not
        // answer is as it would be without us.
        self.conversation.forget_calls();
        self.fail(Failed::Pending);
        self.pump.port.finish(LAST_READ).await;
        self.jobs.give_back_turn().await;
        if let Some(error) = self.end.failure.take() {
            return Err(self.never_started(error));
        }
        let why = match self.life.phase() {
            _ if self.end.is_crash_loop => EndCause::CrashLoop,
            Phase::Ended(cause) => cause,
            _ => EndCause::ServerExited,
        };
        let exit_code = self.exit_code(why);
        let report = self.end.report.take();
        let ended = Ended { why, exit_code: Some(exit_code), counters: self.pump.counters, report };
        self.waiters.ended(ended.report.as_ref());
        if let Some(control) = self.presence.control.take() {
            control.close().await;
        }
        self.finish_housekeeping().await;
        self.reporter.note(What::Ended(ended.clone()));
        Ok(RunOutcome { exit_code, ended })
    }

    fn exit_code(&self, why: EndCause) -> i32 {
        self.end.exit_code.or(self.end.exit.map(ServerExit::exit_code)).unwrap_or(match why {
            EndCause::Signal(signal) => 128 + signal,
            // How the server ended was not seen.
            EndCause::ServerExited | EndCause::StartFailed => 125,
            _ => 0,
        })
    }

    /// The first start failed; it is on record all the same.
    fn never_started(&mut self, error: RunError) -> RunError {
        let exit_code = Some(error.exit_code());
        let ended =
            Ended { why: EndCause::StartFailed, exit_code, counters: self.pump.counters, report: None };
        self.reporter.note(What::Ended(ended));
        self.reporter.flush_startup_events();
        error
    }

    async fn finish_housekeeping(&mut self) {
        self.startup_over();
        while let Some(began) = self.housekeeping_since
            && let Ok(result) = tokio::time::timeout_at(began + LAST_HOUSEKEEPING, self.jobs.next()).await
        {
            self.job(result);
        }
    }
}
