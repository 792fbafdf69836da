//! From a session's rules to a contained server.

use std::ffi::OsString;
use std::sync::Arc;

use moored_containment::Command;
use moored_launch::ServerSpec;

use super::ContainedServer;
use super::files::ServerFiles;
use super::holder::Holder;
use crate::event::{StartReason, Started};
use crate::session::host::pid_file;
use crate::session::server::{StartFuture, StartServer};

/// Launchers of the user's browser: what they open is the user's, not the server's.
const LAUNCHERS: [&str; 6] =
    ["xdg-open", "gio", "sensible-browser", "x-www-browser", "www-browser", "wslview"];

/// Starts a session's server, contained by its rules.
#[derive(Debug)]
pub(in crate::session) struct ContainedStarter {
    spec: Arc<ServerSpec>,
    remove_pid_file: Vec<OsString>,
}

impl ContainedStarter {
    /// `remove_pid_file` is a command that the guardians run when the tree is gone, if the server has a PID file.
    pub(in crate::session) fn new(spec: Arc<ServerSpec>, remove_pid_file: Vec<OsString>) -> Self {
        Self { spec, remove_pid_file }
    }
}

impl StartServer for ContainedStarter {
    type Server = ContainedServer;

    fn start(&mut self, why: StartReason) -> StartFuture<ContainedServer> {
        // A start takes about as long as the thread would that it could be done on.
        let started = command(&self.spec, &self.remove_pid_file).spawn_async();
        let server = started.map(|mut server| ContainedServer {
            started: Started {
                session: server.id(),
                process: server.identity(),
                strength: server.strength().clone(),
                why,
            },
            guardians: server.guardians(),
            signals: server.signaller(),
            files: ServerFiles::of(&mut server),
            holder: Holder::of(server),
        });
        Box::pin(std::future::ready(server))
    }
}

/// The server's command, contained by the rules.
fn command(spec: &ServerSpec, remove_pid_file: &[OsString]) -> Command {
    let mut command = spec.launch.command();
    if !spec.launch.can_keep_nothing() {
        for launcher in LAUNCHERS {
            command.keep(launcher);
        }
    }
    if let Some(path) = pid_file(spec).filter(|_| !remove_pid_file.is_empty()) {
        command.on_end(remove_pid_file.iter().cloned().chain([path.into_os_string()]));
    }
    command
}
