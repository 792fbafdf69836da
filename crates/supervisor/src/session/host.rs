//! What a session finds around it: where it is registered, who listens to its events, where its server's stderr is kept.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use moored_containment::{ProcessIdentity, RuntimeDir};
use moored_launch::ServerSpec;

use crate::event::{Begun, Client, Event, RunId, What};
use moored_registry::boot_time::millis_since_boot;
use moored_registry::{Origin, RunInfo};

/// Told of everything that happens to a session.
pub type EventSink = Box<dyn FnMut(Event) + Send>;
/// Given what a server writes to stderr.
pub type LogSink = Box<dyn FnMut(&[u8]) + Send>;

/// What a session finds around it.
pub struct SessionHost {
    /// The user's runtime folder; without one the session is not found by `ps` and `stop`.
    pub folder: io::Result<RuntimeDir>,
    /// Told of everything that happens.
    pub events: EventSink,
    /// Given the server's stderr.
    pub log: LogSink,
    /// Where that is kept, for `logs` and `inspect`.
    pub log_file: Option<PathBuf>,
    /// The id of this session.
    pub run: RunId,
    /// The version of moored.
    pub version: &'static str,
    /// A command that removes a PID file whose process is dead; its path is added as the last word.
    pub remove_pid_file: Vec<OsString>,
    /// Who looks for what dead sessions left.
    pub housekeeping: Housekeeping,
    /// What kind of program runs the session.
    pub origin: Origin,
}

/// Who looks for what dead sessions left, in the runtime folders and running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Housekeeping {
    /// Each session, when its server has started.
    BySession,
    /// The host, for all of its sessions.
    ByHost,
}

impl std::fmt::Debug for SessionHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionHost")
            .field("run", &self.run)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// What is registered of a session: what does not change while it lives.
///
/// # Errors
/// If our own process is not to be seen.
pub(super) fn facts(spec: &ServerSpec, host: &SessionHost, client: Option<Client>) -> io::Result<RunInfo> {
    Ok(RunInfo {
        run: host.run,
        moored: ProcessIdentity::of(std::process::id())?,
        moored_version: host.version.to_owned(),
        name: spec.launch.name.clone(),
        command: spec.launch.masked_argv(),
        cwd: as_text(&spec.cwd()),
        server_key: spec.launch.server_key(),
        entry_key: spec.entry_key(),
        client,
        client_holds_stdin: false,
        origin: host.origin,
        began_ms: Some(millis_since_boot()),
        session: None,
        started_at: Timestamp::now(),
        log_file: host.log_file.as_deref().map(as_text),
        pid_file: pid_file(spec).as_deref().map(as_text),
        max_instances: spec.rules.max_instances,
    })
}

/// The absolute path of the PID file: the guardians, which remove it too, are in `/`.
pub(super) fn pid_file(spec: &ServerSpec) -> Option<PathBuf> {
    spec.rules.pid_file.as_ref().map(|path| spec.cwd().join(path))
}

/// A path that can be written down: one that is no text loses what cannot be.
fn as_text(path: &Path) -> PathBuf {
    path.to_string_lossy().into_owned().into()
}

/// The first event of a session, which is the same from the session itself and from the one that finds it dead.
pub(super) fn begun(facts: &RunInfo) -> Event {
    let begun = Begun {
        moored: facts.moored,
        moored_version: facts.moored_version.clone(),
        command: facts.command.clone(),
        cwd: facts.cwd.clone(),
        client: facts.client.clone(),
        log_file: facts.log_file.clone(),
    };
    Event { at: facts.started_at, ..event(facts, What::Begun(begun)) }
}

pub(super) fn event(facts: &RunInfo, what: What) -> Event {
    Event { at: Timestamp::now(), run: facts.run, server: facts.name.clone(), what }
}
