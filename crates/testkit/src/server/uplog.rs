//! Files to which many processes append one pid each: the pid file of the tests, and the log by which the server learns
//! that what it started is up.
//!
//! A file, and not a pipe: a helper that has closed every fd can still open a path.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Appends this process's pid as one line. One short write to an appending fd is never torn.
pub(super) fn append_own_pid(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}

/// Counts the helpers that have reported to be up.
pub(super) struct UpLog {
    path: PathBuf,
    expected: usize,
}

impl UpLog {
    /// An empty log under `/tmp`, which every user can write to, named so that no two servers share it.
    pub(super) fn create() -> io::Result<Self> {
        for attempt in 0_u32.. {
            let name = format!("misbehave-up-{}-{attempt}", std::process::id());
            let path = Path::new("/tmp").join(name);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(_) => return Ok(Self { path, expected: 0 }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The path for one helper, or one tree of helpers, of which `processes` will report.
    pub(super) fn expect(&mut self, processes: usize) -> &Path {
        self.expected += processes;
        &self.path
    }

    /// Waits until all expected helpers are up, and removes the log.
    pub(super) fn wait(self, deadline: Duration) -> io::Result<()> {
        let start = Instant::now();
        loop {
            let up = fs::read(&self.path)?.iter().filter(|byte| **byte == b'\n').count();
            if up >= self.expected {
                return fs::remove_file(&self.path);
            }
            if start.elapsed() > deadline {
                let message = format!("only {up} of {} helpers are up", self.expected);
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
