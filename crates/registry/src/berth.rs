//! Where a `run` can be found while it lives: a locked file in the user's runtime folder, and a control socket beside it.
//!
//! The file says what does not change; whoever wants to know more asks over the socket. The `run` itself holds the lock,
//! so a lock that can be taken means that it is dead, and whoever takes it buries it: writes its end down and removes both. The containment's own record is another
//! file: it exists while there is a tree, and a sleeping server has none.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use moored_containment::{ProcessIdentity, RuntimeDir};
use moored_launch::Key;
use serde::{Deserialize, Serialize};

use crate::control::{Reply, Request};
use crate::held_process::set_going;
use crate::private_files::open_plain;
use crate::run_id::RunId;

const FILE: &str = "run";
const SOCKET: &str = "sock";
const DRAFT: &str = "draft";
/// The turn of somebody who counts instances; see `session/limit`.
const ROOM: &str = "room";

/// Who asked for the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// Its number.
    pub pid: u32,
    /// Who it is, if it could be seen.
    pub identity: Option<ProcessIdentity>,
    /// What it is called: `claude`, `codex`, `node` ….
    pub name: String,
}

/// What does not change while a `run` lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Its name.
    pub run: RunId,
    /// The moored process.
    pub moored: ProcessIdentity,
    /// Its version.
    pub moored_version: String,
    /// The server's name.
    pub name: String,
    /// The server's argv, secrets masked.
    pub command: Vec<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Which server: same for all its instances.
    pub server_key: Key,
    /// Which entry of a client's config: same for all that were started from it.
    pub entry_key: Key,
    /// Who asked for it.
    pub client: Option<Client>,
    /// Whether the client was seen to hold the other end of stdin. Older versions did not say.
    #[serde(default)]
    pub client_holds_stdin: bool,
    /// When it began, by the wall clock.
    pub started_at: Timestamp,
    /// Where the server's stderr is kept.
    pub log_file: Option<PathBuf>,
    /// Where its PID file is.
    pub pid_file: Option<PathBuf>,
    /// How many instances of this server may be awake at once.
    pub max_instances: Option<u32>,
}

/// A place in the runtime folder, held as long as this lives.
#[derive(Debug)]
pub struct Berth {
    folder: PathBuf,
    run: RunId,
    _lock: File,
}

impl Berth {
    /// Takes a place. It has its name only once it is whole and locked.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn take(folder: &RuntimeDir, facts: &Facts) -> io::Result<Self> {
        let folder = folder.path().to_path_buf();
        // Whoever buries takes a draft that is not locked for a dead one's, and may do so before we have locked it.
        let taken = Self::try_take(&folder, facts);
        if taken.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Self::try_take(&folder, facts);
        }
        taken
    }

    fn try_take(folder: &Path, facts: &Facts) -> io::Result<Self> {
        // With an ending of its own: whoever looks would lock it before we do, and take it for a dead one's.
        let draft = folder.join(format!(".{}.{FILE}.{DRAFT}", facts.run));
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.lock()?;
        let written = file
            .write_all(&serde_json::to_vec(facts)?)
            .and_then(|()| fs::rename(&draft, path_of(folder, facts.run, FILE)));
        if let Err(error) = written {
            let _ = fs::remove_file(&draft);
            return Err(error);
        }
        Ok(Self { folder: folder.to_path_buf(), run: facts.run, _lock: file })
    }

    /// Where the control socket belongs.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        path_of(&self.folder, self.run, SOCKET)
    }
}

impl Drop for Berth {
    fn drop(&mut self) {
        // Before the lock goes, so that nobody finds the files without it. They may be gone already.
        let _ = fs::remove_file(self.socket());
        let _ = fs::remove_file(path_of(&self.folder, self.run, FILE));
    }
}

fn path_of(folder: &Path, run: RunId, ending: &str) -> PathBuf {
    folder.join(format!("{run}.{ending}"))
}

/// A `run` that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What does not change.
    pub facts: Facts,
    socket: PathBuf,
}

impl Found {
    /// Asks it, and waits so long for the answer.
    ///
    /// # Errors
    /// If it does not answer in time, or has ended meanwhile.
    pub fn ask(&self, request: &Request, patience: Duration) -> io::Result<Reply> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        if answer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&answer)?)
    }
}

impl Found {
    /// A moored that somebody stopped sees nothing: no end of its input, no death of its client, no request. It goes on then.
    pub fn set_going(&self) {
        if self.is_genuine() {
            set_going(&self.facts.moored);
        }
    }

    /// Whether it answers nobody any more: its socket is there, and nobody listens.
    pub fn has_closed(&self) -> bool {
        matches!(UnixStream::connect(&self.socket), Err(error) if error.kind() == io::ErrorKind::ConnectionRefused)
    }

    /// Whether the process that the file names is a moored that holds its lock. Anybody of this user can write such a file,
    /// and name whom it likes.
    fn is_genuine(&self) -> bool {
        let moored = self.facts.moored.pid;
        let program = |pid: &str| {
            let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
            let name = path.file_name()?.to_string_lossy().into_owned();
            Some(name.trim_end_matches(" (deleted)").to_owned())
        };
        let holds =
            fs::metadata(self.socket.with_extension(FILE)).is_ok_and(|file| holds_lock(moored, file.ino()));
        holds && program("self").is_some_and(|own| program(&moored.to_string()) == Some(own))
    }
}

/// Whether that process took the lock on that file, by the kernel's own list.
fn holds_lock(pid: u32, inode: u64) -> bool {
    // "1: FLOCK  ADVISORY  WRITE 4711 00:1b:12345 0 EOF"; "1: -> FLOCK …" is somebody who waits.
    let (pid, ending) = (pid.to_string(), format!(":{inode}"));
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    locks.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>()).any(|fields| {
        matches!(fields[..], [_, "FLOCK", _, _, locker, file, ..] if locker == pid && file.ends_with(&ending))
    })
}

