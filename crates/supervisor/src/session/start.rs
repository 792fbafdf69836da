//! How a `run` begins: who asked, its berth, room for it, its door; then the driver. And how it ends.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use moored_containment::{Command, ProcessIdentity, RuntimeDir, StartError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use tokio::sync::oneshot;

use super::client::{ClientProcess, StdinHold};
use super::direct::hangup_of;
use super::door::Door;
use super::driver::{Driver, Parts};
use super::limit::{NoRoom, make_room};
use super::pump::Pump;
use super::signals::survive_full_files;
use crate::berth::{Berth, Facts};
use crate::event::{Begun, Ended, Event, RunId, What};
use crate::relay::{Inlet, Outlet};
use moored_launch::ServerSpec;

/// Launchers of the user's browser: what they open is the user's, not the server's.
const LAUNCHERS: [&str; 6] =
    ["xdg-open", "gio", "sensible-browser", "x-www-browser", "www-browser", "wslview"];

/// What a `run` finds around it.
pub struct Surroundings {
    /// The user's runtime folder; without one nobody can find the `run`.
    pub folder: io::Result<RuntimeDir>,
    /// Told of everything that happens.
    pub note: Box<dyn FnMut(Event) + Send>,
    /// Given the server's stderr.
    #[expect(clippy::type_complexity, reason = "a callback is no simpler with a name")]
    pub log: Box<dyn FnMut(&[u8]) + Send>,
    /// Where that is kept, for those who ask.
    pub log_file: Option<PathBuf>,
    /// The name of this `run`.
    pub run: RunId,
    /// The version of moored.
    pub version: &'static str,
    /// A command that removes a PID file whose process is dead; its path is added as the last word.
    pub remove_pid_file: Vec<OsString>,
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("run", &self.run)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// How a `run` ended.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// What to exit with.
    pub exit_code: i32,
    /// All that is known of it.
    pub ended: Ended,
}

/// Why there was nothing to run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The server could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There are too many of it.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// Our own files cannot be used.
    #[error("cannot use our own {what}: {source}")]
    Stdio {
        /// Which.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Not even ourselves are to be seen.
    #[error("cannot tell who we are by /proc: {0}")]
    NoProc(#[source] io::Error),
    /// Not enough files even for the reactor.
    #[error("out of file descriptors (raise `ulimit -n`, or close some)")]
    OutOfFiles(#[source] io::Error),
    /// No reactor.
    #[error("cannot watch for anything: {0}")]
    Reactor(#[source] io::Error),
}

impl RunError {
    /// What to exit with.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Start(error) => error.exit_code(),
            _ => 125,
        }
    }
}

/// Runs a server for whoever is at the other end of our stdio, until one of them has enough.
///
/// # Errors
/// If there was nothing to run; nothing is left then.
pub fn run(spec: ServerSpec, surroundings: Surroundings) -> Result<RunOutcome, RunError> {
    check_spare_files().map_err(RunError::OutOfFiles)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RunError::Reactor)?;
    let outcome = runtime.block_on(begin(spec, surroundings));
    // Threads that still look at something are not waited for.
    runtime.shutdown_background();
    outcome
}

/// A tokio that gets no files for its reactor and its signals panics, so as many as it takes are asked for first.
fn check_spare_files() -> io::Result<()> {
    const REACTOR_AND_SIGNALS: usize = 8;
    let spare: io::Result<Vec<_>> =
        (0..REACTOR_AND_SIGNALS).map(|_| std::fs::File::open("/dev/null")).collect();
    spare.map(drop)
}

async fn begin(spec: ServerSpec, around: Surroundings) -> Result<RunOutcome, RunError> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    // Before anything is written.
    survive_full_files().map_err(RunError::Reactor)?;
    let client = ClientProcess::find(stdin.as_fd());
    let facts = facts(&spec, &around, client.as_ref())?;
    let mut warnings = Vec::new();
    let folder = around.folder.as_ref().map_err(|error| warnings.push(not_findable(error))).ok().cloned();
    let is_wanted = || !has_left(stdin.as_fd(), stdout.as_fd());
    let berth = take_berth(&spec, &facts, folder.as_ref(), is_wanted)?;
    let berth = berth.and_then(|berth| berth.map_err(|error| warnings.push(not_findable(&error))).ok());
    let door = berth.as_ref().and_then(|berth| {
        Door::open(&berth.socket()).map_err(|error| warnings.push(not_findable(&error))).ok()
    });
    let pump = if spec.is_direct() {
        Pump::idle()
    } else {
        pump(stdin.as_fd(), stdout.as_fd(), stderr.as_fd(), spec.rules.line_limit)?
    };
    let hangup = if spec.is_direct() { Some(watch_hangup(stdin.as_fd())?) } else { None };
    let parts = Parts { spec, facts, client, folder, pump, hangup, door, around };
    let outcome = Driver::new(parts, &warnings).live().await;
    drop(berth);
    outcome
}

