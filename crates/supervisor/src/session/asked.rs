//! What an operator asks, and when the server may sleep: the part of the driver that answers the door and minds the clock.

use std::time::Duration;

use jiff::Timestamp;
use moored_containment::{ProcessIdentity, ProcessTable};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::aside::Aside;
use super::door::Asked;
use super::driver::Driver;
use super::ending::BEGINNING;
use super::limit::make_room_for_wake;
use super::state::{Event, State};
use crate::berth;
use crate::boot_time::since_boot;
use crate::control::{Reply, Request, RunState, Status, StopBy};
use crate::event::{EndCause, SleepReason};
use crate::on_thread::on_thread;
use crate::superseding::{APART, Superseded};
use moored_launch::Idle;

/// How long whoever has made room for a wake waits for it, so that the next to count sees it.
const WOKEN: Duration = Duration::from_secs(1);
/// After how long nobody waits for an answer to `initialize` any more: no client that is known has so much patience.
const GIVEN_UP: Duration = Duration::from_mins(2);

const JUST_STARTED: &str = "it has only just been started";
const UNREAD: &str = "it has not read all that its client wrote";
/// How soon a server past its lifetime is looked at again that has something to read: that it has read it is told by nothing.
const READ_AGAIN: Duration = Duration::from_secs(1);

impl Driver {
    pub(super) fn asked(&mut self, asked: Asked) {
        let Asked { request, answer } = asked;
        match request {
            Request::Status => {
                // Whoever asked may have left.
                let _ = answer.send(Reply::Status(Box::new(self.status())));
            }
            Request::Stop { by: StopBy::Operator } => self.stop(EndCause::Operator, answer),
            Request::Stop { by: StopBy::OverLimit } => match self.use_of_it() {
                None => self.stop(EndCause::OverLimit, answer),
                Some(reason) => {
                    let _ = answer.send(Reply::Refused { reason });
                }
            },
            Request::Hibernate { why } => match self.refusal() {
                None if self.state == State::Asleep => {
                    let _ = answer.send(Reply::Hibernating { report: None });
                }
                None => {
                    self.sleeps.push(answer);
                    self.sleep(why);
                }
                Some(reason) => {
                    let _ = answer.send(Reply::Refused { reason });
                }
            },
        }
    }

    fn stop(&mut self, why: EndCause, answer: oneshot::Sender<Reply>) {
        self.stops.push(answer);
        self.dispatch(Event::Stop(why));
    }

    /// Why it is not to be ended for another one. A call may have come since whoever asks has looked; and the first one of a
    /// client that has just started it may not have been read yet.
    fn use_of_it(&self) -> Option<String> {
        let is_young = self.live.as_ref().is_some_and(|live| live.since.elapsed() < BEGINNING);
        if self.waiting() > 0 {
            Some(self.busy())
        } else if is_young && !self.talk.is_settled() {
            Some(JUST_STARTED.into())
        } else if self.pump.has_unread() {
            Some(UNREAD.into())
        } else {
            None
        }
    }

    fn sleep(&mut self, why: SleepReason) {
        self.sleep_reason = why;
        self.unanswered = self.talk.take_unanswered();
        self.dispatch(Event::Hibernate);
    }

    /// Calls that somebody waits for.
    fn waiting(&self) -> usize {
        if self.is_given_up() { 0 } else { self.talk.in_flight() + self.held.len() }
    }

    fn busy(&self) -> String {
        format!("it is busy ({} in flight)", self.waiting())
    }

    /// Why it cannot be put to sleep now.
    fn refusal(&self) -> Option<String> {
        match self.state {
            State::Asleep | State::FallingAsleep => return None,
            State::Serving => {}
            _ => return Some("it is not serving".into()),
        }
        if self.spec.is_direct() {
            return Some("its client talks to it directly".into());
        }
        if self.is_half_closed || self.half_close_at.is_some() {
            return Some("it has closed one of its pipes".into());
        }
        if self.is_given_up() {
            return None;
        }
        if self.waiting() > 0 {
            return Some(self.busy());
        }
        if !self.talk.is_settled() || self.replay.is_some() {
            return Some(JUST_STARTED.into());
        }
        if self.talk.has_tasks(since_boot()) {
            return Some("it has tasks".into());
        }
        if self.pump.has_unread() {
            return Some(UNREAD.into());
        }
        None
    }

    /// The server never answered `initialize`, and nobody waits for that any more.
    fn is_given_up(&self) -> bool {
        let patience = match self.spec.rules.idle {
            Idle::Auto(silence) => GIVEN_UP.min(silence),
            Idle::After(_) | Idle::Off => GIVEN_UP,
        };
        self.talk.is_unanswered() && self.held.is_empty() && self.silent() >= patience
    }

    fn silent(&self) -> Duration {
        self.last_activity.unwrap_or(self.began).elapsed()
    }

    /// A server that cannot take its predecessor's place is no server.
    pub(super) fn end_for_good(&mut self, why: &str) {
        self.warn(&format!("the server that was started again cannot take its predecessor's place: {why}"));
        self.replay = None;
        self.exit_code = Some(125);
        self.fail_calls();
        self.dispatch(Event::Stop(EndCause::StartFailed));
    }

