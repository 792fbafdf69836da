//! A stdin that is not read: with `--direct` the server has it, and while backpressured what was read before waits to be
//! written. It is watched for its other end being closed.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

use crate::on_thread::on_thread;
use crate::relay::watch;

/// Until whoever writes to this file is gone. A file or a terminal never ends that way.
pub(super) fn hangup_of(stdin: OwnedFd) -> io::Result<oneshot::Receiver<()>> {
    let (tell, told) = oneshot::channel();
    on_thread(move || {
        // Not for data, only for the other end being closed, wholly or (a socket) for writing.
        let mut fds = [PollFd::new(&stdin, PollFlags::RDHUP)];
        while poll(&mut fds, None).is_err() {}
        // Nobody listens any more if the server ended first.
        let _ = tell.send(());
    })?;
    Ok(told)
}

/// The same without a thread, for what the kernel can wait for. The file is closed with the receiver: a client may be told by
/// that that it is not read any more.
pub(super) fn hangup_of_watched(stdin: OwnedFd) -> io::Result<oneshot::Receiver<()>> {
    let watched = watch(stdin, Interest::READABLE)?;
    let (mut tell, told) = oneshot::channel();
    tokio::spawn(async move {
        tokio::select! {
            () = tell.closed() => return,
            () = no_writer(&watched) => {}
        }
        let _ = tell.send(());
    });
    Ok(told)
}

async fn no_writer(watched: &AsyncFd<OwnedFd>) {
    while let Ok(mut ready) = watched.readable().await {
        if ready.ready().is_read_closed() {
            return;
        }
        // Data, which somebody else reads.
        ready.clear_ready();
    }
    std::future::pending().await
}
