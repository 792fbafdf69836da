//! Our ends of the server's three pipes: how wide they are, and what is left in them when the server has ended. Who reads and
//! writes them when is the pump's business.

use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use moored_containment::aio;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, Interest, ReadBuf};

use crate::relay::{Width, watch};

const READ: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct ServerFiles {
    pub(super) stdin: Option<aio::Stdin>,
    pub(super) stdout: Option<aio::Stdout>,
    pub(super) stderr: Option<aio::Stderr>,
    /// Its stdin again, watched for having no reader: closed together with it.
    stdin_watch: Option<AsyncFd<OwnedFd>>,
    widths: Widths,
}

/// How wide the pipes from somebody and to somebody are.
#[derive(Debug, Default)]
pub(super) struct Widths {
    pub(super) from: Width,
    pub(super) to: Width,
}

/// What a server had written before it ended.
#[derive(Debug, Default)]
pub(super) struct Drained {
    pub(super) output: Vec<u8>,
    pub(super) errors: Vec<u8>,
}

impl ServerFiles {
    pub(super) fn of(server: &mut aio::Contained) -> Self {
        let stdin = server.stdin.take();
        let again = stdin.as_ref().and_then(|stdin| stdin.as_fd().try_clone_to_owned().ok());
        Self {
            stdin,
            stdout: server.stdout.take(),
            stderr: server.stderr.take(),
            // Where it cannot be watched, a write tells.
            stdin_watch: again.and_then(|again| watch(again, Interest::READABLE).ok()),
            widths: Widths::default(),
        }
    }

    pub(super) fn close_stdin(&mut self) {
        (self.stdin, self.stdin_watch) = (None, None);
    }

    /// Whether the server has closed its stdin. The file is watched for reading, of which there is nothing to be told but that.
    pub(super) fn poll_stdin_closed(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.stdin_watch {
            Some(watched) => watched.poll_write_ready(cx).map(|_| ()),
            None => Poll::Pending,
        }
    }

    /// Whether the server has not read all that is in its stdin.
    pub(super) fn has_unread_input(&self) -> bool {
        self.stdin
            .as_ref()
            .is_some_and(|stdin| rustix::io::ioctl_fionread(stdin).is_ok_and(|bytes| bytes > 0))
    }

    /// So much of a message has come and is not whole, and so much waits to be written.
    pub(super) fn adjust_widths(&mut self, coming: usize, going: usize) {
        self.widths.from.adjust(self.stdout.as_ref().map(AsFd::as_fd), coming);
        self.widths.to.adjust(self.stdin.as_ref().map(AsFd::as_fd), going);
    }

    /// What is still in the pipes: whoever is kept may hold them open, so that their end never comes.
    pub(super) fn drain(&self) -> Drained {
        let mut drained = Drained::default();
        if let Some(stdout) = &self.stdout {
            read_what_is_there(stdout, &mut drained.output);
        }
        if let Some(stderr) = &self.stderr {
            read_what_is_there(stderr, &mut drained.errors);
        }
        drained
    }
}

/// The file does not block, so what is not there is an error.
fn read_what_is_there(from: &impl AsFd, into: &mut Vec<u8>) {
    let mut space = vec![0; READ];
    // No more than a pipe can hold: whoever is kept may go on writing.
    while into.len() < Width::MOST
        && let Ok(read) = rustix::io::read(from, &mut space)
        && read > 0
    {
        into.extend_from_slice(&space[..read]);
    }
}

/// So many bytes; none is the end, and an error is one too.
pub(super) fn poll_read(
    from: &mut (impl AsyncRead + Unpin),
    cx: &mut Context<'_>,
    into: &mut [u8],
) -> Poll<usize> {
    let mut space = ReadBuf::new(into);
    match Pin::new(from).poll_read(cx, &mut space) {
        Poll::Ready(Ok(())) => Poll::Ready(space.filled().len()),
        Poll::Ready(Err(_)) => Poll::Ready(0),
        Poll::Pending => Poll::Pending,
    }
}
