//! How an owner waits for its guardians without a runtime, and how long they stay stopped.
//!
//! A server can stop both guardians and exit: then no guardian collects it, ends its tree or says a word. The owner holds the
//! server by pidfd, sees that it is dead, and sends SIGCONT to both, again and again until the report is there: what is left
//! of the tree may stop them again. The async handle does the same with the runtime's means (`owner/aio.rs`).

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use super::{EndError, Link, SET_GOING_EVERY};
use crate::sys;

impl Link {
    /// The server is dead: its guardians have work to do, and may have been stopped.
    pub(crate) fn note_server_death(&mut self) {
        self.server_died = true;
        self.resume_guardians();
    }

    /// Whether the server is known to be dead.
    #[cfg(feature = "tokio")]
    pub(crate) fn server_died(&self) -> bool {
        self.server_died
    }

    /// Until the guardians say something or that time is over; `None` waits for ever. Whether it may be worth to hear them.
    pub(crate) fn wait_for_word(&mut self, patience: Option<Duration>) -> Result<bool, EndError> {
        // Longer than the clock goes is for ever.
        let until = patience.and_then(|patience| Instant::now().checked_add(patience));
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let first = if self.server_died {
                let turn = left.map_or(SET_GOING_EVERY, |left| left.min(SET_GOING_EVERY));
                sys::wait_first_readable([self.socket.as_fd()], Some(turn))
            } else {
                sys::wait_first_readable([self.socket.as_fd(), self.server.as_fd()], left)
            };
            match first.map_err(|error| self.io(error))? {
                Some(0) => return Ok(true),
                Some(_) => self.note_server_death(),
                None if left.is_some_and(|left| left <= SET_GOING_EVERY) => return Ok(false),
                None => self.resume_guardians(),
            }
        }
    }

    /// Waits until the report is there; `None` waits for ever. Whether it is.
    pub(crate) fn wait_for_report(&mut self, patience: Option<Duration>) -> Result<bool, EndError> {
        let until = patience.and_then(|patience| Instant::now().checked_add(patience));
        loop {
            self.hear()?;
            if self.report.is_some() {
                return Ok(true);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if !self.wait_for_word(left)? {
                return Ok(false);
            }
        }
    }

    /// The same, for an end that was asked for: a guardian that is stopped meanwhile does not stay so.
    pub(super) fn wait_for_end(&mut self, patience: Duration) -> Result<bool, EndError> {
        let began = Instant::now();
        loop {
            let left = patience.saturating_sub(began.elapsed());
            if self.wait_for_report(Some(left.min(SET_GOING_EVERY)))? {
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
            self.resume_guardians();
        }
    }
}
