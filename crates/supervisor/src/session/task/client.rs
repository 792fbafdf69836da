//! What the client and the server do to each other's pipes: EOF, death, half-closes, stderr, the answer to `initialize`.

use std::time::Duration;

use tokio::time::Instant;

use super::session::Session;
use crate::event::{EndCause, What};
use crate::session::conversation::Failed;
use crate::session::life::{ONE_SHOT, Trigger, draining_time};
use crate::session::port::{ClientPort, EofKind, Received};
use crate::session::pump::IoStep;
use crate::session::server::{RunningServer, StartServer, Vital};
use moored_registry::boot_time::ticks_since_boot;

/// A server that lives on for so long after it has closed a pipe has not done so by exiting.
const NOT_AN_EXIT: Duration = Duration::from_millis(250);
/// A server whose exit is not told by its guardians within this time after it was found dead has stopped them.
const EXIT_TOLD: Duration = Duration::from_secs(2);

impl<P: ClientPort, S: StartServer> Session<P, S> {
    pub(super) fn io(&mut self, step: &IoStep) {
        match *step {
            IoStep::Client(Received::Eof { kind, at }) => self.client_eof(kind, at),
            IoStep::Client(Received::Gone) => self.client_gone(),
            IoStep::Client(Received::HungUp { kind, at }) => {
                // What it said last is still to be read, but not for ever.
                let patience = self.eof_patience(kind, at);
                self.timers.hangup = Some(Instant::now() + patience);
            }
            IoStep::Client(Received::Bound(at)) => self.client_bound(at),
            IoStep::ClientDeaf => self.dispatch(Trigger::ClientGone),
            IoStep::Stderr(read) => {
                let bytes = self.pump.stderr_bytes(read).to_vec();
                self.server_stderr(&bytes);
            }
            IoStep::Client(Received::Bytes(_)) | IoStep::Stdout(_) | IoStep::Written => {}
            IoStep::StdoutClosed | IoStep::StdinClosed => self.note_half_close(),
        }
        self.pump.adjust_widths();
    }

    pub(super) fn client_eof(&mut self, kind: EofKind, at: Instant) {
        self.pump.end_client();
        self.timers.hangup = None;
        // What the last messages ask for comes before their end.
        self.follow_up();
        let wanted = match kind {
            _ if !self.pump.port.can_read() => 0,
            EofKind::Pipeline if !self.pump.port.relays() => 1,
            EofKind::Client | EofKind::Pipeline => self.conversation.wanted(),
        };
        let patience = self.eof_patience(kind, at);
        self.dispatch(Trigger::Eof { wanted, patience });
    }

    /// Its end was closed by a client that is to see the tree gone by the bound: the answers are not waited for any longer.
    fn client_bound(&mut self, at: Instant) {
        let patience = self.eof_patience(EofKind::Client, at);
        if self.life.is_draining() && self.timers.drain.is_some() {
            self.timers.drain = Some(Instant::now() + patience);
        }
    }

    pub(super) fn client_gone(&mut self) {
        self.pump.end_client();
        self.follow_up();
        self.dispatch(Trigger::ClientGone);
    }

    /// How long the rest may take that follows the client's EOF, which was then unless it was noticed before.
    pub(super) fn eof_patience(&mut self, kind: EofKind, at: Instant) -> Duration {
        match kind {
            EofKind::Pipeline => ONE_SHOT,
            EofKind::Client => {
                let since = self.eof_at.get_or_insert(at).elapsed();
                draining_time(&self.spec.launch.ladder).saturating_sub(since)
            }
        }
    }

    /// The server has closed its stdin or stdout. An exit closes both too, and is told by itself: so it has to live for a moment
    /// after.
    pub(super) fn note_half_close(&mut self) {
        if self.life.has_server() {
            self.timers.half_close = Some(Instant::now() + NOT_AN_EXIT);
        }
    }

    /// The client sees what it would see without us: EOF on what the server wrote, a failed write of what it would read. If
    /// both are closed the two cannot talk any more, and the session is over.
    pub(super) fn pass_half_close(&mut self) {
        let Some(server) = self.pump.server.as_mut().filter(|_| self.life.has_server()) else { return };
        match server.running.vital() {
            // Its exit is on its way, unless it has stopped its guardians: then an end that is asked for wakes them.
            Vital::Dead if server.is_found_dead => {
                return self.dispatch(Trigger::Stop(EndCause::ServerExited));
            }
            Vital::Dead => {
                server.is_found_dead = true;
                self.timers.half_close = Some(Instant::now() + EXIT_TOLD);
                return;
            }
            Vital::Exiting => return self.note_half_close(),
            Vital::Alive => server.is_half_closed = true,
        }
        let (has_stdin, has_stdout) = (server.running.has_stdin(), server.running.has_stdout());
        if !has_stdout {
            self.pump.finish_output(&mut self.conversation, &mut self.follow_ups);
            self.pump.port.close_output();
        }
        if !has_stdout && !has_stdin {
            self.dispatch(Trigger::Stop(EndCause::ServerExited));
        } else if !has_stdin && !self.is_input_over {
            self.pump.port.close_input();
        }
    }

    pub(super) fn server_stderr(&mut self, bytes: &[u8]) {
        (self.log)(bytes);
        self.pump.port.send_stderr(bytes);
    }

    pub(super) fn initialized(&mut self, name: Option<String>, version: Option<String>) {
        if let Some(crashes) = &self.crashes {
            crashes.forget();
        }
        self.server.initialized_ticks = Some(ticks_since_boot());
        if self.spec.rules.server_version.is_none() {
            self.server.version = version;
        }
        if let Some(file) = self.pump.server.as_ref().and_then(|server| server.pid_file.as_ref()) {
            file.update(self.server.version.as_deref());
        }
        self.reporter
            .note(What::Initialized { server_name: name, server_version: self.server.version.clone() });
    }

    /// A server that cannot take its predecessor's place is no server.
    pub(super) fn end_for_good(&mut self, why: &str) {
        self.warn(&format!("the server that was started again cannot take its predecessor's place: {why}"));
        self.conversation.give_up_replay();
        self.end.exit_code = Some(125);
        self.fail(Failed::InFlight);
        self.fail(Failed::Pending);
        self.dispatch(Trigger::Stop(EndCause::StartFailed));
    }
}
