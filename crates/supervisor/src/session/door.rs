//! The way in for a host that runs many sessions with ports of its own, such as a gateway. Opens a session for one client and
//! hands back its future and a handle. Our own stdio, signals and job control are `run`'s affair.

use std::sync::Arc;

use moored_launch::ServerSpec;
use tokio::sync::mpsc;

use super::contained::ContainedStarter;
use super::host::{SessionHost, facts};
use super::life::Signal;
use super::outcome::{RunError, RunOutcome};
use super::port::ClientPort;
use super::task::{Command, Session, SessionParts};
use crate::event::{Client, EndCause, SleepReason};

/// Who a session is opened for, where the client is no process of this machine that could be looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionPeer {
    /// What the client calls itself.
    pub name: String,
    /// Its process id; 0 if that is not known.
    pub pid: u32,
}

/// Tells a session what to do. It can be cloned, and does not keep the session alive.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    commands: mpsc::UnboundedSender<Command>,
}

impl SessionHandle {
    /// Ends the session by the ladder, from the closing of stdin on. The first reason stays.
    pub fn stop(&self, cause: EndCause) {
        self.tell(Command::Stop(cause));
    }

    /// Ends the session by the ladder, from SIGTERM on, as if the host had passed on this signal.
    pub fn terminate(&self, signal: i32) {
        self.tell(Command::Signal(Signal::End(signal)));
    }

    /// Puts the server to sleep unless it is busy: the next message starts it again.
    pub fn sleep(&self, why: SleepReason) {
        self.tell(Command::Sleep(why));
    }

    fn tell(&self, command: Command) {
        // A session that has ended takes no commands, and needs none.
        let _ = self.commands.send(command);
    }
}

/// Opens a session: its server is started when the future is first polled, which has to be done on a tokio runtime.
///
/// The future ends when nothing of the server's tree is left. Dropping it ends the tree as well, without waiting for that.
///
/// # Errors
/// If our own process is not to be seen; nothing is started then. The future has an error if there was nothing to run.
pub fn open<P: ClientPort>(
    spec: Arc<ServerSpec>,
    host: SessionHost,
    peer: Option<SessionPeer>,
    port: P,
) -> Result<(SessionHandle, impl Future<Output = Result<RunOutcome, RunError>>), RunError> {
    let client = peer.map(|peer| Client { pid: peer.pid, identity: None, name: peer.name });
    let facts = facts(&spec, &host, client).map_err(RunError::NoProc)?;
    let starter = ContainedStarter::new(Arc::clone(&spec), host.remove_pid_file.clone());
    let (tell, commands) = mpsc::unbounded_channel();
    let parts = SessionParts { spec, facts, host, port, starter, commands };
    let session = async move { Session::new(parts).live().await };
    Ok((SessionHandle { commands: tell }, session))
}
