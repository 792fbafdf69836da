//! The session's runtime file: what is alive, and what a crash of everything left.
//!
//! One file per session in a folder of the user's own, written **before** a child exists, and locked from its birth to
//! its end: it is locked under another name and renamed then. The guardians hold the lock, so a lock that can be taken
//! means that they are gone. The file is a few lines of text, `key value`; readers pass over keys that they do not know.
//!
//! This file owns the format, the folder and the lock; what to do about a dead session is `sweep`'s affair.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cookie::SessionId;
use crate::identity::{BootId, ProcessIdentity};
use crate::sys;

const ENDING: &str = "session";

/// The folder that holds the records of a user's live sessions.
///
/// ```no_run
/// let folder = moored_containment::RuntimeDir::of_user()?;
/// for found in folder.sessions()? {
///     println!("{} {}", found.record.id, found.record.label);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RuntimeDir(Arc<sys::Folder>);

impl RuntimeDir {
    /// The user's own: `$MOORED_RUNTIME_DIR`, else `/run/user/UID/moored`, else `/tmp/moored-UID`.
    ///
    /// # Errors
    /// If it cannot be made, or belongs to somebody else too.
    pub fn of_user() -> io::Result<Self> {
        match std::env::var_os("MOORED_RUNTIME_DIR") {
            Some(path) if !path.is_empty() => Self::at(path),
            _ => Self::at(sys::user_folder(sys::own_user())),
        }
    }

    /// This one; made if it is not there, refused unless it is the user's alone.
    ///
    /// # Errors
    /// As for [`RuntimeDir::of_user`].
    pub fn at(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self(Arc::new(sys::private_folder(path.as_ref())?)))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd.as_fd()
    }

    /// Removes drafts whose writer died before it could give them their name.
    pub(crate) fn remove_dead_drafts(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.path())? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let writer = name.strip_prefix('.').and_then(|name| name.split_once(&format!(".{ENDING}.")));
            let Some(writer) = writer.and_then(|(_, pid)| pid.parse().ok()) else { continue };
            if matches!(ProcessIdentity::of(writer), Err(error) if error.kind() == io::ErrorKind::NotFound) {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Every recorded session, live or dead. A file that cannot be read or understood is passed over: it is not ours to
    /// act on.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn sessions(&self) -> io::Result<Vec<FoundRecord>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.path())? {
            let path = entry?.path();
            if path.extension() != Some(OsStr::new(ENDING)) {
                continue;
            }
            if let Ok(Some(record)) = FoundRecord::open(path) {
                found.push(record);
            }
        }
        found.sort_by_key(|f| f.record.id);
        Ok(found)
    }
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which session.
    pub id: SessionId,
    /// What its owner calls it.
    pub label: String,
    /// Who started it.
    pub owner: ProcessIdentity,
    /// When, in clock ticks since boot: nothing of the session is older.
    pub started_ticks: u64,
    /// The cgroup leaf.
    pub leaf: Option<PathBuf>,
    /// What is to be run when it has ended.
    pub on_end: Vec<OsString>,
    /// The guardians and the server, once they exist.
    pub processes: Vec<ProcessIdentity>,
    /// Those that were meant to live on.
    pub kept: Vec<ProcessIdentity>,
    /// It has ended as it should, and stays on record for the sake of the kept ones.
    pub ended: bool,
}

impl Record {
    fn to_text(&self) -> String {
        let mut text = String::from("moored-session 1\n");
        let mut line = |key: &str, value: &dyn std::fmt::Display| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{key} {value}");
        };
        line("id", &self.id);
        line("boot", &self.owner.boot);
        line("owner", &Pair(self.owner));
        line("started", &self.started_ticks);
        line("label", &escape(self.label.as_bytes()));
        if let Some(leaf) = &self.leaf {
            line("leaf", &escape(leaf.as_os_str().as_bytes()));
        }
        for arg in &self.on_end {
            line("on_end", &escape(arg.as_bytes()));
        }
        for process in &self.processes {
            line("process", &Pair(*process));
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some("moored-session 1") {
            return None;
        }
        let (mut id, mut boot, mut owner, mut started) = (None, None, None, None);
        let mut label = String::new();
        let (mut leaf, mut on_end, mut processes, mut kept) = (None, Vec::new(), Vec::new(), Vec::new());
        let mut ended = false;
        for line in lines {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            match key {
                "id" => id = value.parse().ok(),
                "boot" => boot = value.parse().ok(),
                "owner" => owner = pair(value, boot?),
                "started" => started = value.parse().ok(),
                "label" => label = String::from_utf8_lossy(&unescape(value)).into_owned(),
                "leaf" => leaf = Some(PathBuf::from(OsString::from_vec(unescape(value)))),
                "on_end" => on_end.push(OsString::from_vec(unescape(value))),
                "process" => processes.extend(pair(value, boot?)),
                "kept" => kept.extend(pair(value, boot?)),
                "ended" => ended = true,
                // A later version's.
                _ => {}
            }
        }
        let record = Self {
            id: id?,
            label,
            owner: owner?,
            started_ticks: started?,
            leaf,
            on_end,
            processes,
            kept,
            ended,
        };
        Some(record)
    }
}

