//! A file of ours, watched by tokio.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers the file with the current runtime.
pub(crate) fn watch(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open, always gives the same number, and stays open as long as the `AsyncFd` that owns it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}
