//! What follows from a trigger: `life` says it, this carries it out.

use std::time::Duration;

use moored_containment::{Rung, ServerExit};
use rustix::process::Signal as UnixSignal;
use tokio::time::Instant;
use tracing::debug;

use super::session::Session;
use crate::event::StartReason;
use crate::mcp::Failure;
use crate::session::conversation::{Effects, Failed, FollowUps};
use crate::session::life::{Order, Phase, Timer, Trigger, within_bound};
use crate::session::port::ClientPort;
use crate::session::server::{RunningServer, StartServer};

/// How long a server has the machine to itself at its start: history and the sweep can wait.
const STARTUP: Duration = Duration::from_millis(150);

impl<P: ClientPort, S: StartServer> Session<P, S> {
    /// Asks what follows, and does it.
    pub(super) fn dispatch(&mut self, trigger: Trigger) {
        let before = self.life.phase();
        let orders = self.life.handle(trigger);
        let now = self.life.phase();
        if before != now {
            debug!(run = %self.facts.run, ?trigger, ?before, ?now, "the session changes its phase");
            self.timers.phase = None;
            self.phase_changed(before, now);
        }
        orders.into_iter().for_each(|order| self.carry_out(order));
        if before == Phase::FallingAsleep && now == Phase::Asleep {
            self.fell_asleep();
        }
    }

    pub(super) fn phase_changed(&mut self, before: Phase, now: Phase) {
        if now == Phase::FallingAsleep {
            self.conversation.server_sleeps();
        } else if !self.life.has_server() {
            self.conversation.server_leaves();
        }
        if now == Phase::Tripped {
            self.refuse_calls();
        } else if before == Phase::Tripped {
            self.conversation.take_calls();
        }
    }

    /// No server is started for a while: calls are refused at once.
    pub(super) fn refuse_calls(&mut self) {
        let name = &self.spec.launch.name;
        self.conversation
            .refuse_calls(format!("`{name}` crashes again and again, and is not started for a while"));
    }

    pub(super) fn carry_out(&mut self, order: Order) {
        match order {
            Order::MakeRoom(why) => self.make_room(why),
            Order::LeaveQueue => self.jobs.leave_queue(),
            Order::Start(why) => self.start(why),
            Order::CloseInput => {
                self.is_input_over = true;
                self.close_input();
            }
            Order::End(from) => self.end_tree(from),
            Order::PassInterrupt => self.signal_server(UnixSignal::INT),
            Order::SetTimer(Timer::Phase, time) => self.timers.phase = Some(Instant::now() + time),
            Order::SetTimer(Timer::Drain, time) => self.timers.drain = Some(Instant::now() + time),
            Order::FailCalls => self.fail(Failed::InFlight),
            Order::FailPending => self.fail(Failed::Pending),
        }
    }

    pub(super) fn start(&mut self, why: StartReason) {
        (self.end.exit, self.end.report) = (None, None);
        if why == StartReason::First {
            self.timers.startup = Some(Instant::now() + STARTUP);
        }
        self.start_under_way = Some(self.starter.start(why));
    }

    pub(super) fn end_tree(&mut self, from: Rung) {
        let ladder = within_bound(self.spec.launch.ladder, from, self.eof_at.map(|at| at.elapsed()));
        if let Some(server) = &self.pump.server {
            server.running.end(ladder);
        }
    }

    /// What a terminal sends to a job goes to the server's process group.
    pub(super) fn signal_server(&self, signal: UnixSignal) {
        if let Some(server) = &self.pump.server {
            server.running.signal_group(signal.as_raw());
        }
    }

    /// The server's stdin is closed when it has been told all that the client said.
    pub(super) fn close_input(&mut self) {
        let is_due = self.is_input_over && !self.conversation.is_telling();
        if let Some(server) = self.pump.server.as_mut().filter(|_| is_due) {
            server.close_input();
        }
    }

    /// Does what the last messages ask for.
    pub(super) fn follow_up(&mut self) {
        let next = std::mem::take(&mut self.follow_ups);
        if next == FollowUps::default() {
            return;
        }
        next.warnings.iter().for_each(|warning| self.warn(warning));
        if let Some(info) = next.initialized {
            self.initialized(info.name, info.version);
        }
        for id in next.info_wanted {
            let (folder, status) = (self.presence.folder.clone(), self.status());
            let code = self.server.code.clone();
            self.jobs.answer_info(id, folder, self.facts.clone(), status, code);
        }
        if let Some(why) = next.misfit {
            self.end_for_good(&why);
        }
        if next.wants_server {
            self.dispatch(Trigger::Message);
        }
    }

    /// Carries out what follows from something other than a message.
    pub(super) fn apply(&mut self, effects: Effects<'_>) {
        self.pump.apply(effects, &mut self.follow_ups);
    }

    /// A client that has closed its end waits for nothing any more.
    pub(super) fn note_quiet(&mut self) {
        if !self.conversation.is_replaying() {
            self.timers.replay = None;
            self.close_input();
        }
        // Without a relay no answer is seen.
        if !self.life.is_draining() || !self.pump.port.relays() {
            return;
        }
        if self.conversation.is_quiet() {
            self.dispatch(Trigger::Quiet);
        } else if self.conversation.has_pending() {
            self.dispatch(Trigger::Message);
        }
    }

    pub(super) fn fail(&mut self, which: Failed) {
        let (failure, why) = match self.end.exit {
            Some(exit) => (Failure::ServerEnded, format!("the server ended ({})", in_words(exit))),
            None => (Failure::NotStarted, "the server could not be started".to_owned()),
        };
        let effects = self.conversation.fail(which, failure, &why);
        self.apply(effects);
    }
}

fn in_words(exit: ServerExit) -> String {
    match exit {
        ServerExit::Code(code) => format!("exit code {code}"),
        ServerExit::Signal(signal) => format!("signal {signal}"),
    }
}
