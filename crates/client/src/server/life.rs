//! Pure: what comes after a server's life is over.
//!
//! ```text
//!             a call, or at once                connected
//!   ┌────────┐ ───────────────▶ ┌──────────┐ ─────────────▶ ┌────┐
//!   │ Asleep │                  │ Starting │                │ Up │
//!   └────────┘ ◀──┐             └──────────┘                └────┘
//!        ▲        │ lazy          ▲    │ failed               │
//!        │        └───────────┐   │    ▼                      │ exited by itself
//!        │                    ┌──────────┐ ◀──────────────────┤
//!        │                    │   Down   │                    │
//!        │                    └──────────┘                    │
//!        └──── idle ──────────────────────────────────────────┤
//!                                                             ▼ stopped, or not to be restarted
//!                                                         ┌───────┐
//!                                                         │ Ended │
//!                                                         └───────┘
//! ```
//!
//! The owner's task walks these arrows; the one that leaves a life is decided here. `Ended` is final: a server that is
//! wanted again is a new one, with new handles.

use std::fmt;
use std::time::Duration;

use crate::spec::{Restart, Start};

/// Why a server is ended for good.
///
/// ```
/// use moored_client::EndedWhy;
/// assert_eq!(EndedWhy::Replaced.to_string(), "it was replaced");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndedWhy {
    /// A replacement left it out, or changed its spec.
    Replaced,
    /// The set was shut down.
    Shutdown,
    /// The set was dropped.
    Dropped,
    /// An operator stopped it, with `moored stop`. A replacement starts it again.
    Stopped,
    /// It ended by itself, and its spec says that it is not restarted.
    Exited,
    /// It never came up.
    NeverStarted,
    /// It is no longer served: the runtime that it was started on is gone, or the host's own handler panicked. The set
    /// ends its process at the latest when it is replaced or the set is.
    Unattended,
}

impl fmt::Display for EndedWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Replaced => "it was replaced",
            Self::Shutdown => "its set was shut down",
            Self::Dropped => "its set was dropped",
            Self::Stopped => "an operator stopped it",
            Self::Exited => "it ended by itself, and is not restarted",
            Self::NeverStarted => "it never came up",
            Self::Unattended => {
                "it is no longer served: its runtime was shut down, or the host's handler panicked"
            }
        })
    }
}

/// How one life was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// It did not come up.
    NeverUp,
    /// It ended, or fell silent, by itself.
    Exited,
    /// No call came for as long as its spec allows.
    Idle,
    /// It is to be started afresh.
    Recycled,
    /// It is to end for good.
    Stopped(EndedWhy),
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    StartNow,
    /// Start when it is called.
    Sleep,
    /// Wait so long; then start, or sleep if it is a lazy one.
    Wait(Duration),
    Finish(EndedWhy),
}

/// What is known of the lives so far.
#[derive(Clone, Debug)]
pub(crate) struct Lives {
    restart: Restart,
    start: Start,
    been_up: bool,
    failures: u32,
}

impl Lives {
    pub(crate) fn new(start: Start, restart: Restart) -> Self {
        Self { restart, start, been_up: false, failures: 0 }
    }

    /// It came up.
    pub(crate) fn up(&mut self) {
        self.been_up = true;
    }

    /// A life is over that took so long.
    pub(crate) fn next(&mut self, over: Over, uptime: Duration) -> Next {
        match over {
            Over::Stopped(why) => Next::Finish(why),
            Over::Idle => Next::Sleep,
            Over::Recycled => {
                self.failures = 0;
                Next::StartNow
            }
            // The caller that ordered the stop is told, and decides.
            Over::NeverUp if !self.been_up && self.start == Start::AtOnce => {
                Next::Finish(EndedWhy::NeverStarted)
            }
            Over::NeverUp => self.wait_or(EndedWhy::NeverStarted, Duration::ZERO),
            Over::Exited => self.wait_or(EndedWhy::Exited, uptime),
        }
    }

    fn wait_or(&mut self, why: EndedWhy, uptime: Duration) -> Next {
        match &self.restart {
            Restart::Never => Next::Finish(why),
            Restart::AfterCrash(back_off) => {
                self.failures = back_off.count(self.failures, uptime);
                Next::Wait(back_off.delay(self.failures))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use moored_launch::BackOff;

    use super::*;

    const SHORT: Duration = Duration::from_millis(5);

    fn lives(start: Start, restart: Restart) -> Lives {
        Lives::new(start, restart)
    }

    #[test]
    fn a_first_start_that_fails_is_not_tried_again() {
        let mut eager = lives(Start::AtOnce, Restart::default());
        assert_eq!(eager.next(Over::NeverUp, SHORT), Next::Finish(EndedWhy::NeverStarted));
    }

    #[test]
    fn a_lazy_start_that_fails_is_tried_again_later() {
        let mut lazy = lives(Start::AtFirstCall, Restart::default());
        let first = BackOff::default().first;
        assert_eq!(lazy.next(Over::NeverUp, SHORT), Next::Wait(first));
        assert_eq!(lazy.next(Over::NeverUp, SHORT), Next::Wait(first * 2));
    }

    #[test]
    fn a_crash_is_final_only_if_the_spec_says_so() {
        let mut never = lives(Start::AtOnce, Restart::Never);
        never.up();
        assert_eq!(never.next(Over::Exited, SHORT), Next::Finish(EndedWhy::Exited));
        let mut again = lives(Start::AtOnce, Restart::default());
        again.up();
        assert!(matches!(again.next(Over::Exited, SHORT), Next::Wait(_)));
    }

    #[test]
    fn who_is_stopped_ends_whatever_was_before() {
        let mut any = lives(Start::AtFirstCall, Restart::default());
        for over in [Over::NeverUp, Over::Idle, Over::Recycled, Over::Exited] {
            any.next(over, SHORT);
            let stopped = any.next(Over::Stopped(EndedWhy::Replaced), SHORT);
            assert_eq!(stopped, Next::Finish(EndedWhy::Replaced));
        }
    }

    #[test]
    fn sleeping_is_no_failure_and_a_fresh_start_forgets_them() {
        let mut lives = lives(Start::AtOnce, Restart::default());
        lives.up();
        lives.next(Over::Exited, SHORT);
        assert_eq!(lives.next(Over::Idle, SHORT), Next::Sleep);
        assert_eq!(lives.next(Over::Recycled, SHORT), Next::StartNow);
        assert_eq!(lives.next(Over::Exited, SHORT), Next::Wait(BackOff::default().first));
    }
}
