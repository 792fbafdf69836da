//! From a spec to a process that has answered: start, handshake, and the end of what did not get that far.
//!
//! This file does; what a failure means for the server is decided in `life`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use moored_containment::{EndReason, Ladder, Rung, ServerExit, StartError};
use rmcp::ClientLifecycleMode;
use rmcp::service::{ClientInitializeError, serve_client_with_lifecycle_and_ct};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::process_hold::{Outcome, ProcessHold};
use super::registration::{Registration, ServerRegistration};
use super::slot::{Connection, Slot};
use crate::event::Event;
use crate::handler::AnyHandler;
use crate::set::{ServerLimit, Shared};
use crate::spec::ServerSpec;
use crate::transport::{Input, Signs, Wire};

/// How long a server that has closed its output may take to be gone by itself, before it is asked to; and how long one
/// that is gone may be read, when another process holds its output open.
pub(crate) const SILENCE: Duration = Duration::from_secs(1);

/// Why a server did not come up, or is down.
///
/// ```
/// use std::time::Duration;
/// use moored_client::ConnectError;
/// # use moored_client::{ServerSet, ServerSpec, SetOptions};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let mute = ServerSpec::new("mute", "sleep").arg("600").connect_timeout(Duration::from_millis(50));
/// let set = ServerSet::connect([mute], SetOptions::default()).await?;
/// assert!(matches!(*set.failures()[0].error, ConnectError::Timeout { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// It could not be started.
    #[error("failed to start it")]
    Start(#[source] StartError),
    /// The file for its standard error could not be opened.
    #[error("failed to open `{}` for its standard error", path.display())]
    Stderr {
        /// That file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// It did not answer `initialize` in time.
    #[error("it did not answer `initialize` within {after:?}")]
    Timeout {
        /// The time limit.
        after: Duration,
    },
    /// It answered `initialize` with something else than was expected.
    #[error("failed to initialize it")]
    Handshake(#[source] Box<ClientInitializeError>),
    /// It ended by itself.
    #[error("it ended by itself ({})", exit_text(*status))]
    Exited {
        /// How, if that is known.
        status: Option<ServerExit>,
    },
    /// As many servers as the limit allows are running.
    #[error("there was no room for it under the limit within {waited:?}")]
    NoRoom {
        /// How long was waited.
        waited: Duration,
    },
    /// More servers are wanted at once than the limit allows at all.
    #[error("{wanted} servers are to be started together, and the limit is {most}")]
    OverLimit {
        /// How many are to be started together.
        wanted: usize,
        /// How many may run.
        most: usize,
    },
    /// It is no longer wanted: the set is closed, or another generation has come.
    #[error("it is no longer wanted")]
    Closed,
    /// The task that served it is gone, and so is its process.
    #[error("it is no longer served: its runtime was shut down, or the host's handler panicked")]
    Unattended,
}

fn exit_text(status: Option<ServerExit>) -> String {
    match status {
        Some(ServerExit::Code(code)) => format!("exit code {code}"),
        Some(ServerExit::Signal(signal)) => format!("signal {signal}"),
        None => "its exit status is unknown".to_owned(),
    }
}

/// A process that was started, and what speaks with it.
pub(crate) struct Launched {
    pub(crate) hold: Arc<ProcessHold>,
    pub(crate) signs: Signs,
    input: Input,
    wire: Option<Wire>,
    service: CancellationToken,
}

/// A place under the limit, or none where there is no limit.
pub(crate) type Room = Option<OwnedSemaphorePermit>;

/// Takes `count` places under the limit at once: sets that took them one by one could wait for each other.
pub(crate) async fn rooms(shared: &Shared, count: usize) -> Result<Room, ConnectError> {
    let Some(ServerLimit { places, most }) = &shared.limit else { return Ok(None) };
    let wanted = u32::try_from(count).ok().filter(|_| count <= *most);
    let Some(wanted) = wanted else { return Err(ConnectError::OverLimit { wanted: count, most: *most }) };
    let waited = shared.wait_for_room;
    tokio::select! {
        permit = timeout(waited, places.clone().acquire_many_owned(wanted)) => match permit {
            Ok(Ok(permit)) => Ok(Some(permit)),
            _ => Err(ConnectError::NoRoom { waited }),
        },
        () = shared.closing.cancelled() => Err(ConnectError::Closed),
    }
}

/// Starts it. Does not wait: from here on the set holds it.
pub(crate) fn launch(slot: &Arc<Slot>, shared: &Shared, room: Room) -> Result<Launched, ConnectError> {
    let mut command = slot.spec.command()?;
    let started = shared.processes.admit(|| {
        let mut contained = command.spawn_async()?;
        let (process, strength) = (contained.identity(), contained.strength().clone());
        let (stdin, stdout) = (contained.stdin.take(), contained.stdout.take());
        let registration = match shared.registration {
            Registration::On => ServerRegistration::of(&contained, slot),
            Registration::Off => None,
        };
        let hold = Arc::new(ProcessHold::new(slot.clone(), contained, room, registration));
        Ok(((stdin, stdout, process, strength, hold.clone()), hold))
    });
    let (stdin, stdout, process, strength, hold) =
        started.map_err(|_| ConnectError::Closed)?.map_err(ConnectError::Start)?;
    shared.bus.tell(&Event::Started { name: slot.spec.name().to_owned(), process, strength });
    let (input, signs) = (Input::new(stdin), Signs::default());
    let wire = stdout.map(|stdout| Wire::new(stdout, input.clone(), signs.clone()));
    Ok(Launched { hold, signs, input, wire, service: CancellationToken::new() })
}

impl Launched {
    /// Until it has answered.
    pub(crate) async fn handshake(
        &mut self,
        spec: &ServerSpec,
        handler: AnyHandler,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Connection, ConnectError> {
        // It was asked for, and is taken once.
        let wire = self.wire.take().ok_or(ConnectError::Closed)?;
        let served = serve_client_with_lifecycle_and_ct(handler, wire, lifecycle, self.service.clone());
        let after = spec.connect_timeout;
        let served = timeout(after, served).await.map_err(|_| ConnectError::Timeout { after })?;
        served.map_err(|error| ConnectError::Handshake(Box::new(error)))
    }

    /// Ends it by that ladder, verified. rmcp reads on until then, so that a server which still has something to say is
    /// not stuck with it.
    pub(crate) async fn end(&self, ladder: Ladder) -> Option<Outcome> {
        self.hold.ask_to_end(ladder);
        let outcome = self.input.close_once_begun(self.hold.ended()).await;
        self.hang_up();
        outcome
    }

    /// Ends what no longer speaks, or no longer listens. Most often it is about to be gone by itself, and then the report
    /// shall say so.
    pub(crate) async fn end_deaf_or_silent(&self, ladder: Ladder) -> Option<Outcome> {
        let outcome = match timeout(SILENCE, self.hold.ended()).await {
            Ok(outcome) => outcome,
            Err(_) => {
                self.hold.ask_to_end(ladder);
                self.input.close_once_begun(self.hold.ended()).await
            }
        };
        self.read_out().await;
        outcome
    }

    /// Lets rmcp read what a server that is gone said last: the answer to a call may be among it. Then hangs up.
    pub(crate) async fn read_out(&self) {
        let _ = timeout(SILENCE, self.signs.silent.cancelled()).await;
        self.hang_up();
    }

    /// rmcp need not wait for anything any more.
    pub(crate) fn hang_up(&self) {
        self.input.close();
        self.service.cancel();
    }

    /// Ends what did not come up, at once; and says better why, if it was gone before.
    pub(crate) async fn end_failed(
        &self,
        spec: &ServerSpec,
        error: ConnectError,
    ) -> (Option<Outcome>, ConnectError) {
        // There is no session yet that could end politely.
        let ladder = Ladder { from: spec.launch.ladder.from.max(Rung::Terminate), ..spec.launch.ladder };
        let outcome = match &error {
            ConnectError::Handshake(_) if self.signs.silent.is_cancelled() => {
                self.end_deaf_or_silent(ladder).await
            }
            _ => self.end(ladder).await,
        };
        match &outcome {
            Some(Ok(report))
                if report.reason == EndReason::ServerExited
                    && matches!(error, ConnectError::Handshake(_)) =>
            {
                let error = ConnectError::Exited { status: report.status };
                (outcome, error)
            }
            _ => (outcome, error),
        }
    }
}
