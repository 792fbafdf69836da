//! Opening the file: making it, for its user alone; and moving aside what is no database any more.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use rusqlite::{Connection, OpenFlags};

use super::{BUSY, REST, SqliteLedger, fault, patiently, schema};
use crate::ledger::{DatabaseFault, LedgerError};
use crate::places::StateDir;
use moored_registry::private_file;

impl SqliteLedger {
    /// Opens the history in this folder; makes it if there is none.
    ///
    /// # Errors
    /// If it cannot be opened, or is no database, or a newer moored has written it.
    pub fn open(state: &StateDir) -> Result<Self, LedgerError> {
        let path = state.database();
        let file_error = |error| LedgerError::File { path: path.clone(), error };
        state.prepare().map_err(file_error)?;
        let presence = Presence::announce(state).map_err(file_error)?;
        make(&path).map_err(file_error)?;
        let (db, found) = patiently(|| connect(&path).map_err(|error| fault(&path, &error)))?;
        if found > schema::NEWEST {
            return Err(LedgerError::Newer { path, found, known: schema::NEWEST });
        }
        Ok(Self { db, path, _presence: presence })
    }

    /// As [`SqliteLedger::open`], but a file that is no database is moved aside and a new one begun; the text says so.
    ///
    /// # Errors
    /// If that does not help.
    pub fn open_or_begin_anew(state: &StateDir) -> Result<(Self, Option<String>), LedgerError> {
        match Self::open(state) {
            Err(error) if error.fault() == Some(DatabaseFault::Corrupt) => {
                let warning = Self::set_aside_if_damaged(state, &error.to_string())?;
                Ok((Self::open(state)?, warning))
            }
            opened => Ok((opened?, None)),
        }
    }

    /// Moves a damaged file aside, and says so. `why` is the error that showed the damage.
    pub(in crate::ledger) fn set_aside_if_damaged(
        state: &StateDir,
        why: &str,
    ) -> Result<Option<String>, LedgerError> {
        let aside = set_aside(state)?;
        Ok(aside.map(|aside| {
            format!("history was damaged ({why}); it is kept as `{}`, and a new one begun", aside.display())
        }))
    }
}

/// A shared lock that says, while this value lives, that a process has the file open: it must not be moved then. A connection whose file is
/// moved under it finds the write-ahead log by its name, which is that of the new file by then, and spoils it.
#[derive(Debug)]
pub(super) struct Presence {
    _lock: File,
}

impl Presence {
    fn file(state: &StateDir) -> io::Result<File> {
        private_file()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(beside(&state.database(), "-lock"))
    }

    fn announce(state: &StateDir) -> io::Result<Self> {
        let lock = Self::file(state)?;
        // Waits only while another process moves the file. On a file system without locks no process moves it: `alone` fails.
        let _ = lock.lock_shared();
        Ok(Self { _lock: lock })
    }

    /// Waits until no process has it open.
    fn alone(state: &StateDir) -> io::Result<Self> {
        let lock = Self::file(state)?;
        let deadline = Instant::now() + BUSY;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { _lock: lock }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(REST),
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::ResourceBusy.into()),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

/// Makes an empty file, for the user alone: SQLite would make it for all to read, and what it adds beside it gets the
/// rights that this has. It gets its name when it is closed already: to close a file gives up all locks that this
/// process has on it, those of other threads too.
fn make(path: &Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let draft = beside(path, &format!(".{}", ulid::Ulid::generate()));
    drop(private_file().write(true).create_new(true).open(&draft)?);
    let linked = fs::hard_link(&draft, path);
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn connect(path: &Path) -> rusqlite::Result<(Connection, i64)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(BUSY)?;
    let found = schema::version(&db)?;
    if found > schema::NEWEST {
        return Ok((db, found));
    }
    // Before anything is written, or it has no effect.
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    let journal = if is_shared(path) { "TRUNCATE" } else { "WAL" };
    db.pragma_update(None, "journal_mode", journal)?;
    db.pragma_update(None, "synchronous", "NORMAL")?;
    // In KiB: a batch touches few pages, and there is one of us per server.
    db.pragma_update(None, "cache_size", -256)?;
    let found = schema::migrate(&mut db)?;
    Ok((db, found))
}

/// Whether other machines may have the file open too.
fn is_shared(path: &Path) -> bool {
    // NFS, SMB (three generations), AFS, Ceph, Coda, 9P, and whatever a program makes up.
    const SHARED: [u32; 9] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x5346_414f,
        0x00c3_6400,
        0x7375_7245,
        0x0102_1997,
        0x6573_5546,
    ];
    rustix::fs::statfs(path).is_ok_and(|system| SHARED.contains(&(system.f_type as u32)))
}

/// How many damaged files are kept; after that the last one is replaced.
const KEPT: u32 = 9;

/// Moves a damaged file aside when no process has it open. If another process has done so before, the file that is there is
/// whole, and stays.
fn set_aside(state: &StateDir) -> Result<Option<PathBuf>, LedgerError> {
    let database = state.database();
    let file_error = |error| LedgerError::File { path: database.clone(), error };
    let _alone = Presence::alone(state).map_err(file_error)?;
    if is_whole(&database) {
        return Ok(None);
    }
    let aside = (1..KEPT)
        .map(|n| beside(&database, &format!(".corrupt-{n}")))
        .find(|path| !path.exists())
        .unwrap_or_else(|| beside(&database, &format!(".corrupt-{KEPT}")));
    // The log before the file: a log that is found beside a new file would be played into it.
    for ending in ["-wal", "-shm", "-journal", ""] {
        rename_if_there(&beside(&database, ending), &beside(&aside, ending)).map_err(file_error)?;
    }
    Ok(Some(aside))
}

fn is_whole(database: &Path) -> bool {
    let checked = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|db| {
        db.busy_timeout(BUSY)?;
        db.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))
    });
    match checked {
        Ok(verdict) => verdict == "ok",
        // Only proof of damage moves it.
        Err(error) => fault(database, &error).fault() != Some(DatabaseFault::Corrupt),
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed,
    }
}