struct Pair(ProcessIdentity);

impl std::fmt::Display for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.0.pid, self.0.start_ticks)
    }
}

fn pair(text: &str, boot: BootId) -> Option<ProcessIdentity> {
    let (pid, ticks) = text.split_once(' ')?;
    Some(ProcessIdentity { pid: pid.parse().ok()?, start_ticks: ticks.parse().ok()?, boot })
}

/// Anything that could be taken for the end of a line, a blank or our own sign becomes `%XX`.
fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        if byte.is_ascii_graphic() && *byte != b'%' {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "%{byte:02x}");
        }
    }
    text
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()).filter(|_| *first == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

/// A record that is being written: ours, and locked.
#[derive(Debug)]
pub(crate) struct OwnRecord {
    pub(crate) folder: RuntimeDir,
    pub(crate) name: String,
    file: Option<File>,
}

impl OwnRecord {
    /// Writes it down and locks it. `None` if a session of that name is on record already.
    pub(crate) fn create(folder: &RuntimeDir, record: &Record) -> io::Result<Option<Self>> {
        let name = format!("{}.{ENDING}", record.id);
        let draft = folder.path().join(format!(".{name}.{}", std::process::id()));
        let mut file = match File::options().read(true).append(true).create_new(true).mode(0o600).open(&draft)
        {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            Err(error) => return Err(error),
        };
        let born = (|| {
            file.write_all(record.to_text().as_bytes())?;
            if !sys::lock_exclusively(&file)? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            // A link fails where the name is taken; a rename would replace what is there.
            fs::hard_link(&draft, folder.path().join(&name))
        })();
        let _ = fs::remove_file(&draft);
        match born {
            Ok(()) => Ok(Some(Self { folder: folder.clone(), name, file: Some(file) })),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(|file| file.as_fd())
    }

    /// Adds who was started, and lets go: from here on the guardians alone hold the lock.
    pub(crate) fn bind(&mut self, processes: &[ProcessIdentity]) {
        let Some(mut file) = self.file.take() else { return };
        let lines: String = processes.iter().map(|p| format!("process {}\n", Pair(*p))).collect();
        // A full disk costs the sweep some identities; it still has the cookie.
        let _ = file.write_all(lines.as_bytes());
    }

    /// Takes it back: nothing was started.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_file(self.folder.path().join(&self.name));
    }

    /// Opens it again, for an owner whose guardians are both gone.
    pub(crate) fn reopen(&self) -> io::Result<Option<FoundRecord>> {
        FoundRecord::open(self.folder.path().join(&self.name))
    }
}

/// A record that was found.
#[derive(Debug)]
pub struct FoundRecord {
    /// What it says.
    pub record: Record,
    path: PathBuf,
    file: File,
}

impl FoundRecord {
    fn open(path: PathBuf) -> io::Result<Option<Self>> {
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(Record::parse(&text).map(|record| Self { record, path, file }))
    }

    /// Whether its guardians are gone. If so, the session is the caller's as long as it has this value: no other sweep
    /// will touch it.
    ///
    /// # Errors
    /// If the lock cannot be tried.
    pub fn claim(&self) -> io::Result<bool> {
        // It may have ended, and been removed, between the opening and the lock.
        Ok(sys::lock_exclusively(&self.file)? && self.is_current())
    }

    fn is_current(&self) -> bool {
        match (self.file.metadata(), fs::metadata(&self.path)) {
            (Ok(ours), Ok(there)) => ours.ino() == there.ino() && ours.dev() == there.dev(),
            _ => false,
        }
    }

    /// Forgets the session.
    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let me = ProcessIdentity::of(std::process::id()).expect("own identity");
        Record {
            id: SessionId::choose(None, 42),
            label: "a name\nwith %20 and\ttabs".into(),
            owner: me,
            started_ticks: 7,
            leaf: Some(PathBuf::from("/sys/fs/cgroup/x y")),
            on_end: vec!["docker".into(), OsString::from_vec(vec![0xff, b'\n', b' '])],
            processes: vec![me],
            kept: Vec::new(),
            ended: false,
        }
    }

    #[test]
    fn a_record_is_read_back_whatever_bytes_it_holds() {
        let record = record();
        assert_eq!(Record::parse(&record.to_text()), Some(record));
    }

    #[test]
    fn half_a_record_is_none() {
        let text = record().to_text();
        let half = &text[..text.find("owner").expect("has an owner")];
        assert_eq!(Record::parse(half), None);
        assert_eq!(Record::parse("something else\n"), None);
    }
}
