//! Where moored itself is, for those who start it again: the guardians, and the demo.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Our own program. One that was replaced on disk while it runs is meant by the same path: the new one does as well.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    match path.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(before) if !path.exists() => Ok(OsStr::from_bytes(before).into()),
        _ => Ok(path),
    }
}
