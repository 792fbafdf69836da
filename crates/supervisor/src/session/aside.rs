//! What is done beside the session, off the way of its first byte, on a thread: looking at the code on disk, and sweeping
//! what dead sessions left.

use std::os::fd::AsFd as _;

use moored_containment::{RuntimeDir, SweptSession, sweep};
use tokio::sync::mpsc;

use super::code::Code;
use super::crashes::Crashes;
use super::distant_clients::{self, DistantClient};
use crate::berth::{self, Facts};
use crate::on_thread::on_thread;
use moored_launch::ServerSpec;

/// What comes back from a thread.
#[derive(Debug)]
pub(super) enum Aside {
    /// The code behind the command.
    Code(Option<Code>),
    /// A `run` whose moored was killed.
    Died(Box<Facts>),
    /// What a dead session had left was ended.
    Swept(SweptSession),
    /// Something could not be done.
    Problem(String),
    /// A line for the client, which answers the call with that id.
    Line(Vec<u8>, Vec<u8>),
    /// There is room for a server that is to wake; to be told when it has woken.
    Room(std::sync::mpsc::Sender<()>),
    /// Clients that are no ancestors.
    DistantClients(Vec<DistantClient>),
    /// A client that is no ancestor reads our stdout.
    ReadByClient,
    /// The look around is over.
    Done,
}

/// Looks at the code behind a server that was started again: it may be newer than that of the one before.
pub(super) fn look_at_code(spec: &ServerSpec, tell: mpsc::UnboundedSender<Aside>) {
    let (command, cwd) = (spec.launch.argv(), spec.cwd());
    // Without a thread it is as if there were no code to look at.
    let _ = on_thread(move || {
        let _ = tell.send(Aside::Code(Code::behind(&command, &cwd)));
    });
}

/// Who writes to our stdin without being an ancestor.
pub(super) fn look_for_writers(tell: mpsc::UnboundedSender<Aside>) {
    // Without a thread it is as if nobody had been seen.
    let _ = on_thread(move || {
        let writers = distant_clients::writers_of(std::io::stdin().as_fd());
        let _ = tell.send(Aside::DistantClients(writers));
    });
}

/// Who reads our stdout without being an ancestor, or a part of our pipeline.
pub(super) fn look_for_readers(tell: mpsc::UnboundedSender<Aside>) {
    let _ = on_thread(move || {
        if distant_clients::is_read_by_client(std::io::stdout().as_fd()) {
            let _ = tell.send(Aside::ReadByClient);
        }
    });
}

pub(super) fn look_around(spec: &ServerSpec, tell: mpsc::UnboundedSender<Aside>) {
    let (command, cwd, told) = (spec.launch.argv(), spec.cwd(), tell.clone());
    let looking = on_thread(move || {
        // Nobody listens any more if the session was that short.
        let _ = tell.send(Aside::Code(Code::behind(&command, &cwd)));
        for folder in RuntimeDir::all_of_user() {
            Crashes::forget_old(folder.path());
            set_orphans_going(&folder);
            // What cannot be read now is read by the next one.
            for facts in berth::bury(&folder).unwrap_or_default() {
                let _ = tell.send(Aside::Died(Box::new(facts)));
            }
            match sweep(&folder) {
                Ok(report) => {
                    for session in report.sessions {
                        let _ = tell.send(Aside::Swept(session));
                    }
                }
                Err(error) => {
                    let problem = format!("cannot sweep `{}`: {error}", folder.path().display());
                    let _ = tell.send(Aside::Problem(problem));
                }
            }
        }
        let _ = tell.send(Aside::Done);
    });
    if let Err(error) = looking {
        let _ = told.send(Aside::Problem(format!("cannot look for what dead sessions left: {error}")));
        let _ = told.send(Aside::Done);
    }
}

/// A server can stop the moored that holds it, and outlive its client so; not for longer than until somebody looks.
fn set_orphans_going(folder: &RuntimeDir) {
    for found in berth::all(folder).unwrap_or_default() {
        let client = found.facts.client.as_ref().and_then(|client| client.identity);
        if client.is_some_and(|client| client.is_alive().is_ok_and(|alive| !alive)) {
            found.set_going();
        }
    }
}
