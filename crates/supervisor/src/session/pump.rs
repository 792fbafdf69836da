//! Moves the bytes: one step at a time, whichever can be made. What they mean is the driver's business.
//!
//! Back-pressure goes both ways: nothing is read while much of what was read before waits to be written. Only the
//! server's stderr is read always: a server whose errors nobody reads would stop working.

use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::AsyncWrite as _;

use super::server_files::{ServerFiles, Widths, poll_read};
use crate::relay::{Inlet, Outlet, Queue, Splitter};

/// More than this is not read ahead.
const ENOUGH: usize = 256 << 10;
/// More than this of the server's errors is not kept for a client that does not read them; the log has them.
const ERRORS: usize = 256 << 10;
const READ: usize = 64 << 10;

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
    /// The server will read no more.
    ServerDeaf,
    /// Something was written.
    Written,
    /// The client does not take what the server says any more.
    ClientDeaf,
}

impl Moved {
    /// Much more may be on its way.
    pub(super) fn is_much(&self) -> bool {
        match self {
            Self::FromClient(read) | Self::FromServer(read) | Self::Errors(read) => *read >= READ / 2,
            Self::ClientEof | Self::ServerEof | Self::ServerDeaf | Self::Written | Self::ClientDeaf => false,
        }
    }
}

/// Whose bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// Where bytes come from.
#[derive(Clone, Copy, Debug, Default)]
enum Source {
    #[default]
    Output,
    Errors,
    Client,
}

impl Source {
    const ALL: usize = 3;

    fn next(self) -> Self {
        match self {
            Self::Output => Self::Errors,
            Self::Errors => Self::Client,
            Self::Client => Self::Output,
        }
    }
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
    /// Our output ends when what waits for the client is written.
    closing_output: bool,
    /// Nothing is read from the client: what it says next has to wait.
    pub(super) holding: bool,
    scratch: Vec<u8>,
    /// Who is read next.
    turn: Source,
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
            closing_output: false,
            holding: false,
            scratch: Vec::new(),
            turn: Source::default(),
            client_widths: Widths::default(),
        }
    }

    /// Makes the pipes as wide as what is on its way needs them.
    pub(super) fn adjust_widths(&mut self) {
        let Widths { from, to } = &mut self.client_widths;
        from.adjust(self.client.as_ref().and_then(Inlet::fd), self.from_client.held());
        to.adjust(self.output.as_ref().map(Outlet::fd), self.to_client.len());
        self.server.adjust_widths(self.from_server.held(), self.to_server.len());
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

    /// What the client has said, if it has.
    pub(super) fn hear_client_now(&mut self) -> Option<Moved> {
        if self.scratch.is_empty() {
            self.scratch = vec![0; READ];
        }
        match self.poll_client(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(moved) => Some(moved),
            Poll::Pending => None,
        }
    }

    /// Whether the server has not read all that is meant for it: it waits with us, or in the server's stdin.
    pub(super) fn has_unread(&self) -> bool {
        !self.to_server.is_empty() || self.server.has_unread_input()
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
        if self.server.poll_stdin_closed(cx).is_ready() {
            return Poll::Ready(self.server_reads_no_more());
        }
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

    /// Each in its turn: a flood from one must not keep the others from being heard.
    fn poll_reads(&mut self, cx: &mut Context<'_>) -> Poll<Moved> {
        for _ in 0..Source::ALL {
            let source = self.turn;
            self.turn = source.next();
            if let Poll::Ready(moved) = self.poll_source(source, cx) {
                return Poll::Ready(moved);
            }
        }
        Poll::Pending
    }

    fn poll_source(&mut self, source: Source, cx: &mut Context<'_>) -> Poll<Moved> {
        match source {
            Source::Output => self.poll_output(cx),
            Source::Errors => self.poll_errors(cx),
            Source::Client => self.poll_client(cx),
        }
    }

    fn poll_output(&mut self, cx: &mut Context<'_>) -> Poll<Moved> {
        let Some(stdout) = self.server.stdout.as_mut().filter(|_| self.to_client.len() < ENOUGH) else {
            return Poll::Pending;
        };
        Poll::Ready(match ready!(poll_read(stdout, cx, &mut self.scratch)) {
            0 => {
                self.server.stdout = None;
                Moved::ServerEof
            }
            read => Moved::FromServer(read),
        })
    }

    fn poll_errors(&mut self, cx: &mut Context<'_>) -> Poll<Moved> {
        let Some(stderr) = self.server.stderr.as_mut() else { return Poll::Pending };
        let read = ready!(poll_read(stderr, cx, &mut self.scratch));
        if read == 0 {
            self.server.stderr = None;
        }
        Poll::Ready(Moved::Errors(read))
    }

    fn poll_client(&mut self, cx: &mut Context<'_>) -> Poll<Moved> {
        let is_read = self.reads_client();
        let Some(client) = self.client.as_mut().filter(|_| is_read) else { return Poll::Pending };
        Poll::Ready(match ready!(client.poll_read(cx, &mut self.scratch)) {
            Ok(read) if read > 0 => Moved::FromClient(read),
            // An error is an end, too.
            _ => {
                self.client = None;
                Moved::ClientEof
            }
        })
    }

    fn wrote_to_server(&mut self, wrote: io::Result<usize>) -> Moved {
        match wrote {
            Ok(n) => self.to_server.advance(n),
            Err(_) => return self.server_reads_no_more(),
        }
        self.close_input_if_done();
        Moved::Written
    }

    fn server_reads_no_more(&mut self) -> Moved {
        self.to_server.clear();
        self.server.close_stdin();
        Moved::ServerDeaf
    }

    /// To be called when the input is to be closed, too.
    pub(super) fn close_input_if_done(&mut self) {
        if self.closing_input && self.to_server.is_empty() {
            self.server.close_stdin();
        }
    }

    /// The client is to see the end of our stdout, when it has read what waits for it.
    pub(super) fn close_output(&mut self) {
        self.closing_output = true;
        self.close_output_if_done();
    }

    fn close_output_if_done(&mut self) {
        if self.closing_output && self.to_client.is_empty() && self.output.take().is_some() {
            // Our own first opening of it, which is not to be left without a file.
            let _ =
                File::options().write(true).open("/dev/null").map(|null| rustix::stdio::dup2_stdout(&null));
        }
    }

    /// The client is to see that nobody reads our stdin any more.
    pub(super) fn close_client(&mut self) {
        self.client = None;
        let _ = File::open("/dev/null").map(|null| rustix::stdio::dup2_stdin(&null));
    }

    fn wrote_to_client(&mut self, wrote: io::Result<usize>) -> Moved {
        match wrote {
            Ok(n) => {
                self.to_client.advance(n);
                self.close_output_if_done();
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
