//! The folder of a user's records, and the lock on each.
//!
//! One file per session in a folder of the user's own, written **before** a child exists, and locked from its birth to
//! its end: it is locked under another name and gets its own then. The guardians hold the lock, so a lock that can be
//! taken means that they are gone.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::process::identity::ProcessIdentity;
use crate::record::session_record::{Pair, Record};
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
pub struct RuntimeDir(Arc<Opened>);

#[derive(Debug)]
struct Opened {
    folder: sys::Folder,
    /// Why the best place is not this one.
    passed_over: Option<String>,
}

impl RuntimeDir {
    /// The user's own: `$MOORED_RUNTIME_DIR`, else the first of these that can be used: `/run/user/UID/moored`,
    /// `/tmp/moored-UID`, `/dev/shm/moored-UID`, and `.local/state/moored/run` in the home that `/etc/passwd` names.
    ///
    /// # Errors
    /// If none can be made, or each belongs to another user too; the error is that of the first.
    pub fn of_user() -> io::Result<Self> {
        match std::env::var_os("MOORED_RUNTIME_DIR") {
            Some(path) if !path.is_empty() => Self::at(path),
            _ => Self::first_of(&sys::user_folders(sys::own_user())),
        }
    }

    fn first_of(places: &[sys::UserFolder]) -> io::Result<Self> {
        let mut refused: Option<io::Error> = None;
        for place in places {
            match place.make() {
                Ok(folder) => {
                    let passed_over = refused.map(|why| why.to_string());
                    return Ok(Self(Arc::new(Opened { folder, passed_over })));
                }
                // It passes; a session that is on record elsewhere for its sake would be hard to find.
                Err(error) if sys::Shortage::of(&error) != sys::Shortage::Other => return Err(error),
                Err(error) => drop(refused.get_or_insert(named(&place.path, error))),
            }
        }
        Err(refused.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    /// Every folder in which sessions of this user may be on record: which of them is used can change with time, when
    /// `/run/user/UID` comes or another user takes the name in `/tmp`.
    #[must_use]
    pub fn all_of_user() -> Vec<Self> {
        let mut all: Vec<Self> = Self::of_user().into_iter().collect();
        for place in sys::user_folders(sys::own_user()) {
            // One that is not there, or is another user's, has no sessions of ours.
            if all.iter().all(|known| known.path() != place.path)
                && let Ok(folder) = sys::open_private_folder(&place.path)
            {
                all.push(Self(Arc::new(Opened { folder, passed_over: None })));
            }
        }
        all
    }

    /// This one; made if it is not there, refused unless it is the user's alone.
    ///
    /// # Errors
    /// As for [`RuntimeDir::of_user`].
    pub fn at(path: impl AsRef<Path>) -> io::Result<Self> {
        let folder = sys::make_private_folder(path.as_ref())?;
        Ok(Self(Arc::new(Opened { folder, passed_over: None })))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.folder.path
    }

    /// A sentence about a better place that could not be used, if there is one: another user may have taken its name.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let why = self.0.passed_over.as_ref()?;
        Some(format!("{why}; live sessions are recorded in `{}`", self.path().display()))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.folder.fd.as_fd()
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

    /// Adds the processes that were started, and lets go: from here on the guardians alone hold the lock.
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
        let mut file = match sys::open_regular_file(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(read_record(&mut file)?.map(|record| Self { record, path, file }))
    }

    /// Whether its guardians are gone. If so, the session is the caller's as long as it has this value: no other sweep
    /// will touch it.
    ///
    /// # Errors
    /// If the lock cannot be tried.
    pub fn claim(&mut self) -> io::Result<bool> {
        Ok(sys::lock_exclusively(&self.file)? && self.read_again()?)
    }

    /// Whether it is still on record; if so, with all that was written since.
    pub(crate) fn read_again(&mut self) -> io::Result<bool> {
        // It may have ended, and been removed, between the opening and now.
        if !self.is_current() {
            return Ok(false);
        }
        // And a guardian may have written its last lines: the kept processes, and that it is over.
        match read_record(&mut self.file)? {
            Some(record) => self.record = record,
            None => return Ok(false),
        }
        Ok(true)
    }

    /// The processes that have locked it, of those that can be seen and, outside of the first PID namespace, that are alive.
    pub(crate) fn lockers(&self) -> io::Result<Vec<u32>> {
        sys::lockers(self.file.metadata()?.ino())
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

/// With the path in its message, if it is not there already.
fn named(path: &Path, error: io::Error) -> io::Error {
    let path = path.display().to_string();
    if error.to_string().contains(&path) {
        return error;
    }
    io::Error::new(error.kind(), format!("`{path}`: {error}"))
}

fn read_record(file: &mut File) -> io::Result<Option<Record>> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(Record::parse(&text))
}
