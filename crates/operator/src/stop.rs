//! Ending: each `run` is asked to end itself, all at once, and what it says is checked by looking whether any process
//! that it had is still there.

use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use moored_containment::{EndReport, ProcessIdentity};
use moored_registry::control::{Reply, Request, StopBy};
use serde::Serialize;

use crate::look::Live;
use crate::row::Origin;

/// How long a run may take to answer `stop`, which it does when its ladder is done.
const STOP_REPLY_TIMEOUT: Duration = Duration::from_mins(2);

/// How long a run that no longer takes requests may take to write its history and exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two looks whether it has exited.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What became of a `run` that was to end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stopped {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The moored process.
    pub moored_pid: u32,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: StopOutcome,
    /// Processes that it had, that were not to be kept, and that are still there.
    pub survivors: Vec<u32>,
    /// How long it took.
    pub took_ms: u64,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum StopOutcome {
    /// It has ended.
    Ended {
        /// How its process tree ended, if it had one.
        report: Option<Box<EndReport>>,
    },
    /// It has answered that it will not end.
    Refused {
        /// What it said.
        reason: String,
    },
    /// It could not be asked, or did not answer.
    Failed {
        /// What went wrong.
        reason: String,
    },
}

impl Stopped {
    /// Whether it has ended, with all that it had.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(&self.outcome, StopOutcome::Ended { report } if report.as_ref().is_none_or(|r| r.survivors.is_empty()))
            && self.survivors.is_empty()
    }
}

impl Live {
    /// Ends all of these at once. Each is told of as soon as it is known what became of it.
    #[must_use]
    pub fn stop_all(all: &[&Self], mut tell: impl FnMut(&Stopped)) -> Vec<Stopped> {
        let (send, receive) = mpsc::channel();
        for one in all {
            let (stopping, done) = ((*one).clone(), send.clone());
            let stop = move || {
                // The receiver waits for all.
                let _ = done.send(stopping.stop());
            };
            if let Err(error) = thread::Builder::new().stack_size(256 << 10).spawn(stop) {
                let outcome = StopOutcome::Failed { reason: format!("no thread could be started: {error}") };
                let _ = send.send(one.stopped(outcome, Duration::ZERO));
            }
        }
        drop(send);
        receive.into_iter().inspect(|stopped| tell(stopped)).collect()
    }

    fn stop(&self) -> Stopped {
        let begun = Instant::now();
        self.found.resume_if_stopped();
        let answer = self.found.ask(&Request::Stop { by: StopBy::Operator }, STOP_REPLY_TIMEOUT);
        let outcome = match outcome(answer) {
            // It was ending already, and its control socket was closed.
            StopOutcome::Refused { .. } | StopOutcome::Failed { .. } if self.ends_by_itself() => {
                StopOutcome::Ended { report: None }
            }
            outcome => outcome,
        };
        self.stopped(self.with_host(outcome), begun.elapsed())
    }

    /// What could not be stopped names the program that it belongs to, where that is not moored.
    fn with_host(&self, outcome: StopOutcome) -> StopOutcome {
        match (outcome, &self.row.client) {
            (StopOutcome::Failed { reason }, Some(host)) if self.row.origin == Origin::Client => {
                let reason = format!("{reason}; it belongs to {} ({})", host.name, host.pid);
                StopOutcome::Failed { reason }
            }
            (outcome, _) => outcome,
        }
    }

    /// Whether it ends soon, without being asked.
    fn ends_by_itself(&self) -> bool {
        let until = Instant::now() + EXIT_TIMEOUT;
        while !self.found.has_ended() {
            if Instant::now() > until {
                return false;
            }
            thread::sleep(EXIT_POLL_INTERVAL);
        }
        true
    }

    fn stopped(&self, outcome: StopOutcome, took: Duration) -> Stopped {
        let kept = match &outcome {
            StopOutcome::Ended { report: Some(report) } => report.kept.as_slice(),
            _ => &[],
        };
        Stopped {
            id: self.row.id.clone(),
            name: self.row.name.clone(),
            moored_pid: self.found.info.moored.pid,
            survivors: still_there(&self.tree, kept),
            outcome,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

fn outcome(answer: io::Result<Reply>) -> StopOutcome {
    match answer {
        Ok(Reply::Stopped { report }) => StopOutcome::Ended { report: report.map(Box::new) },
        Ok(Reply::Refused { reason }) => StopOutcome::Refused { reason },
        Ok(other) => StopOutcome::Failed { reason: format!("it answered another request: {other:?}") },
        Err(error) => StopOutcome::Failed { reason: format!("it does not answer: {error}") },
    }
}

/// Those of the tree that live and were not meant to. "Could not look" counts as there.
fn still_there(tree: &[ProcessIdentity], kept: &[ProcessIdentity]) -> Vec<u32> {
    let there = tree.iter().filter(|process| !kept.contains(process) && process.is_alive().unwrap_or(true));
    there.map(|process| process.pid).collect()
}
