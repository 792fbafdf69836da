//! Our own stderr: what the server writes there, and our own warnings. A client that does not read it goes without.

use std::io;
use std::os::fd::AsFd as _;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::relay::{Queue, StdioWriter};

/// More than this is not kept for a client that does not read it; the log has it.
const MOST: usize = 256 << 10;
/// At the end, stderr gets this part of the time that stdout gets.
const SHARE_OF_PATIENCE: u32 = 10;

#[derive(Debug)]
pub(super) struct StderrQueue {
    /// None where we have no stderr, or it is not read any more.
    writer: Option<StdioWriter>,
    queue: Queue,
}

impl StderrQueue {
    pub(super) fn open() -> Self {
        Self { writer: StdioWriter::open(io::stderr().as_fd()).ok(), queue: Queue::default() }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.writer.is_some() && self.queue.len() + bytes.len() <= MOST {
            self.queue.push(bytes);
        }
    }

    /// Ready when some of it was written, or it turned out that it is not read any more.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(writer) = self.writer.as_mut().filter(|_| !self.queue.is_empty()) else {
            return Poll::Pending;
        };
        match ready!(writer.poll_write(cx, self.queue.first())) {
            Ok(n) => self.queue.advance(n),
            Err(_) => {
                self.queue.clear();
                self.writer = None;
            }
        }
        Poll::Ready(())
    }

    /// Waits until all is written, as long as the client takes any of it in time.
    pub(super) async fn finish(&mut self, patience: Duration) {
        let patience = patience / SHARE_OF_PATIENCE;
        while !self.queue.is_empty() {
            let flushed = std::future::poll_fn(|cx| self.poll_flush(cx));
            if tokio::time::timeout(patience, flushed).await.is_err() {
                return;
            }
        }
        if let Some(writer) = self.writer.take() {
            // A client that does not read it goes without.
            let _ = tokio::time::timeout(patience, writer.finish()).await;
        }
    }
}
