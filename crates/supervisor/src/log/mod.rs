//! A server's stderr: kept, rotated, and read again by `moored logs`.
//!
//! Each `run` has a file of its own, `logs/SERVER/RUN.log`, so that two instances never mix their lines; `RUN.log.1` is
//! what was before it, and so on. `--log-file` names another one, which several may share.
//!
//! - `write` appends and rotates, on a background thread: a slow disk never delays the server or the relay.
//! - `clean` says which old files go when a new one is begun (pure), and removes them.
//! - `read` shows the last lines, and what comes, also over a rotation.

mod clean;
mod read;
mod write;

pub use clean::all;
pub use read::{Follow, tail};
pub use write::ServerLog;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A file that would be longer is rotated.
    pub file_bytes: u64,
    /// Files per `run`, counting the one that is being written.
    pub files: u32,
    /// Files that were last written longer ago go.
    pub age: Duration,
    /// The oldest go until all files of a server take no more than this.
    pub folder_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file_bytes: 10 << 20, files: 3, age: Duration::from_hours(14 * 24), folder_bytes: 64 << 20 }
    }
}

/// The file as it was `ago` rotations before.
fn generation(path: &Path, ago: u32) -> PathBuf {
    if ago == 0 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{ago}"));
    name.into()
}
