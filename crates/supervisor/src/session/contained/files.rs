//! Our ends of the server's three pipes: how wide they are, and what is left in them when the server has ended.

use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use moored_containment::aio;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, Interest, ReadBuf};

use crate::relay::{Width, watch};
use crate::session::server::{Drained, ServerOutput};

const READ: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct ServerFiles {
    pub(super) stdin: Option<aio::Stdin>,
    /// Its stdin again, watched for having no reader: closed together with it.
    stdin_watch: Option<AsyncFd<OwnedFd>>,
    stdout: Option<aio::Stdout>,
    stderr: Option<aio::Stderr>,
    stdin_width: Width,
    stdout_width: Width,
}

impl ServerFiles {
    pub(super) fn of(server: &mut aio::Contained) -> Self {
        let stdin = server.stdin.take();
        let again = stdin.as_ref().and_then(|stdin| stdin.as_fd().try_clone_to_owned().ok());
        Self {
            stdin,
            // Where it cannot be watched, a write tells.
            stdin_watch: again.and_then(|again| watch(again, Interest::READABLE).ok()),
            stdout: server.stdout.take(),
            stderr: server.stderr.take(),
            ..Self::default()
        }
    }

    pub(super) fn close_stdin(&mut self) {
        (self.stdin, self.stdin_watch) = (None, None);
    }

    pub(super) fn has_stdout(&self) -> bool {
        self.stdout.is_some()
    }

    /// Ready once, when the server has closed its stdin. A file that is written to, watched for reading, has nothing else to
    /// tell.
    pub(super) fn poll_stdin_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(watched) = &self.stdin_watch else { return Poll::Pending };
        let _is_closed = ready!(watched.poll_write_ready(cx)).is_ok();
        self.stdin_watch = None;
        Poll::Ready(())
    }

    /// Bytes in its stdin that the server has not read.
    pub(super) fn unread_input(&self) -> usize {
        let unread = self.stdin.as_ref().and_then(|stdin| rustix::io::ioctl_fionread(stdin).ok());
        unread.map_or(0, |unread| usize::try_from(unread).unwrap_or(usize::MAX))
    }

    /// Bytes read; 0 means EOF, which is told once.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        from: ServerOutput,
        into: &mut [u8],
    ) -> Poll<usize> {
        match from {
            ServerOutput::Stdout => poll_open(&mut self.stdout, cx, into),
            ServerOutput::Stderr => poll_open(&mut self.stderr, cx, into),
        }
    }

    pub(super) fn adjust_widths(&mut self, incoming: usize, outgoing: usize) {
        self.stdout_width.adjust(self.stdout.as_ref().map(AsFd::as_fd), incoming);
        self.stdin_width.adjust(self.stdin.as_ref().map(AsFd::as_fd), outgoing);
    }

    /// What is still in the pipes: a kept process may hold them open, so that EOF never comes.
    pub(super) fn drain(&self) -> Drained {
        let mut drained = Drained::default();
        if let Some(stdout) = &self.stdout {
            read_what_is_there(stdout, &mut drained.stdout);
        }
        if let Some(stderr) = &self.stderr {
            read_what_is_there(stderr, &mut drained.stderr);
        }
        drained
    }
}

/// An error is EOF too. A file that has ended is closed.
fn poll_open<F: AsyncRead + Unpin>(
    file: &mut Option<F>,
    cx: &mut Context<'_>,
    into: &mut [u8],
) -> Poll<usize> {
    let Some(open) = file else { return Poll::Pending };
    let mut space = ReadBuf::new(into);
    let read = match Pin::new(open).poll_read(cx, &mut space) {
        Poll::Ready(Ok(())) => space.filled().len(),
        Poll::Ready(Err(_)) => 0,
        Poll::Pending => return Poll::Pending,
    };
    if read == 0 {
        *file = None;
    }
    Poll::Ready(read)
}

/// The file does not block, so what is not there is an error.
fn read_what_is_there(from: &impl AsFd, into: &mut Vec<u8>) {
    let mut space = vec![0; READ];
    // No more than a pipe can hold: a kept process may go on writing.
    while into.len() < Width::MAX
        && let Ok(read) = rustix::io::read(from, &mut space)
        && read > 0
    {
        into.extend_from_slice(&space[..read]);
    }
}
