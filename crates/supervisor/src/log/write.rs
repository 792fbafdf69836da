//! Appends to a log. The session never waits for the disk: what the disk cannot take soon enough is dropped, and the log
//! says so.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::{Limits, clean, generation};
use crate::background::{Background, Done, Worker};
use crate::places::private_folder;
use moored_registry::private_file;

/// The most bytes that wait for a slow disk.
const MOST_WAITING: usize = 1 << 20;

/// Where a server's stderr goes. Shared by the session, which writes, and `SessionRecords::finish`, which waits for the end.
#[derive(Debug)]
pub struct ServerLog {
    background: Background<LogWorker>,
    waiting: Arc<AtomicUsize>,
    dropped: AtomicU64,
    complaint: Arc<OnceLock<String>>,
}

impl ServerLog {
    /// A log at this path. Nothing is opened before something is written.
    #[must_use]
    pub fn open(path: PathBuf, limits: Limits) -> Self {
        let (waiting, complaint) = (Arc::default(), Arc::default());
        let worker = LogWorker {
            path,
            limits,
            file: None,
            has_cleaned: false,
            waiting: Arc::clone(&waiting),
            complaint: Arc::clone(&complaint),
        };
        Self { background: Background::new(worker), waiting, dropped: AtomicU64::new(0), complaint }
    }

    /// Appends. Does not wait and does not fail.
    pub fn write(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.waiting.load(Ordering::Relaxed) + bytes.len() > MOST_WAITING {
            self.dropped.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            return;
        }
        self.mention_dropped();
        self.push(bytes.into());
    }

    /// The first error, if there was one.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.complaint.get().cloned()
    }

    /// Waits up to `timeout` for all to be written, and says what has gone wrong.
    #[must_use]
    pub fn finish(&self, timeout: Duration) -> Option<String> {
        self.mention_dropped();
        let left = self.background.drain(timeout);
        let lost: usize = left.iter().map(|chunk| chunk.len()).sum();
        self.warning()
            .or_else(|| (lost > 0).then(|| format!("{lost} bytes of stderr could not be written in time")))
    }

    fn mention_dropped(&self) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            self.push(
                format!("\n[moored: {dropped} bytes were dropped here: the disk was too slow]\n")
                    .into_bytes()
                    .into(),
            );
        }
    }

    fn push(&self, chunk: Arc<[u8]>) {
        self.waiting.fetch_add(chunk.len(), Ordering::Relaxed);
        self.background.push(chunk, |_| true);
    }
}

/// Writes on the background thread.
#[derive(Debug)]
struct LogWorker {
    path: PathBuf,
    limits: Limits,
    /// It stays open: its lock says that it is in use.
    file: Option<File>,
    has_cleaned: bool,
    waiting: Arc<AtomicUsize>,
    complaint: Arc<OnceLock<String>>,
}

impl Worker for LogWorker {
    type Item = Arc<[u8]>;

    fn work(&mut self, batch: &[Arc<[u8]>]) -> Done {
        for chunk in batch {
            if let Err(error) = self.append(chunk) {
                self.file = None;
                let warning = || format!("stderr could not be written to `{}`: {error}", self.path.display());
                self.complaint.get_or_init(warning);
            }
            self.waiting.fetch_sub(chunk.len(), Ordering::Relaxed);
        }
        // What could not be written is dropped: a server that talks to a full disk must not fill our memory.
        Done::Yes
    }
}

impl LogWorker {
    fn append(&mut self, chunk: &[u8]) -> io::Result<()> {
        let file = match self.file.take() {
            // Another `run` that shares the file, or a program made for that, may have rotated it.
            Some(file) if is_at(&file, &self.path) => file,
            _ => self.begin()?,
        };
        let length = file.metadata()?.len();
        let mut file = if length > 0 && length + chunk.len() as u64 > self.limits.file_bytes {
            self.rotate(file)?
        } else {
            file
        };
        let written = file.write_all(chunk);
        self.file = Some(file);
        written
    }

    fn begin(&mut self) -> io::Result<File> {
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            private_folder(folder)?;
            if !std::mem::replace(&mut self.has_cleaned, true) {
                // Best effort: an old file that stays is no reason not to write a new one.
                let _ = clean::clean(folder, &self.limits, jiff::Timestamp::now());
            }
        }
        open_locked(&self.path)
    }

    fn rotate(&self, file: File) -> io::Result<File> {
        if self.limits.files <= 1 {
            file.set_len(0)?;
            return Ok(file);
        }
        for ago in (0..self.limits.files - 1).rev() {
            match fs::rename(generation(&self.path, ago), generation(&self.path, ago + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        open_locked(&self.path)
    }
}

fn open_locked(path: &Path) -> io::Result<File> {
    let file = private_file().create(true).append(true).open(path)?;
    // It keeps others from removing it for its age. Where there are no locks, it is as old as its last line.
    let _ = file.try_lock_shared();
    Ok(file)
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.ino(), ours.dev()) == (there.ino(), there.dev()),
        _ => false,
    }
}
