//! Finding registered sessions, asking them over their control sockets, and removing the registrations of killed ones.

use std::fs::{self, TryLockError};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use moored_containment::RuntimeDir;
use moored_containment::process::{lockers, resume_if_stopped};

use crate::control::{Reply, Request};
use crate::limit::ROOM;
use crate::private_files::open_regular_file;
use crate::registration::{DRAFT, FILE, SOCKET, path_of};
use crate::run_info::{Origin, RunInfo};

/// A session that was found by its registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredRun {
    /// What it has registered.
    pub info: RunInfo,
    socket: PathBuf,
}

impl RegisteredRun {
    /// Every live session that is registered in this folder, the oldest first.
    ///
    /// The registration of a killed `moored-client` host is removed here; that of a killed moored is left to [`remove_dead`],
    /// whose caller writes its end into history.
    ///
    /// # Errors
    /// If the folder cannot be read. A file in it that cannot be read or understood is passed over.
    pub fn all(folder: &RuntimeDir) -> io::Result<Vec<Self>> {
        let mut found = Vec::new();
        for path in paths_with(folder, FILE)? {
            match read(&path) {
                Ok((Holder::Alive, info)) => {
                    let socket = path_of(folder.path(), info.run, SOCKET);
                    found.push(Self { info, socket });
                }
                Ok((Holder::Dead, info)) if info.origin == Origin::Client => {
                    // Another process may be removing it too.
                    let _ = remove_if_dead(&path);
                }
                Ok((Holder::Dead, _)) | Err(_) => {}
            }
        }
        found.sort_by_key(|found| found.info.order());
        Ok(found)
    }

    /// Asks the session over its control socket. Blocks for up to `timeout`, for writing and for each read.
    ///
    /// # Errors
    /// If it does not answer in time, or has ended meanwhile.
    pub fn ask(&self, request: &Request, timeout: Duration) -> io::Result<Reply> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
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

    /// Sends SIGCONT to the moored process if it is stopped (`T` state): a stopped one sees neither EOF, nor the death of its
    /// client, nor a request. The host of a `moored-client` set is not ours to continue, and is left as it is.
    pub fn resume_if_stopped(&self) {
        if self.info.origin != Origin::Client && self.is_genuine() {
            resume_if_stopped(&self.info.moored);
        }
    }

    /// Whether the session has ended. One of `run` has when its process has; of the others, a process may have many.
    pub fn has_ended(&self) -> bool {
        let is_registered = || self.info.origin == Origin::Run || self.socket.with_extension(FILE).exists();
        // A process that cannot be looked at counts as alive.
        !self.info.moored.is_alive().unwrap_or(true) || !is_registered()
    }

    /// Whether it takes no requests any more: its socket is there, and no process listens on it.
    pub fn has_closed(&self) -> bool {
        matches!(UnixStream::connect(&self.socket), Err(error) if error.kind() == io::ErrorKind::ConnectionRefused)
    }

    /// Whether the process that the file names holds the file's lock and runs the same program as we do. Any process of this
    /// user can write a file that names another process.
    fn is_genuine(&self) -> bool {
        let moored = self.info.moored.pid;
        let program = |pid: &str| {
            let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
            let name = path.file_name()?.to_string_lossy().into_owned();
            Some(name.trim_end_matches(" (deleted)").to_owned())
        };
        let is_locker = |file: fs::Metadata| lockers(file.ino()).is_ok_and(|pids| pids.contains(&moored));
        let holds = fs::metadata(self.socket.with_extension(FILE)).is_ok_and(is_locker);
        holds && program("self").is_some_and(|own| program(&moored.to_string()) == Some(own))
    }
}

/// Removes the registrations of sessions that were killed, and returns what those had registered that belong into history: all
/// but the ones of `moored-client` hosts. Each is returned to one caller only, so that its end is written down once.
///
/// # Errors
/// If the folder cannot be read.
pub fn remove_dead(folder: &RuntimeDir) -> io::Result<Vec<RunInfo>> {
    for leftover in paths_with(folder, DRAFT)?.iter().chain(&paths_with(folder, ROOM)?) {
        // One that is in use is locked.
        if open_regular_file(leftover).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(leftover);
        }
    }
    Ok(paths_with(folder, FILE)?
        .iter()
        .filter_map(|path| remove_if_dead(path).ok().flatten())
        .filter(|info| info.origin != Origin::Client)
        .collect())
}

fn paths_with(folder: &RuntimeDir, wanted: &str) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder.path())?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let is_ours = |path: &PathBuf| path.extension().is_some_and(|ending| ending == wanted);
    paths.filter(|path| path.as_ref().map_or(true, is_ours)).collect()
}

/// Whether the process that registered a session still holds the lock.
enum Holder {
    Alive,
    Dead,
}

fn read(path: &Path) -> io::Result<(Holder, RunInfo)> {
    let file = open_regular_file(path)?;
    let holder = match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Holder::Alive,
        Err(TryLockError::Error(error)) => return Err(error),
        Ok(()) => {
            file.unlock()?;
            Holder::Dead
        }
    };
    Ok((holder, serde_json::from_reader(BufReader::new(&file))?))
}

