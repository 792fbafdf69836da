//! The server's side of a session: a process tree that is held by containment, or a script in a test.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use moored_containment::{EndReport, Ladder, ProcessIdentity, ServerExit, StartError};

use crate::event::{StartReason, Started};

/// What became of a server.
#[derive(Debug)]
pub(super) enum ServerEvent {
    /// The server itself has ended. None if that was not seen.
    Exited(Option<ServerExit>),
    /// Nothing of its tree is left: the last event. An error if how that went is not known.
    Gone(Result<EndReport, String>),
}

/// One of the server's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerOutput {
    Stdout,
    Stderr,
}

/// Whether a server lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vital {
    Alive,
    /// It has begun to exit: its files are closed before it is dead.
    Exiting,
    Dead,
}

/// What a server had written before it ended.
#[derive(Debug, Default)]
pub(super) struct Drained {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// A server that runs. Dropping it ends its tree.
pub(super) trait RunningServer {
    /// What is told of its start.
    fn started(&self) -> &Started;

    /// Its guardians, outer and inner.
    fn guardians(&self) -> &[ProcessIdentity];

    /// Waits for what becomes of it. Cancel safe.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<ServerEvent>;

    /// Ends it by this ladder. A second one can take the first one further, never back.
    fn end(&self, ladder: Ladder);

    /// Sends a signal to its process group.
    fn signal_group(&self, signal: i32);

    /// Writes to its stdin.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Closes its stdin.
    fn close_stdin(&mut self);

    /// Whether its stdin is open for us to write to.
    fn has_stdin(&self) -> bool;

    /// Bytes in its stdin that it has not read.
    fn unread_input(&self) -> usize;

    /// Ready once when it has closed its end of stdin.
    fn poll_stdin_closed(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Whether its stdout is open for us to read from.
    fn has_stdout(&self) -> bool;

    /// Whether the server itself lives: it is looked at.
    fn vital(&self) -> Vital;

    /// Bytes read; 0 means EOF, which is told once.
    fn poll_read(&mut self, cx: &mut Context<'_>, from: ServerOutput, into: &mut [u8]) -> Poll<usize>;

    /// What is still in its pipes when it has ended. A kept process may hold them open, so that EOF never comes.
    fn drain(&mut self) -> Drained;

    /// `incoming` bytes of a message have come and are not whole, `outgoing` bytes wait to be written: pipes are made wide
    /// while much goes through them.
    fn adjust_widths(&mut self, incoming: usize, outgoing: usize);
}

/// A start that is under way.
pub(super) type StartFuture<S> = Pin<Box<dyn Future<Output = Result<S, StartError>> + Send>>;

/// Starts servers.
pub(super) trait StartServer {
    type Server: RunningServer;

    /// Begins to start the session's server. The record of the session exists before its process does.
    fn start(&mut self, why: StartReason) -> StartFuture<Self::Server>;
}
