//! `moored run`: a session whose client is at the other end of our own stdio. The thin shell around a session that has to do with
//! being a process: our stdio, signals, job control, the death of the process that started us, and `--direct`.
//!
//! | file | owns |
//! |---|---|
//! | `stdio_port` | our stdin and stdout as the client's port |
//! | `direct_port` | `--direct`: the server has our stdio, and the port only watches it |
//! | `client` | which process asked for the server, and how its death is noticed |
//! | `client_watch` | that process while it lives, and who closed our stdin |
//! | `distant_clients` | clients that are no ancestors of ours |
//! | `signals` | the signals that end, stop and continue us |
//! | `stderr` | our own stderr, for a client that may not read it |
//! | `hangup` | the other end of a stdin that is not read |

mod client;
mod client_watch;
mod direct_port;
pub(in crate::session) mod distant_clients;
mod hangup;
mod signals;
mod stderr;
mod stdio_port;

use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use moored_containment::unblock_signals;
use moored_launch::ServerSpec;
use rustix::process::{Signal as UnixSignal, getpid, kill_process};
use tokio::sync::{mpsc, oneshot};

use self::client::{ClientProcess, StdinHold};
use self::client_watch::ClientWatch;
use self::direct_port::DirectPort;
use self::signals::{SignalEvent, Signals, survive_full_files};
use self::stdio_port::StdioPort;
use super::contained::ContainedStarter;
use super::host::{SessionHost, facts};
use super::outcome::{RunError, RunOutcome};
use super::port::ClientPort;
use super::task::{Command, Session, SessionParts};
use moored_registry::RunInfo;

use crate::ignored::ignore;

/// Runs a server for the client at the other end of our stdio, until one of them ends.
///
/// # Errors
/// If there was nothing to run; nothing is left then.
pub fn run(spec: ServerSpec, host: SessionHost) -> Result<RunOutcome, RunError> {
    check_spare_files().map_err(RunError::OutOfFiles)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RunError::Reactor)?;
    let outcome = runtime.block_on(begin(Arc::new(spec), host));
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

async fn begin(spec: Arc<ServerSpec>, host: SessionHost) -> Result<RunOutcome, RunError> {
    let stdin = io::stdin();
    // Before anything is written.
    survive_full_files().map_err(RunError::Reactor)?;
    let client = ClientProcess::find(stdin.as_fd());
    let holds_stdin = client.as_ref().is_some_and(|found| found.stdin == StdinHold::Seen);
    let known = client.as_ref().map(|found| found.client.clone());
    let facts =
        RunInfo { client_holds_stdin: holds_stdin, ..facts(&spec, &host, known).map_err(RunError::NoProc)? };
    let client = ClientWatch::new(client);
    let starter = ContainedStarter::new(Arc::clone(&spec), host.remove_pid_file.clone());
    // Before anything is started: from here on a signal is an ending, not our death.
    let signals = Signals::listen().map_err(RunError::Reactor)?;
    unblock_signals();
    let (tell, commands) = mpsc::unbounded_channel();
    if spec.is_direct() {
        let port = DirectPort::open(client)?;
        live(SessionParts { spec, facts, host, port, starter, commands }, signals, tell).await
    } else {
        let port = StdioPort::open(client, spec.rules.line_limit)?;
        live(SessionParts { spec, facts, host, port, starter, commands }, signals, tell).await
    }
}

/// The session's task and the signals that it is told of.
async fn live(
    parts: SessionParts<impl ClientPort, ContainedStarter>,
    signals: Signals,
    tell: mpsc::UnboundedSender<Command>,
) -> Result<RunOutcome, RunError> {
    let session = Session::new(parts).live();
    tokio::select! {
        biased;
        never = pass_signals(signals, &tell) => match never {},
        outcome = session => outcome,
    }
}

async fn pass_signals(
    mut signals: Signals,
    tell: &mpsc::UnboundedSender<Command>,
) -> std::convert::Infallible {
    loop {
        // The session takes commands for as long as it lives, and this ends with it.
        let _ = match signals.next().await {
            SignalEvent::End(signal) => tell.send(Command::Signal(signal)),
            SignalEvent::Continue => tell.send(Command::Resume),
            SignalEvent::Stop => {
                let (done, is_done) = oneshot::channel();
                let told = tell.send(Command::Suspend(done));
                tokio::spawn(stop_after(is_done));
                told
            }
        };
    }
}

/// ^Z: the server is stopped first, then we are, until we are continued. The shell waits for this.
async fn stop_after(server_stopped: oneshot::Receiver<()>) {
    // An error means that the session has ended; then there is no server to wait for.
    let _ = server_stopped.await;
    ignore("stop ourselves", kill_process(getpid(), UnixSignal::STOP));
}
