//! A file of ours, watched by tokio.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers the file with the current runtime.
#[expect(
    deprecated,
    reason = "unsound for types that lie about their number; an OwnedFd does not, and this form needs no unsafe"
)]
pub(crate) fn watch(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, interest)
}
