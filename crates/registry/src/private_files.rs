//! Opening files of ours in folders where any program of the same user can put something else in their place.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// How a file of ours is made: for the user alone.
#[must_use]
pub fn private_file() -> fs::OpenOptions {
    let mut options = File::options();
    options.mode(0o600);
    options
}

/// Opens a file to read it if it is a regular one: not a FIFO, for whose writer `open` would wait, and not a link.
///
/// # Errors
/// If it is none, or cannot be opened.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(NOFOLLOW_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a plain file")) }
}

/// Flags for opening a file that another program may have replaced by a link or a FIFO.
pub const NOFOLLOW_NONBLOCK: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();
