//! Moves the bytes between the client's port and the server's pipes: one step at a time, whichever can be made. What a message
//! means is the conversation's business.
//!
//! Back-pressure goes both ways: nothing is read while much of what was read before waits to be written. Only the server's
//! stderr is read always: a server whose stderr is not read would stop working.

use std::io;
use std::task::{Context, Poll, ready};

use tokio::time::Instant;

use super::conversation::{Conversation, Effects, FollowUps};
use super::pid_file::PidFile;
use super::port::{ClientPort, Flushed, Received};
use super::server::{RunningServer, ServerOutput};
use crate::event::Counters;
use crate::relay::{Piece, Queue, Splitter};
use moored_registry::boot_time::since_boot;

/// More than this is not read ahead.
const READ_AHEAD: usize = 256 << 10;
/// More than this is not kept for a server that is still to come: what the client says next waits in its own pipe.
const MOST_PENDING: usize = 1 << 20;
const SCRATCH: usize = 64 << 10;
/// Enough to read the message that wakes a server.
const SLEEPING_SCRATCH: usize = 4 << 10;

/// One step that was made.
#[derive(Debug)]
pub(super) enum IoStep {
    Client(Received),
    /// The client reads no more.
    ClientDeaf,
    /// The server wrote this many bytes to stdout.
    Stdout(usize),
    /// The server has closed stdout.
    StdoutClosed,
    /// Bytes read from the server's stderr, which are in the scratch; 0 means EOF.
    Stderr(usize),
    /// The server reads its stdin no more.
    StdinClosed,
    Written,
}

impl IoStep {
    /// Much more may be on its way.
    pub(super) fn is_much(&self) -> bool {
        match self {
            Self::Client(Received::Bytes(read)) | Self::Stdout(read) | Self::Stderr(read) => {
                *read >= SCRATCH / 2
            }
            Self::Client(_) | Self::ClientDeaf | Self::StdoutClosed | Self::StdinClosed | Self::Written => {
                false
            }
        }
    }
}

/// Who is read next: each in its turn, so that a flood from one does not keep the others from being heard.
#[derive(Clone, Copy, Debug, Default)]
enum Source {
    #[default]
    Stdout,
    Stderr,
    Client,
}

impl Source {
    const ALL: usize = 3;

    fn next(self) -> Self {
        match self {
            Self::Stdout => Self::Stderr,
            Self::Stderr => Self::Client,
            Self::Client => Self::Stdout,
        }
    }
}

/// Whether the server's stdin stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerInput {
    Open,
    /// It is closed when what waits for it is written.
    Closing,
}

/// The server that runs now.
#[derive(Debug)]
pub(super) struct LiveServer<S> {
    pub(super) running: S,
    pub(super) since: Instant,
    pub(super) pid_file: Option<PidFile>,
    /// It lives, and has closed its stdin or stdout.
    pub(super) is_half_closed: bool,
    /// It was seen to be dead before its guardians told so.
    pub(super) is_found_dead: bool,
    queue: Queue,
    splitter: Splitter,
    input: ServerInput,
}

impl<S: RunningServer> LiveServer<S> {
    pub(super) fn new(running: S, pid_file: Option<PidFile>, line_limit: usize) -> Self {
        Self {
            running,
            since: Instant::now(),
            pid_file,
            is_half_closed: false,
            is_found_dead: false,
            queue: Queue::default(),
            splitter: Splitter::new(line_limit),
            input: ServerInput::Open,
        }
    }

    /// Bytes of the client's that the server has not read.
    pub(super) fn unread(&self) -> usize {
        self.queue.len() + self.running.unread_input()
    }

    pub(super) fn close_input(&mut self) {
        self.input = ServerInput::Closing;
        self.close_input_if_written();
    }

    fn reads_no_more(&mut self) -> IoStep {
        self.queue.clear();
        self.running.close_stdin();
        IoStep::StdinClosed
    }

    fn close_input_if_written(&mut self) {
        if self.input == ServerInput::Closing && self.queue.is_empty() {
            self.running.close_stdin();
        }
    }
}

