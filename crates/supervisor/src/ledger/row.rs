//! What a `run` is after a list of events, and what can be asked for. Pure.

use std::path::PathBuf;

use jiff::Timestamp;
use moored_containment::{EndReport, ProcessIdentity, Strength};
use serde::Serialize;

use crate::event::{Begun, Client, Counters, EndCause, Ended, Event, RunId, StartReason, What};

/// Which `run`s. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// Of this server.
    pub server: Option<String>,
    /// To which something has happened since.
    pub since: Option<Timestamp>,
    /// At most this many.
    pub limit: Option<usize>,
}

/// Which events. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// That happened at this time or later.
    pub since: Option<Timestamp>,
    /// That were written down after this one.
    pub after_id: Option<i64>,
    /// Of this `run`.
    pub run: Option<RunId>,
    /// At most this many.
    pub limit: Option<usize>,
}

/// An event as it was written down.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoredEvent {
    /// Its number: larger than that of every event written down before, and never given out again.
    pub id: i64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What is known of a `run`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRow {
    /// Its name.
    pub run: RunId,
    /// Its server's name.
    pub name: String,
    /// The server's argv, secrets masked; empty if the beginning was not written down.
    pub command: Vec<String>,
    /// Its working directory.
    pub cwd: Option<PathBuf>,
    /// Who asked for it.
    pub client: Option<Client>,
    /// The moored process.
    pub moored: Option<ProcessIdentity>,
    /// The version of moored.
    pub moored_version: Option<String>,
    /// The version that the server gave last.
    pub server_version: Option<String>,
    /// How strongly it was held last.
    pub strength: Option<Strength>,
    /// When it began: the time of its first event.
    pub started_at: Timestamp,
    /// The time of its last event.
    pub last_at: Timestamp,
    /// When it ended, if that was written down.
    pub ended_at: Option<Timestamp>,
    /// Why it ended.
    pub end_cause: Option<EndCause>,
    /// What moored exited with.
    pub exit_code: Option<i32>,
    /// What was counted.
    pub counters: Counters,
    /// How its last tree ended.
    pub report: Option<EndReport>,
}

impl RunRow {
    /// A `run` of which nothing is known but that this happened to it.
    pub(super) fn first(event: &Event) -> Self {
        let mut row = Self {
            run: event.run,
            name: event.server.clone(),
            command: Vec::new(),
            cwd: None,
            client: None,
            moored: None,
            moored_version: None,
            server_version: None,
            strength: None,
            started_at: event.at,
            last_at: event.at,
            ended_at: None,
            end_cause: None,
            exit_code: None,
            counters: Counters::default(),
            report: None,
        };
        row.apply(event);
        row
    }

    /// Takes in what happened. Events may come late: what was spooled is written down after what was not.
    pub(super) fn apply(&mut self, event: &Event) {
        self.started_at = self.started_at.min(event.at);
        self.last_at = self.last_at.max(event.at);
        match &event.what {
            What::Begun(begun) => self.begin(event, begun),
            What::Started(started) => {
                self.strength = Some(started.strength.clone());
                if self.ended_at.is_none() {
                    self.count(started.why);
                }
            }
            What::Initialized { server_version: Some(version), .. } => {
                self.server_version = Some(version.clone());
            }
            // It has not ended, but this is how its last tree did; and an end that is known says more.
            What::Hibernated { report, .. } if self.ended_at.is_none() => self.report = Some(report.clone()),
            What::Ended(ended) => self.end(event.at, ended),
            // They are read as events; the row has no place for them.
            What::Initialized { .. }
            | What::Hibernated { .. }
            | What::Restarting { .. }
            | What::Swept { .. }
            | What::Warned { .. } => {}
        }
    }

    fn begin(&mut self, event: &Event, begun: &Begun) {
        self.name.clone_from(&event.server);
        self.command.clone_from(&begun.command);
        self.cwd = Some(begun.cwd.clone());
        self.client.clone_from(&begun.client);
        self.moored = Some(begun.moored);
        self.moored_version = Some(begun.moored_version.clone());
    }

    fn count(&mut self, why: StartReason) {
        match why {
            StartReason::First => {}
            StartReason::Wake => self.counters.wakes += 1,
            StartReason::Restart => self.counters.restarts += 1,
        }
    }

    /// The first end stays, but that moored was killed is what others concluded: its own word counts more.
    fn end(&mut self, at: Timestamp, ended: &Ended) {
        let concluded = |cause| cause == EndCause::MooredKilled;
        if self.end_cause.is_some_and(|known| !concluded(known) || concluded(ended.why)) {
            return;
        }
        self.ended_at = Some(at);
        self.end_cause = Some(ended.why);
        self.exit_code = ended.exit_code;
        let seen = std::mem::replace(&mut self.counters, ended.counters);
        // A process that only concluded the end (`MooredKilled`) has counted nothing.
        self.counters.wakes = self.counters.wakes.max(seen.wakes);
        self.counters.restarts = self.counters.restarts.max(seen.restarts);
        if ended.report.is_some() {
            self.report.clone_from(&ended.report);
        }
    }
}

/// An event as text: one line of JSON.
pub(super) fn to_line(event: &Event) -> Result<String, serde_json::Error> {
    serde_json::to_string(event).or_else(|error| match &event.what {
        // JSON takes no path that is not UTF-8, and a folder with an odd name is no reason to forget a `run`.
        What::Begun(begun) if begun.cwd.to_str().is_none() => {
            let begun = Begun { cwd: begun.cwd.to_string_lossy().into_owned().into(), ..begun.clone() };
            serde_json::to_string(&Event { what: What::Begun(begun), ..event.clone() })
        }
        _ => Err(error),
    })
}
