//! Moves the bytes: one step at a time, whichever can be made. What they mean is the driver's business.
//!
//! Back-pressure goes both ways: nothing is read while much of what was read before waits to be written. Only the
//! server's stderr is read always: a server whose errors nobody reads would stop working.

use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use moored_containment::aio;
use tokio::io::{AsyncRead, AsyncWrite as _, ReadBuf};

use crate::relay::{Inlet, Outlet, Queue, Splitter, Width};

/// More than this is not read ahead.
const ENOUGH: usize = 256 << 10;
/// More than this of the server's errors is not kept for a client that does not read them; the log has them.
const ERRORS: usize = 256 << 10;
const READ: usize = 64 << 10;
const PIPE: usize = 64 << 10;

/// What was moved.
#[derive(Debug)]
pub(super) enum Moved {
    /// So many bytes from the client, in the scratch.
    FromClient(usize),
    /// The client will say no more.
    ClientEof,
    /// So many bytes from the server, in the scratch.
    FromServer(usize),
    /// The server will say no more.
    ServerEof,
    /// So many bytes of the server's errors, in the scratch; none is their end.
    Errors(usize),
    /// Something was written.
    Written,
    /// The client does not take what the server says any more.
    ClientDeaf,
}

/// Whose bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// Our ends of the server's files.
#[derive(Debug, Default)]
pub(super) struct ServerFiles {
    pub(super) stdin: Option<aio::Stdin>,
    pub(super) stdout: Option<aio::Stdout>,
    pub(super) stderr: Option<aio::Stderr>,
    widths: Widths,
}

impl ServerFiles {
    /// All of them are pipes, and none is used yet.
    pub(super) fn of(server: &mut aio::Contained) -> Self {
        Self {
            stdin: server.stdin.take(),
            stdout: server.stdout.take(),
            stderr: server.stderr.take(),
            widths: Widths::default(),
        }
    }
}

/// How wide the pipes of one of the two are.
#[derive(Debug, Default)]
struct Widths {
    from: Width,
    to: Width,
}

#[derive(Debug)]
pub(super) struct Pump {
    pub(super) client: Option<Inlet>,
    pub(super) output: Option<Outlet>,
    pub(super) errors: Option<Outlet>,
    pub(super) server: ServerFiles,
    pub(super) to_server: Queue,
    pub(super) to_client: Queue,
    pub(super) to_errors: Queue,
    from_client: Splitter,
    from_server: Splitter,
    /// The server's input ends when what waits for it is written.
    pub(super) closing_input: bool,
    /// Nothing is read from the client: what it says next has to wait.
    pub(super) holding: bool,
    scratch: Vec<u8>,
    client_widths: Widths,
}

impl Pump {
    pub(super) fn new(client: Inlet, output: Outlet, errors: Option<Outlet>, line_limit: usize) -> Self {
        Self { client: Some(client), output: Some(output), errors, ..Self::bare(line_limit) }
    }

    fn bare(line_limit: usize) -> Self {
        Self {
            client: None,
            output: None,
            errors: None,
            server: ServerFiles::default(),
            to_server: Queue::default(),
            to_client: Queue::default(),
            to_errors: Queue::default(),
            from_client: Splitter::new(line_limit),
            from_server: Splitter::new(line_limit),
            closing_input: false,
            holding: false,
            scratch: Vec::new(),
            client_widths: Widths::default(),
        }
    }

    /// Makes the pipes as wide as what is on its way needs them.
    pub(super) fn adjust_widths(&mut self) {
        let Self { client, output, server, client_widths, .. } = self;
        client_widths.from.adjust(client.as_ref().and_then(Inlet::fd), self.from_client.held());
        client_widths.to.adjust(output.as_ref().map(Outlet::fd), self.to_client.len());
        let ServerFiles { stdin, stdout, widths, .. } = server;
        widths.from.adjust(stdout.as_ref().map(AsFd::as_fd), self.from_server.held());
        widths.to.adjust(stdin.as_ref().map(AsFd::as_fd), self.to_server.len());
    }

    /// Moves nothing: the server has our own files.
    pub(super) fn idle() -> Self {
        Self { client: None, output: None, errors: None, ..Self::bare(0) }
    }

    pub(super) fn splitter(&mut self, side: Side) -> &mut Splitter {
        match side {
            Side::Client => &mut self.from_client,
            Side::Server => &mut self.from_server,
        }
    }

