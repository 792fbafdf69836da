//! Notices that the other end of our stdin is closed while we do not read it: because the server has it (`--direct`), or because
//! we are backpressured.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

use crate::on_thread::on_thread;
use crate::relay::watch;

/// Ready once. A file or a terminal is never hung up.
#[derive(Debug)]
pub(super) enum Hangup {
    /// The kernel tells tokio. The file is closed with this: a client may be told by that that it is not read any more.
    Watched(AsyncFd<OwnedFd>),
    /// A thread waits for it.
    Thread(oneshot::Receiver<()>),
    Seen,
}

impl Hangup {
    /// Watches that file, which we or the server may read meanwhile.
    pub(super) fn of(stdin: BorrowedFd<'_>) -> io::Result<Self> {
        match stdin.try_clone_to_owned().and_then(|stdin| watch(stdin, Interest::READABLE)) {
            Ok(watched) => Ok(Self::Watched(watched)),
            Err(_) => Self::on_thread(stdin),
        }
    }

    /// The same without being woken for data.
    pub(super) fn on_thread(stdin: BorrowedFd<'_>) -> io::Result<Self> {
        let stdin = stdin.try_clone_to_owned()?;
        let (tell, seen) = oneshot::channel();
        on_thread(move || {
            // Not for data, only for the other end being closed, wholly or (a socket) for writing.
            let mut fds = [PollFd::new(&stdin, PollFlags::RDHUP)];
            while poll(&mut fds, None).is_err() {}
            // The session may have ended first.
            let _ = tell.send(());
        })?;
        Ok(Self::Thread(seen))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let is_seen = match self {
            Self::Watched(watched) => ready!(poll_no_writer(watched, cx)),
            // An error means that the thread is gone.
            Self::Thread(seen) => ready!(Pin::new(seen).poll(cx)).is_ok(),
            Self::Seen => false,
        };
        *self = Self::Seen;
        if is_seen { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Whether it was seen: false if it cannot be waited for.
fn poll_no_writer(watched: &AsyncFd<OwnedFd>, cx: &mut Context<'_>) -> Poll<bool> {
    loop {
        match ready!(watched.poll_read_ready(cx)) {
            Ok(ready) if ready.ready().is_read_closed() => return Poll::Ready(true),
            // Data, which is read elsewhere.
            Ok(mut ready) => ready.clear_ready(),
            Err(_) => return Poll::Ready(false),
        }
    }
}