/// Every live `run` of the user, the oldest first.
///
/// # Errors
/// If the folder cannot be read. A file in it that cannot be read or understood is passed over.
pub fn all(folder: &RuntimeDir) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for path in files(folder)? {
        if let Ok(Some(facts)) = look(&path) {
            let socket = path_of(folder.path(), facts.run, SOCKET);
            found.push(Found { facts, socket });
        }
    }
    found.sort_by_key(|found| found.facts.run);
    Ok(found)
}

/// Removes what dead ones left, and says who they were: whoever is told of a death is the only one.
///
/// # Errors
/// As for [`all`].
pub fn bury(folder: &RuntimeDir) -> io::Result<Vec<Facts>> {
    for leftover in paths_with(folder, DRAFT)?.iter().chain(&paths_with(folder, ROOM)?) {
        // What is held is locked.
        if open_plain(leftover).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(leftover);
        }
    }
    Ok(files(folder)?.iter().filter_map(|path| bury_one(path).ok().flatten()).collect())
}

fn files(folder: &RuntimeDir) -> io::Result<Vec<PathBuf>> {
    paths_with(folder, FILE)
}

fn paths_with(folder: &RuntimeDir, wanted: &str) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder.path())?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let is_ours = |path: &PathBuf| path.extension().is_some_and(|ending| ending == wanted);
    paths.filter(|path| path.as_ref().map_or(true, is_ours)).collect()
}

/// What the file says, if its `run` lives.
fn look(path: &Path) -> io::Result<Option<Facts>> {
    let file = open_plain(path)?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Ok(Some(serde_json::from_reader(BufReader::new(&file))?)),
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) => Ok(None),
    }
}

fn bury_one(path: &Path) -> io::Result<Option<Facts>> {
    let file = open_plain(path)?;
    if file.try_lock().is_err() || file.metadata()?.ino() != fs::metadata(path)?.ino() {
        // It lives, or somebody else is at it.
        return Ok(None);
    }
    let facts = serde_json::from_reader(BufReader::new(&file)).ok();
    fs::remove_file(path)?;
    let _ = fs::remove_file(path.with_extension(SOCKET));
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (PathBuf, RuntimeDir) {
        let path = std::env::temp_dir().join(format!("moored-berth-{}", RunId::generate()));
        let folder = RuntimeDir::at(&path).expect("a folder");
        (path, folder)
    }

    fn facts() -> Facts {
        Facts {
            run: RunId::generate(),
            moored: ProcessIdentity::of(std::process::id()).expect("us"),
            moored_version: "0".into(),
            name: "srv".into(),
            command: vec!["srv".into()],
            cwd: "/".into(),
            server_key: serde_json::from_str("1").expect("a key"),
            entry_key: serde_json::from_str("2").expect("a key"),
            client: None,
            client_holds_stdin: true,
            started_at: Timestamp::UNIX_EPOCH,
            log_file: None,
            pid_file: None,
            max_instances: None,
        }
    }

    #[test]
    fn a_berth_is_found_while_it_is_held_and_not_after() {
        let (path, folder) = folder();
        let facts = facts();
        let berth = Berth::take(&folder, &facts).expect("a berth");
        let found = all(&folder).expect("a folder");
        assert_eq!(found.iter().map(|f| &f.facts).collect::<Vec<_>>(), [&facts]);
        drop(berth);
        assert_eq!(all(&folder).expect("a folder"), []);
        fs::remove_dir(path).expect("nothing is left in it");
    }

    #[test]
    fn whoever_looks_while_a_berth_is_taken_does_not_take_it_away() {
        let (path, folder) = folder();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    all(&folder).expect("a folder");
                }
            });
            let taken: Vec<_> = (0..500).map(|_| Berth::take(&folder, &facts())).collect();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(taken.iter().filter_map(|taken| taken.as_ref().err()).count(), 0);
        });
        fs::remove_dir(path).expect("nothing is left in it");
    }

    #[test]
    fn only_who_holds_the_lock_is_taken_for_the_moored_that_the_file_names() {
        let (path, folder) = folder();
        let ours = facts();
        let berth = Berth::take(&folder, &ours).expect("a berth");
        let found = all(&folder).expect("a folder").pop().expect("ours");
        assert!(found.is_genuine());
        assert!(!found.has_closed(), "it has not even opened");
        drop(std::os::unix::net::UnixListener::bind(berth.socket()).expect("a socket"));
        assert!(found.has_closed());
        // The same file, as somebody else could write it.
        let other = ProcessIdentity::of(1).expect("there is a first process");
        let forged = Found { facts: Facts { moored: other, ..ours }, ..found };
        assert!(!forged.is_genuine());
        drop(berth);
        assert!(!Found { facts: facts(), ..forged }.is_genuine(), "there is no lock to hold");
        fs::remove_dir(path).expect("nothing is left in it");
    }

    #[test]
    fn what_a_dead_run_left_is_removed() {
        let (path, folder) = folder();
        let berth = Berth::take(&folder, &facts()).expect("a berth");
        let (file, socket) = (path_of(&berth.folder, berth.run, FILE), berth.socket());
        fs::write(&socket, "").expect("a file");
        let text = fs::read(&file).expect("the file");
        drop(berth);
        fs::write(&file, text).expect("a file that nobody locks");
        assert_eq!(all(&folder).expect("a folder"), []);
        assert_eq!(bury(&folder).expect("a folder").len(), 1);
        assert_eq!(bury(&folder).expect("a folder"), []);
        fs::remove_dir(path).expect("nothing is left in it");
    }
}
