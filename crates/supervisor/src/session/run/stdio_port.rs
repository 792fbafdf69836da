//! Our own stdin and stdout as the client's port.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use rustix::stdio::{dup2_stdin, dup2_stdout};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::client_watch::ClientWatch;
use super::hangup::Hangup;
use super::stderr::StderrQueue;
use crate::ignored::ignore;
use crate::relay::{Piece, Queue, Splitter, StdioReader, StdioWriter, Width, watch};
use crate::session::conversation::{Author, ToClient};
use crate::session::outcome::RunError;
use crate::session::port::{ClientPort, Flushed, Received};

/// How many reads of what a dead client had said are made at most.
const LAST_READS: usize = 256;

#[derive(Debug)]
pub(super) struct StdioPort {
    stdin: Option<StdioReader>,
    stdout: Option<StdioWriter>,
    stderr: StderrQueue,
    splitter: Splitter,
    to_client: Queue,
    client: ClientWatch,
    /// Our stdout is closed when what is queued is written.
    is_output_over: bool,
    /// Our stdout, watched for having no reader, where our stdin cannot tell any more that the client has left.
    unread_stdout: Option<AsyncFd<OwnedFd>>,
    /// The client closed our stdin while we did not read it.
    hangup: Option<Hangup>,
    stdin_width: Width,
    stdout_width: Width,
}

impl StdioPort {
    pub(super) fn open(client: ClientWatch, line_limit: usize) -> Result<Self, RunError> {
        let failed = |what| move |source| RunError::Stdio { what, source };
        Ok(Self {
            stdin: Some(StdioReader::open(io::stdin().as_fd()).map_err(failed("stdin"))?),
            stdout: Some(StdioWriter::open(io::stdout().as_fd()).map_err(failed("stdout"))?),
            stderr: StderrQueue::open(),
            splitter: Splitter::new(line_limit),
            to_client: Queue::default(),
            client,
            is_output_over: false,
            unread_stdout: None,
            hangup: None,
            stdin_width: Width::default(),
            stdout_width: Width::default(),
        })
    }

    fn poll_stdin(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        hand_over: &mut dyn FnMut(Piece<'_>),
    ) -> Poll<Received> {
        let Some(stdin) = self.stdin.as_mut() else {
            return self.poll_no_reader(cx);
        };
        Poll::Ready(match ready!(stdin.poll_read(cx, scratch)) {
            Ok(read) if read > 0 => {
                self.splitter.feed(&scratch[..read], hand_over);
                let fd = self.stdin.as_ref().and_then(StdioReader::fd);
                self.stdin_width.adjust(fd, self.splitter.partial_len());
                Received::Bytes(read)
            }
            // An error is EOF too.
            _ => {
                self.stdin = None;
                self.splitter.finish(hand_over);
                self.client.eof()
            }
        })
    }

    /// A file that is written to, watched for reading, has nothing to tell but that it has no reader.
    fn poll_no_reader(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        let Some(watched) = &self.unread_stdout else { return Poll::Pending };
        let seen = ready!(watched.poll_write_ready(cx)).map(drop);
        self.unread_stdout = None;
        if seen.is_ok() { Poll::Ready(Received::Gone) } else { Poll::Pending }
    }

    fn close_output_if_written(&mut self) {
        if self.is_output_over && self.to_client.is_empty() && self.stdout.take().is_some() {
            // The number is not left free: the next file that is opened would take it.
            // Without it the client sees the end of our stdout with our own.
            let null = File::options().write(true).open("/dev/null");
            ignore("close our own stdout", null.and_then(|null| Ok(dup2_stdout(&null)?)));
        }
    }

    fn push_output(&mut self, message: ToClient<'_>) {
        if message.author == Author::Moored {
            self.end_line();
        }
        self.to_client.push_bytes(message.bytes);
    }

    fn poll_stdout(&mut self, cx: &mut Context<'_>) -> Poll<Flushed> {
        let Some(stdout) = self.stdout.as_mut().filter(|_| !self.to_client.is_empty()) else {
            return Poll::Pending;
        };
        let flushed = match ready!(stdout.poll_write(cx, self.to_client.first())) {
            Ok(n) => {
                self.to_client.advance(n);
                Flushed::Some
            }
            Err(_) => {
                self.to_client.clear();
                self.stdout = None;
                Flushed::Deaf
            }
        };
        self.stdout_width.adjust(self.stdout.as_ref().map(StdioWriter::fd), self.to_client.len());
        self.close_output_if_written();
        Poll::Ready(flushed)
    }
}

impl ClientPort for StdioPort {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        hand_over: &mut dyn FnMut(Piece<'_>),
    ) -> Poll<Received> {
        if self.client.poll_gone(cx).is_ready() {
            // What it said before it died counts as said.
            let cx = &mut Context::from_waker(Waker::noop());
            for _ in 0..LAST_READS {
                if !matches!(self.poll_stdin(cx, scratch, hand_over), Poll::Ready(Received::Bytes(_))) {
                    break;
                }
            }
            return Poll::Ready(Received::Gone);
        }
        self.poll_stdin(cx, scratch, hand_over)
    }

    fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        if self.client.poll_gone(cx).is_ready() {
            return Poll::Ready(Received::Gone);
        }
        if self.hangup.is_none() {
            // Where it cannot be watched now it is tried again at the next step.
            self.hangup = Hangup::of(io::stdin().as_fd()).ok();
        }
        let Some(hangup) = &mut self.hangup else { return Poll::Pending };
        ready!(hangup.poll(cx));
        Poll::Ready(match self.client.eof() {
            Received::Eof { kind, at } => Received::HungUp { kind, at },
            other => other,
        })
    }

    fn poll_after_eof(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        self.client.poll_after_eof(cx)
    }

    fn send(&mut self, message: ToClient<'_>) {
        // A client that reads no more goes without.
        if self.stdout.is_some() {
            self.push_output(message);
        }
    }

    fn send_stderr(&mut self, bytes: &[u8]) {
        self.stderr.push(bytes);
    }

    fn end_line(&mut self) {
        if self.stdout.is_some() && self.to_client.is_mid_line() {
            self.to_client.push(b"\n");
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Flushed> {
        match self.poll_stdout(cx) {
            Poll::Pending => self.stderr.poll_flush(cx).map(|()| Flushed::Some),
            flushed => flushed,
        }
    }

    fn backlog(&self) -> usize {
        self.to_client.len()
    }

    fn relays(&self) -> bool {
        true
    }

    fn has_client(&self) -> bool {
        self.client.has_client()
    }

    fn can_read(&self) -> bool {
        self.stdout.as_ref().is_some_and(|stdout| !stdout.is_deaf())
    }

    fn close_output(&mut self) {
        self.is_output_over = true;
        self.close_output_if_written();
    }

    fn close_input(&mut self) {
        // Only where we can still notice that the client has left.
        let stdout = io::stdout().as_fd().try_clone_to_owned();
        if let Ok(watched) = stdout.and_then(|stdout| watch(stdout, Interest::READABLE)) {
            self.unread_stdout = Some(watched);
            (self.hangup, self.stdin) = (None, None);
            // Without it the client's writes fail with our own end.
            ignore("close our own stdin", File::open("/dev/null").and_then(|null| Ok(dup2_stdin(&null)?)));
        }
    }

    async fn finish(&mut self, patience: Duration) {
        self.stdin = None;
        while !self.to_client.is_empty() {
            let flushed = std::future::poll_fn(|cx| self.poll_flush(cx));
            if tokio::time::timeout(patience, flushed).await.is_err() {
                return;
            }
        }
        if let Some(stdout) = self.stdout.take() {
            // A client that does not read it goes without.
            let _ = tokio::time::timeout(patience, stdout.finish()).await;
        }
        self.stderr.finish(patience).await;
    }
}
