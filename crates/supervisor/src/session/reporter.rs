//! What a session tells: its events, in order, to the host's listener.
//!
//! A server has the machine to itself for its first moments: events wait until then, because a listener writes files.

use tracing::debug;

use super::host::{EventSink, begun, event};
use crate::event::{Counters, EndCause, Ended, Event, What};
use moored_registry::RunInfo;

pub(super) struct Reporter {
    facts: RunInfo,
    sink: EventSink,
    /// Events of the start; none once they have been told.
    held_back: Option<Vec<Event>>,
}

impl Reporter {
    pub(super) fn new(facts: RunInfo, sink: EventSink) -> Self {
        let held_back = Some(vec![begun(&facts)]);
        Self { facts, sink, held_back }
    }

    pub(super) fn note(&mut self, what: What) {
        let event = event(&self.facts, what);
        debug!(run = %event.run, server = event.server, what = ?event.what, "something happened");
        match &mut self.held_back {
            Some(events) => events.push(event),
            None => (self.sink)(event),
        }
    }

    /// The first moments are over: tells what happened in them. Whether they were over only now.
    pub(super) fn flush_startup_events(&mut self) -> bool {
        let Some(events) = self.held_back.take() else { return false };
        events.into_iter().for_each(&mut self.sink);
        true
    }

    /// The end of another session, whose moored was killed before it could tell it.
    pub(super) fn note_death(&mut self, facts: &RunInfo) {
        let ended = Ended {
            why: EndCause::MooredKilled,
            exit_code: None,
            counters: Counters::default(),
            report: None,
        };
        (self.sink)(begun(facts));
        (self.sink)(event(facts, What::Ended(ended)));
    }
}
