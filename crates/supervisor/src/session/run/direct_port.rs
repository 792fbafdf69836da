//! `--direct`: the server has our own stdio, so nothing passes through us. The port only watches for the client's end.

use std::io;
use std::os::fd::AsFd as _;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::client_watch::ClientWatch;
use super::hangup::Hangup;
use super::stderr::StderrQueue;
use crate::relay::Piece;
use crate::session::conversation::ToClient;
use crate::session::outcome::RunError;
use crate::session::port::{ClientPort, Flushed, Received};

#[derive(Debug)]
pub(super) struct DirectPort {
    client: ClientWatch,
    hangup: Option<Hangup>,
    stderr: StderrQueue,
}

impl DirectPort {
    pub(super) fn open(client: ClientWatch) -> Result<Self, RunError> {
        // Without it the client's end would not be noticed.
        let hangup = Hangup::on_thread(io::stdin().as_fd())
            .map_err(|source| RunError::Stdio { what: "stdin", source })?;
        Ok(Self { client, hangup: Some(hangup), stderr: StderrQueue::open() })
    }
}

impl ClientPort for DirectPort {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        _scratch: &mut [u8],
        _hand_over: &mut dyn FnMut(Piece<'_>),
    ) -> Poll<Received> {
        self.poll_hangup(cx)
    }

    fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        if self.client.poll_gone(cx).is_ready() {
            return Poll::Ready(Received::Gone);
        }
        let Some(hangup) = &mut self.hangup else { return Poll::Pending };
        ready!(hangup.poll(cx));
        self.hangup = None;
        Poll::Ready(self.client.eof())
    }

    fn poll_after_eof(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        self.client.poll_after_eof(cx)
    }

    fn send(&mut self, _message: ToClient<'_>) {
        // There is no conversation that could answer.
    }

    fn send_stderr(&mut self, bytes: &[u8]) {
        self.stderr.push(bytes);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Flushed> {
        self.stderr.poll_flush(cx).map(|()| Flushed::Some)
    }

    fn backlog(&self) -> usize {
        0
    }

    fn relays(&self) -> bool {
        false
    }

    fn has_client(&self) -> bool {
        self.client.has_client()
    }

    fn can_read(&self) -> bool {
        true
    }

    async fn finish(&mut self, patience: Duration) {
        self.stderr.finish(patience).await;
    }
}