#[derive(Debug)]
pub(super) struct Pump<P, S> {
    pub(super) port: P,
    pub(super) server: Option<LiveServer<S>>,
    pub(super) counters: Counters,
    pub(super) last_activity: Option<Instant>,
    /// The client's end is closed, or the client gone: it is not read any more.
    is_client_over: bool,
    scratch: Vec<u8>,
    turn: Source,
}

impl<P: ClientPort, S: RunningServer> Pump<P, S> {
    pub(super) fn new(port: P) -> Self {
        Self {
            port,
            server: None,
            counters: Counters::default(),
            last_activity: None,
            is_client_over: false,
            scratch: Vec::new(),
            turn: Source::default(),
        }
    }

    pub(super) fn is_client_over(&self) -> bool {
        self.is_client_over
    }

    pub(super) fn end_client(&mut self) {
        self.is_client_over = true;
    }

    /// Memory that a sleeping server does not need.
    pub(super) fn shrink(&mut self) {
        self.scratch = Vec::new();
    }

    /// Bytes of the server's stderr, as the last step read them.
    pub(super) fn stderr_bytes(&self, read: usize) -> &[u8] {
        &self.scratch[..read]
    }

    /// One step, whichever can be made. What waits is written before more is read; and the server is read first, which frees
    /// what waits for it.
    pub(super) fn poll_step(
        &mut self,
        cx: &mut Context<'_>,
        conversation: &mut Conversation,
        next: &mut FollowUps,
    ) -> Poll<IoStep> {
        let wanted = if self.server.is_some() { SCRATCH } else { SLEEPING_SCRATCH };
        if self.scratch.len() < wanted {
            self.scratch = vec![0; wanted];
        }
        if let Poll::Ready(step) = self.poll_writes(cx) {
            return Poll::Ready(step);
        }
        for _ in 0..Source::ALL {
            let source = self.turn;
            self.turn = source.next();
            let step = match source {
                Source::Stdout => self.poll_stdout(cx, conversation, next),
                Source::Stderr => self.poll_stderr(cx),
                Source::Client => self.poll_client(cx, conversation, next).map(IoStep::Client),
            };
            if step.is_ready() {
                return step;
            }
        }
        Poll::Pending
    }

