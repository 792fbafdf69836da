//! `--direct`: the server has our own stdin, so we cannot read it; we only watch for its other end being closed.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::oneshot;

use crate::on_thread::on_thread;

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