fn remove_if_dead(path: &Path) -> io::Result<Option<RunInfo>> {
    let file = open_regular_file(path)?;
    if file.try_lock().is_err() || file.metadata()?.ino() != fs::metadata(path)?.ino() {
        // It lives, or another process is removing it.
        return Ok(None);
    }
    let info = serde_json::from_reader(BufReader::new(&file)).ok();
    fs::remove_file(path)?;
    let _ = fs::remove_file(path.with_extension(SOCKET));
    Ok(info)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use moored_containment::ProcessIdentity;

    use super::*;
    use crate::boot_time::millis_since_boot;
    use crate::registration::RunRegistration;
    use crate::run_id::RunId;

    fn folder() -> (PathBuf, RuntimeDir) {
        let path = std::env::temp_dir().join(format!("moored-registration-{}", RunId::generate()));
        let folder = RuntimeDir::at(&path).expect("a folder");
        (path, folder)
    }

    fn info() -> RunInfo {
        RunInfo {
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
            origin: Origin::Run,
            began_ms: Some(millis_since_boot()),
            session: None,
            started_at: Timestamp::UNIX_EPOCH,
            log_file: None,
            pid_file: None,
            max_instances: None,
        }
    }

    #[test]
    fn a_registration_is_found_while_it_is_held_and_not_after() {
        let (path, folder) = folder();
        let info = info();
        let registration = RunRegistration::take(&folder, &info).expect("a registration");
        let found = RegisteredRun::all(&folder).expect("a folder");
        assert_eq!(found.iter().map(|f| &f.info).collect::<Vec<_>>(), [&info]);
        drop(registration);
        assert_eq!(RegisteredRun::all(&folder).expect("a folder"), []);
        fs::remove_dir(path).expect("nothing is left in it");
    }

    #[test]
    fn whoever_looks_while_a_registration_is_taken_does_not_take_it_away() {
        let (path, folder) = folder();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    RegisteredRun::all(&folder).expect("a folder");
                }
            });
            let taken: Vec<_> = (0..500).map(|_| RunRegistration::take(&folder, &info())).collect();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(taken.iter().filter_map(|taken| taken.as_ref().err()).count(), 0);
        });
        fs::remove_dir(path).expect("nothing is left in it");
    }

    #[test]
    fn only_who_holds_the_lock_is_taken_for_the_moored_that_the_file_names() {
        let (path, folder) = folder();
        let ours = info();
        let registration = RunRegistration::take(&folder, &ours).expect("a registration");
        let found = RegisteredRun::all(&folder).expect("a folder").pop().expect("ours");
        assert!(found.is_genuine());
        assert!(!found.has_closed(), "it has not even opened");
        drop(std::os::unix::net::UnixListener::bind(registration.socket()).expect("a socket"));
        assert!(found.has_closed());
        // The same file, as somebody else could write it.
        let other = ProcessIdentity::of(1).expect("there is a first process");
        let forged = RegisteredRun { info: RunInfo { moored: other, ..ours }, ..found };
        assert!(!forged.is_genuine());
        drop(registration);
        assert!(!RegisteredRun { info: info(), ..forged }.is_genuine(), "there is no lock to hold");
        fs::remove_dir(path).expect("nothing is left in it");
    }

    #[test]
    fn what_a_dead_run_left_is_removed() {
        let (path, folder) = folder();
        let registration = RunRegistration::take(&folder, &info()).expect("a registration");
        let (file, socket) = (registration.socket().with_extension(FILE), registration.socket());
        fs::write(&socket, "").expect("a file");
        let text = fs::read(&file).expect("the file");
        drop(registration);
        fs::write(&file, text).expect("a file that nobody locks");
        assert_eq!(RegisteredRun::all(&folder).expect("a folder"), []);
        assert_eq!(remove_dead(&folder).expect("a folder").len(), 1);
        assert_eq!(remove_dead(&folder).expect("a folder"), []);
        fs::remove_dir(path).expect("nothing is left in it");
    }

    #[test]
    fn what_a_dead_client_library_left_is_removed_by_the_next_look_and_is_not_for_history() {
        for remove in [
            |folder: &RuntimeDir| RegisteredRun::all(folder).map(|all| all.len()),
            |folder: &RuntimeDir| remove_dead(folder).map(|dead| dead.len()),
        ] {
            let (path, folder) = folder();
            let of_library = RunInfo { origin: Origin::Client, ..info() };
            let registration = RunRegistration::take(&folder, &of_library).expect("a registration");
            let (file, socket) = (registration.socket().with_extension(FILE), registration.socket());
            let text = fs::read(&file).expect("the file");
            drop(registration);
            fs::write(&file, text).expect("a file that nobody locks");
            fs::write(&socket, "").expect("a file");
            assert_eq!(remove(&folder).expect("a folder"), 0);
            fs::remove_dir(path).expect("nothing is left in it");
        }
    }
}