    fn poll_writes(&mut self, cx: &mut Context<'_>) -> Poll<IoStep> {
        if let Some(server) = self.server.as_mut().filter(|server| !server.queue.is_empty())
            && server.running.has_stdin()
            && let Poll::Ready(wrote) = server.running.poll_write(cx, server.queue.first())
        {
            return Poll::Ready(wrote_to(server, wrote));
        }
        match self.port.poll_flush(cx) {
            Poll::Ready(Flushed::Some) => Poll::Ready(IoStep::Written),
            Poll::Ready(Flushed::Deaf) => Poll::Ready(IoStep::ClientDeaf),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_stdout(
        &mut self,
        cx: &mut Context<'_>,
        conversation: &mut Conversation,
        next: &mut FollowUps,
    ) -> Poll<IoStep> {
        let has_room = self.port.backlog() < READ_AHEAD;
        let Some(server) = self.server.as_mut() else { return Poll::Pending };
        if server.running.poll_stdin_closed(cx).is_ready() {
            return Poll::Ready(server.reads_no_more());
        }
        if !has_room {
            return Poll::Pending;
        }
        let read = ready!(server.running.poll_read(cx, ServerOutput::Stdout, &mut self.scratch));
        if read == 0 {
            return Poll::Ready(IoStep::StdoutClosed);
        }
        let scratch = std::mem::take(&mut self.scratch);
        self.server_bytes(&scratch[..read], conversation, next);
        self.scratch = scratch;
        Poll::Ready(IoStep::Stdout(read))
    }

    fn poll_stderr(&mut self, cx: &mut Context<'_>) -> Poll<IoStep> {
        let Some(server) = self.server.as_mut() else { return Poll::Pending };
        server.running.poll_read(cx, ServerOutput::Stderr, &mut self.scratch).map(IoStep::Stderr)
    }

    /// The client is not read while what it said before waits to be written, or it does not read what it is sent.
    fn is_backpressured(&self, conversation: &Conversation) -> bool {
        conversation.pending_bytes() > MOST_PENDING
            || self.server.as_ref().is_some_and(|server| server.queue.len() >= READ_AHEAD)
            || self.port.backlog() >= 4 * READ_AHEAD
    }

    fn poll_client(
        &mut self,
        cx: &mut Context<'_>,
        conversation: &mut Conversation,
        next: &mut FollowUps,
    ) -> Poll<Received> {
        if self.is_client_over {
            return self.port.poll_after_eof(cx);
        }
        if self.is_backpressured(conversation) {
            return self.port.poll_hangup(cx);
        }
        let Self { port, server, scratch, counters, last_activity, .. } = self;
        let mut replies = Vec::new();
        let received = port.poll_receive(cx, scratch, &mut |piece| {
            *last_activity = Some(Instant::now());
            counters.messages_to_server += u64::from(matches!(piece, Piece::Message(..)));
            let effects = conversation.hear_client(piece);
            if let Some(server) = server {
                effects.to_server.into_iter().for_each(|bytes| server.queue.push_bytes(bytes));
            }
            replies.extend(effects.to_client.into_iter().map(|message| message.into_owned()));
            next.merge(effects.next);
        });
        replies.into_iter().for_each(|message| port.send(message));
        if let Poll::Ready(Received::Bytes(read)) = received {
            counters.bytes_to_server += read as u64;
        }
        received
    }

    fn server_bytes(&mut self, bytes: &[u8], conversation: &mut Conversation, next: &mut FollowUps) {
        self.counters.bytes_to_client += bytes.len() as u64;
        self.split(conversation, next, |splitter, out| splitter.feed(bytes, out));
    }

    /// Has the server's splitter make pieces, and carries out what follows from each.
    fn split(
        &mut self,
        conversation: &mut Conversation,
        next: &mut FollowUps,
        work: impl FnOnce(&mut Splitter, &mut dyn FnMut(Piece<'_>)),
    ) {
        let Self { port, server, counters, last_activity, .. } = self;
        let Some(LiveServer { splitter, queue, .. }) = server else { return };
        work(splitter, &mut |piece| {
            *last_activity = Some(Instant::now());
            counters.messages_to_client += u64::from(matches!(piece, Piece::Message(..)));
            let effects = conversation.hear_server(piece, since_boot());
            effects.to_server.into_iter().for_each(|bytes| queue.push_bytes(bytes));
            effects.to_client.into_iter().for_each(|message| port.send(message));
            next.merge(effects.next);
        });
    }

    /// Carries out what follows from something other than a message.
    pub(super) fn apply(&mut self, effects: Effects<'_>, next: &mut FollowUps) {
        if let Some(server) = &mut self.server {
            effects.to_server.into_iter().for_each(|bytes| server.queue.push_bytes(bytes));
        }
        effects.to_client.into_iter().for_each(|message| self.port.send(message));
        next.merge(effects.next);
    }

    /// Passes on what is left in the pipes of a server that has ended, and returns its stderr.
    pub(super) fn drain(&mut self, conversation: &mut Conversation, next: &mut FollowUps) -> Vec<u8> {
        let Some(server) = &mut self.server else { return Vec::new() };
        let drained = server.running.drain();
        self.server_bytes(&drained.stdout, conversation, next);
        if self.server.as_ref().is_some_and(|server| server.splitter.holds_message()) {
            self.finish_output(conversation, next);
        }
        drained.stderr
    }

    /// The server says no more: half a message is passed on as it is.
    pub(super) fn finish_output(&mut self, conversation: &mut Conversation, next: &mut FollowUps) {
        self.split(conversation, next, |splitter, out| splitter.finish(out));
    }

    /// Makes the pipes as wide as what is on its way needs them.
    pub(super) fn adjust_widths(&mut self) {
        if let Some(LiveServer { running, splitter, queue, .. }) = &mut self.server {
            running.adjust_widths(splitter.partial_len(), queue.len());
        }
    }
}

fn wrote_to<S: RunningServer>(server: &mut LiveServer<S>, wrote: io::Result<usize>) -> IoStep {
    match wrote {
        Ok(n) => {
            server.queue.advance(n);
            server.close_input_if_written();
            IoStep::Written
        }
        Err(_) => server.reads_no_more(),
    }
}
