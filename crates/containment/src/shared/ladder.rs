//! How a tree is ended: close stdin → TERM → KILL → verify, each with its patience.
//!
//! This file decides; it owns no process, reads no clock and sends no signal. The guardian asks it what to do at each
//! event and obeys. It is compiled twice, into the library and into the guardian, so that both mean the same ladder.
//!
//! ```text
//!                End(Close)                 grace over, or            kill_after over, or
//!                                           End(Terminate), or        End(Kill)
//!                                           the server exited
//!   ┌─────────┐ ───────────▶ ┌─────────┐ ─────────────▶ ┌─────────────┐ ────────▶ ┌─────────┐
//!   │ Running │              │ Closing │                │ Terminating │           │ Killing │
//!   └─────────┘              └─────────┘                └─────────────┘           └─────────┘
//!        │                        │                            │                       │
//!        └────────────────────────┴── the tree is empty ───────┴───────────────────────┤ or verify over
//!                                                                                      ▼
//!                                                                                 ┌─────────┐
//!                                                                                 │  Ended  │
//!                                                                                 └─────────┘
//! ```
//!
//! - `End` may come at any rung, any number of times: it can only take the ladder further, never back, and a rung that
//!   is already under way keeps the deadline that it has. So a repeated EOF or TERM changes nothing.
//! - A server that exits by itself takes its session with it: what it leaves behind is asked to end at once.
//! - Nothing comes after `Ended`. If KILL has not emptied the tree within `verify`, or the kernel refuses to let all that
//!   are left be killed, these are survivors, and are reported as such.

use core::time::Duration;

/// Where an ending begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Rung {
    /// The server sees the end of its input, and has `grace` to finish.
    Close,
    /// SIGTERM (and SIGCONT) to the whole tree, which has `kill_after` to finish.
    Terminate,
    /// SIGKILL to the whole tree.
    Kill,
}

impl Rung {
    /// How a request to the guardians names it.
    pub(crate) fn code(self) -> u64 {
        match self {
            Self::Close => 0,
            Self::Terminate => 1,
            Self::Kill => 2,
        }
    }

    /// The reverse of [`Rung::code`]; an unknown code is the last rung.
    pub(crate) fn from_code(code: u64) -> Self {
        match code {
            0 => Self::Close,
            1 => Self::Terminate,
            _ => Self::Kill,
        }
    }
}

/// The steps of an ending and the patience with each.
///
/// ```
/// use std::time::Duration;
/// use moored_containment::{Ladder, Rung};
///
/// let ladder = Ladder::default().grace(Duration::from_millis(500));
/// assert_eq!(ladder.from, Rung::Close);
/// assert_eq!(ladder.bound(), Duration::from_millis(2500), "0.5 s for EOF, 2 s for TERM, then KILL");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ladder {
    /// The first step to take.
    pub from: Rung,
    /// How long the server may take to finish after the end of its input.
    pub grace: Duration,
    /// How long the tree may take to finish after SIGTERM.
    pub kill_after: Duration,
    /// How long after SIGKILL the tree is watched for becoming empty, before what is left is called a survivor.
    pub verify: Duration,
}

impl Default for Ladder {
    /// What the official SDKs give a server: 2 s after EOF, 2 s after SIGTERM. A killed tree is gone in milliseconds; the
    /// 10 s are for machines on which the guardian itself hardly gets to run.
    fn default() -> Self {
        let (two, ten) = (Duration::from_secs(2), Duration::from_secs(10));
        Self { from: Rung::Close, grace: two, kill_after: two, verify: ten }
    }
}

impl Ladder {
    /// Begins with SIGTERM: for an owner that was itself told to end.
    #[must_use]
    pub fn terminate() -> Self {
        Self { from: Rung::Terminate, ..Self::default() }
    }

    /// Begins with SIGKILL.
    #[must_use]
    pub fn kill() -> Self {
        Self { from: Rung::Kill, ..Self::default() }
    }

    /// Another patience after the end of input.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Another patience after SIGTERM.
    #[must_use]
    pub fn kill_after(self, kill_after: Duration) -> Self {
        Self { kill_after, ..self }
    }

    /// When SIGKILL is sent at the latest, counted from the beginning.
    #[must_use]
    pub fn bound(&self) -> Duration {
        match self.from {
            Rung::Close => self.grace.saturating_add(self.kill_after),
            Rung::Terminate => self.kill_after,
            Rung::Kill => Duration::ZERO,
        }
    }
}

