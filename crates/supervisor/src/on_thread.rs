//! A thread for something that may block. Where the user may have no more of them that is an error like any other;
//! `std::thread::spawn` would panic, and take the session with it.

use std::io;
use std::thread::Builder;

/// Does it on a thread of its own, unless none can be had.
pub(crate) fn on_thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    Builder::new().spawn(work).map(drop)
}
