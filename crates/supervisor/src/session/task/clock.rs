//! What is due: the timers of a life, and the sleep of a server that is idle.

use std::time::Duration;

use tokio::time::Instant;

use super::session::{Session, Timers};
use crate::event::{SleepReason, What};
use crate::session::host::Housekeeping;
use crate::session::idle::{IdleDecision, IdleFacts, Pipes, ServerLoad};
use crate::session::jobs::{BackgroundResult, ServerTree, StartedProcesses};
use crate::session::life::{Timer, Trigger};
use crate::session::port::ClientPort;
use crate::session::server::{RunningServer, StartServer};
use moored_registry::Superseded;
use moored_registry::boot_time::since_boot;

/// How soon a server past its lifetime is looked at again that has something to read: that it has read it is told by nothing.
const READ_AGAIN: Duration = Duration::from_secs(1);

impl<P: ClientPort, S: StartServer> Session<P, S> {
    pub(super) fn deadline(&self) -> Option<Instant> {
        let Timers { startup, phase, drain, replay, hangup, half_close } = self.timers;
        let (idle, lifetime) = (self.idle_deadline(), self.lifetime_deadline());
        [startup, phase, drain, replay, hangup, half_close, idle, lifetime].into_iter().flatten().min()
    }

    pub(super) fn time(&mut self) {
        let now = Instant::now();
        let is_due = |timer: &mut Option<Instant>| timer.take_if(|at| *at <= now).is_some();
        if is_due(&mut self.timers.startup) {
            self.startup_over();
        } else if is_due(&mut self.timers.replay) {
            self.end_for_good("it does not answer what its predecessor had been asked");
        } else if is_due(&mut self.timers.hangup) {
            self.pump.end_client();
            self.dispatch(Trigger::Eof { wanted: 0, patience: Duration::ZERO });
        } else if is_due(&mut self.timers.half_close) {
            self.pass_half_close();
        } else if is_due(&mut self.timers.drain) {
            self.dispatch(Trigger::Fired(Timer::Drain));
        } else if is_due(&mut self.timers.phase) {
            self.dispatch(Trigger::Fired(Timer::Phase));
        } else {
            self.consider_sleep(now);
        }
    }

    /// The server has started: now there is time for the rest.
    pub(super) fn startup_over(&mut self) {
        self.timers.startup = None;
        if !self.reporter.flush_startup_events() {
            return;
        }
        match self.housekeeping {
            Housekeeping::BySession => {
                self.housekeeping_since = Some(Instant::now());
                self.jobs.run_housekeeping(&self.spec);
            }
            Housekeeping::ByHost => self.jobs.look_at_code(&self.spec),
        }
    }

    pub(super) fn idle_facts(&self) -> IdleFacts<'_> {
        let server = self.pump.server.as_ref();
        IdleFacts {
            rules: &self.spec.rules,
            phase: self.life.phase(),
            is_draining: self.life.is_draining(),
            conversation: &self.conversation,
            silent: self.pump.last_activity.unwrap_or(self.began).elapsed(),
            lived: server.map(|server| server.since.elapsed()),
            pipes: self.pipes(),
        }
    }

    pub(super) fn server_load(&self) -> ServerLoad {
        let unread = self.pump.server.as_ref().map_or(0, |server| server.unread());
        ServerLoad { unread, now: since_boot() }
    }

    pub(super) fn pipes(&self) -> Pipes {
        let is_half_closed = self.pump.server.as_ref().is_some_and(|server| server.is_half_closed);
        if !self.pump.port.relays() {
            Pipes::Direct
        } else if is_half_closed || self.timers.half_close.is_some() {
            Pipes::HalfClosed
        } else {
            Pipes::Relayed
        }
    }

    pub(super) fn idle_deadline(&self) -> Option<Instant> {
        let silence = self.idle_facts().silence()?;
        let since = self.pump.last_activity.max(self.last_idle_check).unwrap_or(self.began);
        Some(since + silence)
    }

    pub(super) fn lifetime_deadline(&self) -> Option<Instant> {
        let lifetime = self.spec.rules.max_lifetime?;
        let facts = self.idle_facts();
        let due = self.pump.server.as_ref()?.since + lifetime;
        if !facts.may_think_of_sleep() {
            return None;
        }
        if due > Instant::now() {
            return Some(due);
        }
        let load = self.server_load();
        if load.unread > 0 {
            return self.last_idle_check.map(|at| at + READ_AGAIN);
        }
        // Due already, and busy then: looked at again when something has passed.
        facts.refusal(load).is_none().then_some(due)
    }

    pub(super) fn consider_sleep(&mut self, now: Instant) {
        self.last_idle_check = Some(now);
        let load = self.server_load();
        let has_unread = load.unread > 0;
        match self.idle_facts().decide(load) {
            // It is silent from when it has read all on.
            IdleDecision::Stay if has_unread => self.pump.last_activity = Some(now),
            IdleDecision::Stay => {}
            IdleDecision::Sleep(why) => self.sleep(why),
            IdleDecision::SleepIfSuperseded => self.look_for_successor(),
        }
    }

    pub(super) fn look_for_successor(&mut self) {
        let (Some(folder), Some(server)) = (self.presence.folder.clone(), &self.pump.server) else { return };
        let tree = ServerTree {
            server: server.running.started().process,
            guardians: server.running.guardians().to_vec(),
            initialized_ticks: self.server.initialized_ticks.unwrap_or(0),
        };
        let silence = self.idle_facts().silence().unwrap_or_default();
        self.jobs.look_for_successor(folder, self.facts.clone(), silence, tree);
    }

    /// Something may have happened while it was looked up.
    pub(super) fn superseded(&mut self, newer: Option<Superseded>, started: StartedProcesses) {
        self.server.superseded_by = newer;
        let (facts, load) = (self.idle_facts(), self.server_load());
        let holds_something = facts.conversation.has_state(load.now) || started == StartedProcesses::Some;
        let may_go = facts.is_given_up() || !holds_something;
        if newer.is_some() && may_go && facts.decide(load) == IdleDecision::SleepIfSuperseded {
            self.sleep(SleepReason::Superseded);
        }
    }

    pub(super) fn sleep(&mut self, why: SleepReason) {
        self.sleep_reason = why;
        self.dispatch(Trigger::Hibernate);
    }

    pub(super) fn job(&mut self, result: BackgroundResult) {
        match result {
            BackgroundResult::Code(code) => self.server.code = code,
            BackgroundResult::Swept(swept) => {
                let (ended, survivors) = (swept.ended.len() as u64, swept.survivors.len() as u64);
                if ended + survivors > 0 {
                    self.reporter.note(What::Swept { session: swept.session, ended, survivors });
                }
            }
            BackgroundResult::Died(facts) => self.reporter.note_death(&facts),
            BackgroundResult::Problem(problem) => self.warn(&problem),
            BackgroundResult::Answer(id, line) => {
                let effects = self.conversation.answer(&id, line);
                self.apply(effects);
            }
            BackgroundResult::FirstRoom(room) => self.first_room(room),
            BackgroundResult::WakeRoom(woken) => self.wake_room(woken),
            BackgroundResult::Superseded(newer, started) => self.superseded(newer, started),
            BackgroundResult::HousekeepingDone => self.housekeeping_since = None,
        }
    }
}
