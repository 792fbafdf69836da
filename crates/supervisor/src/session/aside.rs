//! What is done beside the session, off the way of its first byte, on a thread: looking at the code on disk, and sweeping
//! what dead sessions left.

use std::time::Duration;

use moored_containment::{RuntimeDir, SweptSession, sweep};
use tokio::sync::mpsc;

use super::code::Code;
use crate::berth;
use crate::spec::ServerSpec;

/// What comes back from a thread.
#[derive(Debug)]
pub(super) enum Aside {
    /// The code behind the command.
    Code(Option<Code>),
    /// What a dead session had left was ended.
    Swept(SweptSession),
    /// Something could not be done.
    Problem(String),
    /// A line for the client, which answers the call with that id.
    Line(Vec<u8>, Vec<u8>),
    /// The look around is over.
    Done,
}

/// So that the server has the machine to itself while it starts.
const FIRST: Duration = Duration::from_millis(50);

pub(super) fn look_around(spec: &ServerSpec, tell: mpsc::UnboundedSender<Aside>) {
    let (command, cwd) = (spec.command.clone(), spec.cwd.clone());
    std::thread::spawn(move || {
        // Nobody listens any more if the session was that short.
        let _ = tell.send(Aside::Code(Code::behind(&command, &cwd)));
        std::thread::sleep(FIRST);
        for folder in RuntimeDir::all_of_user() {
            // Removes what dead ones left.
            let _ = berth::all(&folder);
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
}
