//! Events that could not be written in time: files in the runtime folder, which is in memory on most machines, with one event
//! per line. The next process that opens the ledger imports them.
//!
//! ```text
//! .RUN.WRITER.events   a draft; its writer holds the lock
//!  RUN.WRITER.events   whole; its writer may still put a longer one in its place
//!  ID.taken            claimed by one importer, which holds the lock; the name is unique
//! ```
//!
//! A claim is a rename, so what is removed is what was read. An importer that dies leaves a claim without a lock, and
//! the next one takes that. Events that two of them record are recorded once.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::row::to_line;
use super::{Ledger, LedgerError};
use crate::event::{Event, RunId};
use crate::places::private_folder;
use moored_registry::{open_regular_file, private_file};

const WHOLE: &str = "events";
const TAKEN: &str = "taken";
/// Where history cannot be written for weeks, the oldest files go.
const MOST_FILES: usize = 1000;

/// Where one writer leaves what it could not write.
#[derive(Clone, Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    writer: ulid::Ulid,
}

impl Spool {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, writer: ulid::Ulid::generate() }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Leaves these, in place of what this writer left before of the same `run`s.
    pub(super) fn leave(&self, events: &[Event]) -> io::Result<()> {
        private_folder(&self.folder)?;
        let mut texts: BTreeMap<RunId, String> = BTreeMap::new();
        for event in events {
            let text = texts.entry(event.run).or_default();
            text.push_str(&to_line(event)?);
            text.push('\n');
        }
        for (run, text) in texts {
            self.write(run, text.as_bytes())?;
        }
        remove_oldest(&self.folder)
    }

    fn write(&self, run: RunId, text: &[u8]) -> io::Result<()> {
        match self.try_write(run, text) {
            // An importer took the draft for a dead writer's, before it was locked. It does so at most once: what it
            // took has another name now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.try_write(run, text),
            written => written,
        }
    }

    fn try_write(&self, run: RunId, text: &[u8]) -> io::Result<()> {
        let name = self.name(run);
        let draft = self.folder.join(format!(".{name}"));
        let mut file = private_file().write(true).create(true).truncate(true).open(&draft)?;
        // An importer leaves a draft alone while its writer lives.
        file.lock()?;
        let written = file.write_all(text).and_then(|()| fs::rename(&draft, self.folder.join(name)));
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written
    }

    /// The writer has written these after all. If an importer has claimed the file meanwhile, they are recorded once.
    pub(super) fn clear(&self, events: &[Event]) {
        let mut runs: Vec<RunId> = events.iter().map(|event| event.run).collect();
        runs.dedup();
        for run in runs {
            let _ = fs::remove_file(self.folder.join(self.name(run)));
        }
    }

    fn name(&self, run: RunId) -> String {
        format!("{run}.{}.{WHOLE}", self.writer)
    }
}

/// What was imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Events that were recorded.
    pub events: usize,
    /// Lines that could not be understood, and are gone.
    pub unknown: usize,
}

/// Imports the events that sessions could not write. A file that another importer has claimed is left to it.
///
/// # Errors
/// If the ledger cannot be written: the files stay then.
pub fn import_spool(folder: &Path, ledger: &mut dyn Ledger) -> Result<Imported, LedgerError> {
    let file_error = |error| LedgerError::File { path: folder.to_owned(), error };
    let mut imported = Imported::default();
    for path in files(folder, &[WHOLE, TAKEN]).map_err(file_error)? {
        // One that cannot be claimed or read is passed over: the others are worth as much.
        let Ok(Some((taken, text))) = claim(folder, &path) else { continue };
        let lines: Vec<&str> = text.lines().collect();
        let events: Vec<Event> = lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        ledger.record(&events)?;
        imported.events += events.len();
        imported.unknown += lines.len() - events.len();
        let _ = fs::remove_file(&taken.path);
    }
    Ok(imported)
}

/// A file that this process has claimed, while this value lives.
struct Taken {
    path: PathBuf,
    _lock: File,
}

fn claim(folder: &Path, path: &Path) -> io::Result<Option<(Taken, String)>> {
    let mut file = open_regular_file(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let (ours, there) = (file.metadata()?, fs::metadata(path)?);
    if (ours.ino(), ours.dev()) != (there.ino(), there.dev()) {
        // It was taken, or replaced by a longer one, before we had the lock.
        return Ok(None);
    }
    let taken = folder.join(format!("{}.{TAKEN}", ulid::Ulid::generate()));
    fs::rename(path, &taken)?;
    let named = fs::metadata(&taken)?;
    if (ours.ino(), ours.dev()) != (named.ino(), named.dev()) {
        // A longer one came into its place at the last moment: it has its own name now, and the next one takes it.
        return Ok(None);
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(Some((Taken { path: taken, _lock: file }, String::from_utf8_lossy(&text).into_owned())))
}

/// The files with one of these endings, the oldest first. A folder that is not there has none.
fn files(folder: &Path, endings: &[&str]) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| endings.iter().any(|wanted| ending == *wanted)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn remove_oldest(folder: &Path) -> io::Result<()> {
    let all = files(folder, &[WHOLE, TAKEN])?;
    for path in all.iter().take(all.len().saturating_sub(MOST_FILES)) {
        let _ = fs::remove_file(path);
    }
    Ok(())
}
