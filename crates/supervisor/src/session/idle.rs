//! When a server may be put to sleep, and when it is. Pure: all that it depends on is in [`IdleFacts`].

use std::time::Duration;

use moored_launch::{Idle, Rules};

use super::conversation::Conversation;
use super::life::Phase;
use crate::event::SleepReason;

/// After how long an unanswered `initialize` is not waited for any more: no client that is known has so much patience.
const INITIALIZE_GIVEN_UP: Duration = Duration::from_mins(2);
/// A server that lived this long has answered `initialize`, if it ever does.
pub(super) const BEGINNING: Duration = Duration::from_secs(10);

/// The call that follows the answer to `initialize` may be on its way for so long.
const FIRST_CALL: Duration = Duration::from_millis(250);

const JUST_STARTED: &str = "it has only just been started";

/// All that a decision to put a server to sleep depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleFacts<'a> {
    pub(super) rules: &'a Rules,
    pub(super) phase: Phase,
    /// The client has closed its end: the session is ending already.
    pub(super) is_draining: bool,
    pub(super) conversation: &'a Conversation,
    /// Since the last message, or since the session began.
    pub(super) silent: Duration,
    /// Since the server that runs was started.
    pub(super) lived: Option<Duration>,
    /// Whether the server's pipes are ours.
    pub(super) pipes: Pipes,
}

/// What has to be asked of the kernel, and is only when it matters.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerLoad {
    /// Bytes that the server has not read.
    pub(super) unread: usize,
    /// Since boot.
    pub(super) now: Duration,
}

/// What is known of a server's pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pipes {
    Relayed,
    /// The client has them (`--direct`).
    Direct,
    /// The server has closed one of them, or may be about to exit.
    HalfClosed,
}

/// What is to be done about a server that may be idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdleDecision {
    Stay,
    Sleep(SleepReason),
    /// It sleeps if a newer instance has taken its place, which has to be looked up.
    SleepIfSuperseded,
}

impl IdleFacts<'_> {
    /// Calls that are waited for, in either direction.
    pub(super) fn waiting(&self) -> usize {
        if self.is_given_up() { 0 } else { self.conversation.unfinished() }
    }

    /// Why the server is not to be ended for the sake of another one. A call may have come since the other one looked; and the
    /// first one of a client that has just started it may not have been read yet.
    pub(super) fn use_of_it(&self, load: ServerLoad) -> Option<String> {
        let is_young = self.lived.is_some_and(|lived| lived < BEGINNING);
        if self.waiting() > 0 || load.unread > 0 {
            Some(self.busy())
        } else if is_young && (!self.conversation.has_answered() || self.expects_first_call()) {
            Some(JUST_STARTED.into())
        } else {
            None
        }
    }

    /// The client may have its answer to `initialize`, and its first call may be on its way.
    fn expects_first_call(&self) -> bool {
        !self.conversation.has_calls() && self.silent < FIRST_CALL
    }

    /// Why it cannot be put to sleep now.
    pub(super) fn refusal(&self, load: ServerLoad) -> Option<String> {
        match self.phase {
            Phase::Asleep | Phase::FallingAsleep => return None,
            Phase::Serving if !self.is_draining => {}
            _ => return Some("it is not serving".into()),
        }
        match self.pipes {
            Pipes::Direct => return Some("its client talks to it directly".into()),
            Pipes::HalfClosed => return Some("it has closed one of its pipes".into()),
            Pipes::Relayed => {}
        }
        if self.is_given_up() {
            return None;
        }
        if self.waiting() > 0 {
            return Some(self.busy());
        }
        if !self.conversation.has_answered() || self.conversation.is_replaying() {
            return Some(JUST_STARTED.into());
        }
        if load.unread > 0 {
            return Some(self.busy());
        }
        if self.conversation.has_tasks(load.now) {
            return Some("it has tasks".into());
        }
        None
    }

    fn busy(&self) -> String {
        match self.waiting() {
            0 => "it has not read all that its client wrote".into(),
            waiting => format!("it is busy ({waiting} in flight)"),
        }
    }

    /// The server never answered `initialize`, and that is not waited for any more.
    pub(super) fn is_given_up(&self) -> bool {
        let patience = match self.rules.idle {
            Idle::Auto(silence) => INITIALIZE_GIVEN_UP.min(silence),
            Idle::After(_) | Idle::Off => INITIALIZE_GIVEN_UP,
        };
        self.conversation.is_unanswered() && self.silent >= patience
    }

    /// Whether silence alone can bring it to sleep.
    pub(super) fn may_think_of_sleep(&self) -> bool {
        self.phase == Phase::Serving
            && !self.is_draining
            && self.pipes != Pipes::Direct
            && (self.conversation.has_answered() || self.conversation.is_unanswered())
    }

    /// How long it may be silent before it is looked at; none if silence says nothing.
    pub(super) fn silence(&self) -> Option<Duration> {
        match self.rules.idle {
            Idle::Auto(silence) | Idle::After(silence) if self.may_think_of_sleep() => Some(silence),
            Idle::Auto(_) | Idle::After(_) | Idle::Off => None,
        }
    }

    pub(super) fn decide(&self, load: ServerLoad) -> IdleDecision {
        if self.refusal(load).is_some() {
            return IdleDecision::Stay;
        }
        let lived = self.lived.unwrap_or_default();
        if self.rules.max_lifetime.is_some_and(|most| lived >= most) {
            return IdleDecision::Sleep(SleepReason::Lifetime);
        }
        match self.rules.idle {
            Idle::After(silence) if self.silent >= silence => IdleDecision::Sleep(SleepReason::Idle),
            Idle::Auto(silence) if self.silent >= silence => IdleDecision::SleepIfSuperseded,
            Idle::After(_) | Idle::Auto(_) | Idle::Off => IdleDecision::Stay,
        }
    }
}
