//! What a session tells and is told: events and warnings, and what comes back from the threads beside it. The part of the
//! driver that has to do with the rest of the world.

use std::time::Duration;

use moored_launch::masked_text;
use tokio::time::Instant;

use super::aside::{Aside, look_around};
use super::distant_clients::DistantClient;
use super::driver::Driver;
use super::start::{self, event};
use super::state::Event;
use crate::berth::Facts;
use crate::event::{Counters, EndCause, Ended, What};

/// How long our own look around may go on when all else is over, counted from when it began: what a dead session left takes
/// its time to be ended, and on a full machine more than our client should wait for our end.
const LAST_LOOK: Duration = Duration::from_secs(3);

impl Driver {
    /// The server has started: now there is time for the rest.
    pub(super) fn settle(&mut self) {
        if self.settled_at.take().is_some() {
            std::mem::take(&mut self.waiting).into_iter().for_each(&mut self.around.note);
            self.looking_since = Some(Instant::now());
            look_around(&self.spec, self.asides.clone());
        }
    }

    pub(super) async fn last_look(&mut self) {
        self.settle();
        while let Some(began) = self.looking_since
            && let Ok(Some(aside)) = tokio::time::timeout_at(began + LAST_LOOK, self.heard.recv()).await
        {
            self.aside(aside);
        }
    }

    pub(super) fn aside(&mut self, aside: Aside) {
        match aside {
            Aside::Code(code) => self.code = code,
            Aside::Swept(session) => self.swept(&session),
            Aside::Died(facts) => self.bury(&facts),
            Aside::Problem(problem) => self.warn(&problem),
            Aside::Line(id, line) => {
                // Unless it was answered with an error meanwhile.
                if self.talk.settle(&id) {
                    self.pump.push_line(&line);
                }
                self.note_quiet();
            }
            Aside::Room(done) => {
                self.is_making_room = false;
                if !self.held.is_empty() {
                    self.dispatch(Event::Message);
                }
                let _ = done.send(());
            }
            Aside::DistantClients(found) => {
                self.distant_clients.extend(found);
                if self.distant_clients.iter().any(DistantClient::lives) && self.eof_seen.is_some() {
                    self.bind();
                }
            }
            Aside::ReadByClient => self.bind(),
            Aside::Done => self.looking_since = None,
        }
    }

    fn swept(&mut self, swept: &moored_containment::SweptSession) {
        let (ended, survivors) = (swept.ended.len() as u64, swept.survivors.len() as u64);
        if ended + survivors > 0 {
            self.note(What::Swept { session: swept.session, ended, survivors });
        }
    }

    /// The end of a `run` that could not tell it.
    fn bury(&mut self, facts: &Facts) {
        let ended = Ended {
            why: EndCause::MooredKilled,
            exit_code: None,
            counters: Counters::default(),
            report: None,
        };
        (self.around.note)(start::begun(facts));
        (self.around.note)(event(facts, What::Ended(ended)));
    }

    pub(super) fn note(&mut self, what: What) {
        let event = event(&self.facts, what);
        if self.settled_at.is_some() {
            self.waiting.push(event);
        } else {
            (self.around.note)(event);
        }
    }

    /// On stderr and on record.
    pub(super) fn warn(&mut self, message: &str) {
        let message = masked_text(message);
        self.pump.push_errors(format!("moored: {message}\n").as_bytes());
        self.note(What::Warned { message });
    }
}