/// A point of the monotonic clock, in nanoseconds.
pub(crate) type Instant = u64;

/// How far an ending has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No end was asked for yet.
    Running,
    /// The server's input is closed; it has until then.
    Closing { until: Instant },
    /// The tree was asked to end; it has until then.
    Terminating { until: Instant },
    /// The tree is being killed, and watched until then.
    Killing { until: Instant },
    /// It is over.
    Ended,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The owner, or the death of a keeper, asks for an end that begins at this rung.
    End(Rung),
    /// The server itself has ended.
    ServerExited,
    /// Nothing of the tree is left.
    Empty,
    /// Nothing is left but what may not be killed.
    Hopeless,
    /// Time has passed.
    Tick,
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Close,
    Terminate,
    Kill,
    /// Check and report; the last action of all.
    Verify,
}

impl State {
    /// How the board names it; its deadline is another word there.
    pub(crate) fn code(self) -> u64 {
        match self {
            Self::Running => 0,
            Self::Closing { .. } => 1,
            Self::Terminating { .. } => 2,
            Self::Killing { .. } => 3,
            Self::Ended => 4,
        }
    }

    /// The reverse of [`State::code`], with the deadline; an unknown code is `Running`.
    pub(crate) fn from_code(code: u64, until: Instant) -> Self {
        match code {
            1 => Self::Closing { until },
            2 => Self::Terminating { until },
            3 => Self::Killing { until },
            4 => Self::Ended,
            _ => Self::Running,
        }
    }

    /// When the state changes by itself.
    pub(crate) fn deadline(self) -> Option<Instant> {
        match self {
            Self::Running | Self::Ended => None,
            Self::Closing { until } | Self::Terminating { until } | Self::Killing { until } => Some(until),
        }
    }

    /// The next state, and what to do on the way there. Total: every event has an answer in every state.
    pub(crate) fn step(self, ladder: &Ladder, event: Event, now: Instant) -> (Self, Action) {
        let due = self.deadline().is_some_and(|until| now >= until);
        match (self, event) {
            // Nothing follows the end: late events are echoes of what the end itself caused.
            (Self::Ended, _) => (Self::Ended, Action::Nothing),
            (_, Event::Empty) => (Self::Ended, Action::Verify),

            (Self::Running, Event::End(Rung::Close)) => close(ladder, now),
            (Self::Running, Event::End(Rung::Terminate) | Event::ServerExited) => terminate(ladder, now),
            (_, Event::End(Rung::Kill)) if !matches!(self, Self::Killing { .. }) => kill(ladder, now),
            // While no end was asked for, time alone ends nothing.
            (Self::Running, Event::Tick | Event::Hopeless | Event::End(Rung::Kill)) => {
                (self, Action::Nothing)
            }

            (Self::Closing { .. }, Event::End(Rung::Terminate) | Event::ServerExited) => {
                terminate(ladder, now)
            }
            (Self::Closing { .. }, _) if due => terminate(ladder, now),
            // A second EOF, or time that has not run out: the deadline stands.
            (Self::Closing { .. }, _) => (self, Action::Nothing),

            (Self::Terminating { .. }, _) if due => kill(ladder, now),
            // The server's own exit is what was asked for; the rest of the tree keeps its deadline.
            (Self::Terminating { .. }, _) => (self, Action::Nothing),

            // What SIGKILL did not end in that time, or could not even reach, is a survivor.
            (Self::Killing { .. }, Event::Hopeless) => (Self::Ended, Action::Verify),
            (Self::Killing { .. }, _) if due => (Self::Ended, Action::Verify),
            // There is no rung beyond this one.
            (Self::Killing { .. }, _) => (self, Action::Nothing),
        }
    }
}

fn after(now: Instant, patience: Duration) -> Instant {
    now.saturating_add(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX))
}

fn close(ladder: &Ladder, now: Instant) -> (State, Action) {
    (State::Closing { until: after(now, ladder.grace) }, Action::Close)
}

fn terminate(ladder: &Ladder, now: Instant) -> (State, Action) {
    (State::Terminating { until: after(now, ladder.kill_after) }, Action::Terminate)
}

fn kill(ladder: &Ladder, now: Instant) -> (State, Action) {
    (State::Killing { until: after(now, ladder.verify) }, Action::Kill)
}

#[cfg(test)]
mod tests;
