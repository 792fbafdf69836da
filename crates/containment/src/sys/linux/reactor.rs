//! A file of ours, watched by tokio.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::process::ProcessFd;

/// Registers the file with the current runtime.
pub(crate) fn watch(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open, always gives the same number, and stays open as long as the `AsyncFd` that owns it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}

/// Registers a held process with the current runtime: readable when the process has ended.
pub(crate) fn watch_process(process: Arc<ProcessFd>) -> io::Result<AsyncFd<Arc<ProcessFd>>> {
    // SAFETY: a `ProcessFd` owns its file, always gives the same number, and lives as long as the `AsyncFd` has its `Arc`.
    Ok(unsafe { AsyncFd::register_with_interest(process, Interest::READABLE) }?)
}