    pub(super) fn status(&self) -> Status {
        let live = self.live.as_ref();
        let silent = self.silent();
        let millis = u64::try_from(silent.as_millis()).unwrap_or(u64::MAX);
        Status {
            state: self.run_state(),
            session: live.map(|live| live.started.session),
            server: live.map(|live| live.started.process),
            guardians: live.map(|live| live.guardians.to_vec()).unwrap_or_default(),
            strength: live.map(|live| live.started.strength.clone()),
            server_version: self.server_version.clone(),
            stale: self.code.as_ref().and_then(super::code::Code::stale),
            last_activity_at: self.last_activity.and_then(|_| Timestamp::now().checked_sub(silent).ok()),
            silent_ms: millis,
            in_flight: self.waiting() as u64,
            subscriptions: self.talk.streams() as u64,
            counters: self.counters,
            superseded_by: self.superseded_by,
        }
    }

    fn run_state(&self) -> RunState {
        match self.state {
            State::Starting(_) | State::BackingOff | State::Crashed(_) => RunState::Starting,
            State::Serving if self.talk.is_settled() || self.spec.is_direct() => RunState::Running,
            State::Serving => RunState::Starting,
            State::Draining | State::Interrupted | State::Ending(_) | State::FallingAsleep => {
                RunState::Ending
            }
            State::Asleep => RunState::Hibernating,
            State::Tripped => RunState::BackingOff,
            State::Ended(_) => RunState::Ended,
        }
    }

    // === when it may sleep ===

    fn may_think_of_sleep(&self) -> bool {
        self.state == State::Serving
            && !self.spec.is_direct()
            && (self.talk.is_settled() || self.talk.is_unanswered())
    }

    pub(super) fn idle_deadline(&self) -> Option<Instant> {
        let silence = match self.spec.rules.idle {
            Idle::Auto(silence) | Idle::After(silence) => silence,
            Idle::Off => return None,
        };
        let since = self.last_activity.max(self.looked_at).unwrap_or(self.began);
        self.may_think_of_sleep().then(|| since + silence)
    }

    pub(super) fn lifetime_deadline(&self) -> Option<Instant> {
        let lifetime = self.spec.rules.max_lifetime.filter(|_| self.may_think_of_sleep())?;
        let due = self.live.as_ref()?.since + lifetime;
        if due <= Instant::now() && self.pump.has_unread() {
            return self.looked_at.map(|at| at + READ_AGAIN);
        }
        // Due already, and busy then: looked at again when something has passed.
        (due > Instant::now() || self.refusal().is_none()).then_some(due)
    }

    pub(super) fn consider_sleep(&mut self, now: Instant) {
        let lived = self.live.as_ref().map_or(Duration::ZERO, |live| now - live.since);
        let is_old = self.spec.rules.max_lifetime.is_some_and(|lifetime| lived >= lifetime);
        self.looked_at = Some(now);
        if self.refusal().is_some() {
            if self.pump.has_unread() {
                // It is silent from when it has read that on.
                self.last_activity = Some(now);
            }
            return;
        }
        if is_old {
            return self.sleep(SleepReason::Lifetime);
        }
        let silent = self.silent();
        match self.spec.rules.idle {
            Idle::After(silence) if silent >= silence => self.sleep(SleepReason::Idle),
            Idle::Auto(silence) if silent >= silence => {
                self.superseded_by = self.superseded(silence);
                if self.superseded_by.is_some() && (self.is_given_up() || !self.holds_something()) {
                    self.sleep(SleepReason::Superseded);
                }
            }
            Idle::After(_) | Idle::Auto(_) | Idle::Off => {}
        }
    }

    fn superseded(&self, silence: Duration) -> Option<Superseded> {
        let all = berth::all(self.folder.as_ref()?).ok()?;
        self.facts.superseded_by(all.iter().map(|found| &found.facts), APART.min(silence))
    }

    /// Whether the server has something that a new one would not have.
    fn holds_something(&self) -> bool {
        self.talk.has_state(since_boot()) || self.has_started_processes()
    }

    /// Whether the server has started anything since it answered `initialize`. Could not look: it has. A tick is long
    /// enough for both, so what started in the same one may be such a process.
    fn has_started_processes(&self) -> bool {
        let (Some(live), Ok(table)) = (&self.live, ProcessTable::read()) else { return true };
        let since = self.initialized_ticks.unwrap_or(0);
        // What has lost its parent has fallen to a guardian.
        let known =
            |process: &ProcessIdentity| live.guardians.contains(process) || *process == live.started.process;
        let all = table.descendants(&live.guardians[0]);
        all.iter()
            .filter(|process| !known(&process.identity))
            .any(|process| process.identity.start_ticks >= since)
    }

    /// A message came for a sleeping server: wakes it, when there is room.
    pub(super) fn wake(&mut self) {
        let (Some(limit), Some(folder)) = (self.spec.rules.max_instances, self.folder.clone()) else {
            return self.dispatch(Event::Message);
        };
        if std::mem::replace(&mut self.is_making_room, true) {
            return;
        }
        let (facts, tell) = (self.facts.clone(), self.asides.clone());
        let asking = on_thread(move || {
            make_room_for_wake(&folder, &facts, limit, || {
                let (done, is_done) = std::sync::mpsc::channel();
                // Nobody listens any more if the session has ended; and whoever counts next counts us.
                let _ = tell.send(Aside::Room(done));
                let _ = is_done.recv_timeout(WOKEN);
            });
        });
        if asking.is_err() {
            // Its client waits for an answer, and nobody can be asked.
            self.is_making_room = false;
            self.dispatch(Event::Message);
        }
    }
}