    /// What the last step read.
    pub(super) fn take_scratch(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.scratch)
    }

    pub(super) fn give_scratch(&mut self, scratch: Vec<u8>) {
        self.scratch = scratch;
    }

    /// Memory that a sleeping server does not need.
    pub(super) fn shrink(&mut self) {
        self.scratch = Vec::new();
    }

    /// One step, if one can be made at once.
    pub(super) fn step_now(&mut self) -> Option<Moved> {
        if self.scratch.is_empty() {
            self.scratch = vec![0; READ];
        }
        match self.poll_step(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(moved) => Some(moved),
            Poll::Pending => None,
        }
    }

    /// The client is not read: what it said before waits to be written.
    pub(super) fn is_held_up(&self) -> bool {
        self.client.is_some() && !self.reads_client()
    }

    fn reads_client(&self) -> bool {
        !self.holding && self.to_server.len() < ENOUGH && self.to_client.len() < 4 * ENOUGH
    }

    /// One step, whichever can be made. Cancel safe.
    pub(super) async fn step(&mut self) -> Moved {
        if self.scratch.is_empty() {
            self.scratch = vec![0; READ];
        }
        poll_fn(|cx| self.poll_step(cx)).await
    }

    /// What waits is written before more is read; and the server is heard first, which frees what waits for it.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Moved> {
        if let Poll::Ready(moved) = self.poll_writes(cx) {
            return Poll::Ready(moved);
        }
        self.poll_reads(cx)
    }

    fn poll_writes(&mut self, cx: &mut Context<'_>) -> Poll<Moved> {
        if let Some(stdin) = self.server.stdin.as_mut().filter(|_| !self.to_server.is_empty())
            && let Poll::Ready(wrote) = Pin::new(stdin).poll_write(cx, self.to_server.first())
        {
            return Poll::Ready(self.wrote_to_server(wrote));
        }
        if let Some(output) = self.output.as_mut().filter(|_| !self.to_client.is_empty())
            && let Poll::Ready(wrote) = output.poll_write(cx, self.to_client.first())
        {
            return Poll::Ready(self.wrote_to_client(wrote));
        }
        if let Some(errors) = self.errors.as_mut().filter(|_| !self.to_errors.is_empty())
            && let Poll::Ready(wrote) = errors.poll_write(cx, self.to_errors.first())
        {
            return Poll::Ready(self.wrote_errors(wrote));
        }
        Poll::Pending
    }

    fn poll_reads(&mut self, cx: &mut Context<'_>) -> Poll<Moved> {
        if self.to_client.len() < ENOUGH
            && let Some(stdout) = self.server.stdout.as_mut()
            && let Poll::Ready(read) = poll_read(stdout, cx, &mut self.scratch)
        {
            return Poll::Ready(match read {
                1.. => Moved::FromServer(read),
                0 => {
                    self.server.stdout = None;
                    Moved::ServerEof
                }
            });
        }
        if let Some(stderr) = self.server.stderr.as_mut()
            && let Poll::Ready(read) = poll_read(stderr, cx, &mut self.scratch)
        {
            if read == 0 {
                self.server.stderr = None;
            }
            return Poll::Ready(Moved::Errors(read));
        }
        if self.reads_client()
            && let Some(client) = self.client.as_mut()
            && let Poll::Ready(read) = client.poll_read(cx, &mut self.scratch)
        {
            return Poll::Ready(match read {
                Ok(n) if n > 0 => Moved::FromClient(n),
                // An error is an end, too.
                _ => {
                    self.client = None;
                    Moved::ClientEof
                }
            });
        }
        Poll::Pending
    }

    /// What the server had written before it ended, as far as it is there: whoever is kept may hold the pipes open.
    pub(super) fn drain_server(&mut self) -> Drained {
        let mut drained = Drained::default();
        if let Some(stdout) = &self.server.stdout {
            read_what_is_there(stdout, &mut drained.output);
        }
        if let Some(stderr) = &self.server.stderr {
            read_what_is_there(stderr, &mut drained.errors);
        }
        drained
    }

    fn wrote_to_server(&mut self, wrote: io::Result<usize>) -> Moved {
        match wrote {
            Ok(n) => self.to_server.advance(n),
            // The server reads no more; its exit is told by itself.
            Err(_) => {
                self.to_server.clear();
                self.server.stdin = None;
            }
        }
        self.close_input_if_done();
        Moved::Written
    }

    /// To be called when the input is to be closed, too.
    pub(super) fn close_input_if_done(&mut self) {
        if self.closing_input && self.to_server.is_empty() {
            self.server.stdin = None;
        }
    }

    fn wrote_to_client(&mut self, wrote: io::Result<usize>) -> Moved {
        match wrote {
            Ok(n) => {
                self.to_client.advance(n);
                Moved::Written
            }
            Err(_) => {
                self.to_client.clear();
                self.output = None;
                Moved::ClientDeaf
            }
        }
    }

    fn wrote_errors(&mut self, wrote: io::Result<usize>) -> Moved {
        match wrote {
            Ok(n) => self.to_errors.advance(n),
            Err(_) => {
                self.to_errors.clear();
                self.errors = None;
            }
        }
        Moved::Written
    }

    /// Errors for the client, unless it has left too many unread.
    pub(super) fn push_errors(&mut self, bytes: &[u8]) {
        if self.errors.is_some() && self.to_errors.len() + bytes.len() <= ERRORS {
            self.to_errors.push(bytes);
        }
    }

    /// A line of our own. The server may have left half of one, which must not become the beginning of ours.
    pub(super) fn push_line(&mut self, line: &[u8]) {
        if !line.is_empty() {
            self.end_line();
            self.push_output(line);
        }
    }

    /// Whatever comes next for the client begins a line.
    pub(super) fn end_line(&mut self) {
        if self.to_client.is_mid_line() {
            self.push_output(b"\n");
        }
    }

    /// What the client was to read goes nowhere if it does not read.
    pub(super) fn push_output(&mut self, bytes: &[u8]) {
        if self.output.is_some() {
            self.to_client.push(bytes);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Drained {
    pub(super) output: Vec<u8>,
    pub(super) errors: Vec<u8>,
}

/// The file does not block, so what is not there is an error.
fn read_what_is_there(from: &impl AsFd, into: &mut Vec<u8>) {
    let mut space = vec![0; READ];
    // No more than a pipe can hold: whoever is kept may go on writing.
    while into.len() < PIPE
        && let Ok(read) = rustix::io::read(from, &mut space)
        && read > 0
    {
        into.extend_from_slice(&space[..read]);
    }
}

/// So many bytes; none is the end, and an error is one too.
fn poll_read(from: &mut (impl AsyncRead + Unpin), cx: &mut Context<'_>, into: &mut [u8]) -> Poll<usize> {
    let mut space = ReadBuf::new(into);
    match Pin::new(from).poll_read(cx, &mut space) {
        Poll::Ready(Ok(())) => Poll::Ready(space.filled().len()),
        Poll::Ready(Err(_)) => Poll::Ready(0),
        Poll::Pending => Poll::Pending,
    }
}