/// A place in the folder, if there is one; with a limit, when there is room.
fn take_berth(
    spec: &ServerSpec,
    facts: &Facts,
    folder: Option<&RuntimeDir>,
    is_wanted: impl Fn() -> bool,
) -> Result<Option<io::Result<Berth>>, NoRoom> {
    let Some(folder) = folder else { return Ok(None) };
    let take = || Berth::take(folder, facts);
    match spec.rules.max_instances {
        Some(limit) => make_room(folder, facts, limit, spec.rules.over_limit, is_wanted, take).map(Some),
        None => Ok(Some(take())),
    }
}

/// Whether nobody is at the other end any more, and nothing that was said is left to be read.
fn has_left(stdin: BorrowedFd<'_>, stdout: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(&stdout, PollFlags::empty())];
    if poll(&mut fds, Some(&Timespec::default())).is_err() {
        return false;
    }
    let [input, output] = fds.map(|fd| fd.revents());
    input.contains(PollFlags::HUP) && !input.contains(PollFlags::IN)
        || output.intersects(PollFlags::ERR | PollFlags::HUP)
}

fn not_findable(error: &io::Error) -> String {
    format!("`ps` and `stop` will not find this server: {error}")
}

fn facts(
    spec: &ServerSpec,
    around: &Surroundings,
    client: Option<&ClientProcess>,
) -> Result<Facts, RunError> {
    Ok(Facts {
        run: around.run,
        moored: ProcessIdentity::of(std::process::id()).map_err(RunError::NoProc)?,
        moored_version: around.version.to_owned(),
        name: spec.launch.name.clone(),
        command: spec.launch.masked_argv(),
        cwd: readable(&spec.cwd()),
        server_key: spec.launch.server_key(),
        entry_key: spec.entry_key(),
        client: client.map(|found| found.client.clone()),
        client_holds_stdin: client.is_some_and(|found| found.stdin == StdinHold::Seen),
        started_at: Timestamp::now(),
        log_file: around.log_file.as_deref().map(readable),
        pid_file: pid_file(spec).as_deref().map(readable),
        max_instances: spec.rules.max_instances,
    })
}

/// A path that can be written down: one that is no text loses what cannot be.
fn readable(path: &Path) -> PathBuf {
    path.to_string_lossy().into_owned().into()
}

/// The first event of a `run`; the same whoever tells it.
pub(super) fn begun(facts: &Facts) -> Event {
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

pub(super) fn event(facts: &Facts, what: What) -> Event {
    Event { at: Timestamp::now(), run: facts.run, server: facts.name.clone(), what }
}

fn pump(
    stdin: BorrowedFd<'_>,
    stdout: BorrowedFd<'_>,
    stderr: BorrowedFd<'_>,
    limit: usize,
) -> Result<Pump, RunError> {
    let input = Inlet::open(stdin).map_err(|source| RunError::Stdio { what: "stdin", source })?;
    let output = Outlet::open(stdout).map_err(|source| RunError::Stdio { what: "stdout", source })?;
    // Without a stderr the log still has what the server writes there.
    Ok(Pump::new(input, output, Outlet::open(stderr).ok(), limit))
}

/// Without it nobody would see that the client has left.
fn watch_hangup(stdin: BorrowedFd<'_>) -> Result<oneshot::Receiver<()>, RunError> {
    let watched = stdin.try_clone_to_owned().and_then(hangup_of);
    watched.map_err(|source| RunError::Stdio { what: "stdin", source })
}

/// Where it is, from wherever one looks: the guardians are in `/`.
fn pid_file(spec: &ServerSpec) -> Option<PathBuf> {
    spec.rules.pid_file.as_ref().map(|path| spec.cwd().join(path))
}

/// The server's command, contained by the rules.
pub(super) fn command(spec: &ServerSpec, remove_pid_file: &[OsString]) -> Command {
    let mut command = spec.launch.command();
    if !spec.launch.spares_nobody() {
        for launcher in LAUNCHERS {
            command.keep(launcher);
        }
    }
    if let Some(path) = pid_file(spec).filter(|_| !remove_pid_file.is_empty()) {
        command.on_end(remove_pid_file.iter().cloned().chain([path.into_os_string()]));
    }
    command
}
