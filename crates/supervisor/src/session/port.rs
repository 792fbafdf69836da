//! The client's side of a session, whatever it is: our own stdio for `run`, HTTP requests for a gateway, a test.
//!
//! A port hands over messages as they come and queues what it is given; it never blocks. It decides nothing: how long a client
//! is waited for, and what is done when it is gone, is decided by `life`. Everything is polled from the session's one task, so a
//! port needs no lock.

use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use super::conversation::ToClient;
use crate::relay::Piece;

/// What a client did, besides what it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It said something: this many bytes.
    Bytes(usize),
    /// It will say no more, and may still read. `at` is when that was noticed.
    Eof {
        /// Who closed it.
        kind: EofKind,
        /// When.
        at: Instant,
    },
    /// Its end is closed, but what it said last has not been read yet.
    HungUp {
        /// Who closed it.
        kind: EofKind,
        /// When.
        at: Instant,
    },
    /// Its end was closed by a client after all, at that time.
    Bound(Instant),
    /// It is dead.
    Gone,
}

/// Who has closed the client's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EofKind {
    /// A client that is bound to see us gone by the bound of the ladder.
    Client,
    /// A writer that has left, as in a shell's pipeline: only the answers are waited for.
    Pipeline,
}

/// What became of what was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// Some of it was written.
    Some,
    /// The client reads no more.
    Deaf,
}

/// The client's side of a session.
pub trait ClientPort {
    /// Hands over what has come, piece by piece, in order. `scratch` is memory to read into. Not polled while the session is
    /// backpressured: then [`ClientPort::poll_hangup`] is.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        hand_over: &mut dyn FnMut(Piece<'_>),
    ) -> Poll<Received>;

    /// Ready once when the client's end is closed ([`Received::HungUp`]), and once when the client is dead, though not all that it
    /// said has been read.
    fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<Received>;

    /// The client will say no more. Ready once when it is dead, and once when its end turns out to have been closed by a client
    /// that is bound to see us gone ([`Received::Bound`]).
    fn poll_after_eof(&mut self, cx: &mut Context<'_>) -> Poll<Received>;

    /// Queues a message for the client.
    fn send(&mut self, message: ToClient<'_>);

    /// Queues what a server wrote to stderr, or a line of our own. May be dropped where the client does not read it.
    fn send_stderr(&mut self, bytes: &[u8]);

    /// Whatever comes next for the client begins a line. For ports that send bytes, not messages.
    fn end_line(&mut self) {}

    /// Writes some of what is queued. Pending if nothing is.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Flushed>;

    /// Bytes that wait to be read by the client. Much of it keeps the session from reading the server: a port that shrinks it
    /// elsewhere than in [`ClientPort::poll_flush`] wakes the task.
    fn backlog(&self) -> usize;

    /// Whether messages pass through it. If not, the server has the client's own pipes, and the port only watches them.
    fn relays(&self) -> bool {
        true
    }

    /// Whether a program may be at the other end, rather than a terminal or a file.
    fn has_client(&self) -> bool {
        true
    }

    /// Whether the client can still read what it is sent.
    fn can_read(&self) -> bool;

    /// The server says no more, and lives: the client sees EOF as it would without us.
    fn close_output(&mut self) {}

    /// The server reads no more, and lives: the client's writes fail as they would without us. That the client has left is
    /// noticed by its reading no more, from then on.
    fn close_input(&mut self) {}

    /// Nothing more will be sent. Waits until what is queued is written, as long as the client takes any of it within
    /// `patience`.
    fn finish(&mut self, patience: Duration) -> impl Future<Output = ()>;
}
