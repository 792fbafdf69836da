//! Pipes, locks, random numbers, and folders that belong to one user only.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};
use rustix::pipe::PipeFlags;

use crate::record::passwd::passwd_home;

/// An opened folder and where it is.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    pub(crate) fd: OwnedFd,
}

/// Reading end, writing end; neither survives an exec.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}

pub(crate) fn open_null() -> io::Result<OwnedFd> {
    Ok(File::options().read(true).write(true).open("/dev/null")?.into())
}

#[cfg(feature = "tokio")]
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}

#[cfg(feature = "tokio")]
pub(crate) fn read_fd(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(fd, into)?)
}

#[cfg(feature = "tokio")]
pub(crate) fn write_fd(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::write(fd, bytes)?)
}

pub(crate) fn random_u64() -> io::Result<u64> {
    let mut bytes = [0_u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

/// The user we act as.
pub(crate) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A place for a user's runtime files.
#[derive(Debug)]
pub(crate) struct UserFolder {
    /// What must be there already.
    parent: PathBuf,
    /// The folder itself.
    pub(crate) path: PathBuf,
}

impl UserFolder {
    fn new(parent: impl Into<PathBuf>, below: impl AsRef<Path>) -> Self {
        let parent = parent.into();
        Self { path: parent.join(below), parent }
    }

    /// Opens it, making what is missing below the parent.
    pub(crate) fn make(&self) -> io::Result<Folder> {
        fs::metadata(&self.parent)?;
        fs::DirBuilder::new().mode(0o700).recursive(true).create(&self.path)?;
        open_private_folder(&self.path)
    }
}

/// Where a user's runtime files may go, the best place first: by number, because clients filter the environment. In
/// `/tmp` and `/dev/shm` another user may have taken the name; no other user can write in the user's home.
pub(crate) fn user_folders(uid: u32) -> Vec<UserFolder> {
    let is_users =
        |path: &Path| fs::metadata(path).is_ok_and(|folder| folder.is_dir() && folder.uid() == uid);
    let run = PathBuf::from(format!("/run/user/{uid}"));
    let mut folders = Vec::new();
    if is_users(&run) {
        folders.push(UserFolder::new(run, "moored"));
    }
    folders.extend(["/tmp", "/dev/shm"].map(|parent| UserFolder::new(parent, format!("moored-{uid}"))));
    // A home that is not there, or that system users share, is none.
    if let Some(home) = passwd_home(uid).filter(|home| is_users(home)) {
        folders.push(UserFolder::new(home, ".local/state/moored/run"));
    }
    folders
}

/// Opens a folder that no other user can write to or read, making it if it is not there.
pub(crate) fn make_private_folder(path: &Path) -> io::Result<Folder> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => open_private_folder(path),
    }
}

/// Opens a folder that is there, and that no other user can write to or read.
pub(crate) fn open_private_folder(path: &Path) -> io::Result<Folder> {
    // Opened without following a link, and then judged by what was opened: /tmp is everybody's. By O_PATH, for which
    // another user's folder need not be readable.
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::PATH;
    let found = rustix::fs::open(path, flags, rustix::fs::Mode::empty())?;
    let stat = rustix::fs::fstat(found.as_fd())?;
    if stat.st_uid != own_user() || stat.st_mode & 0o077 != 0 {
        let who = format!(
            "`{}` belongs to uid {} with mode {:o}, not to uid {} alone",
            path.display(),
            stat.st_uid,
            stat.st_mode & 0o777,
            own_user()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, who));
    }
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
    let fd = rustix::fs::openat(found.as_fd(), ".", flags, rustix::fs::Mode::empty())?;
    Ok(Folder { path: path.to_path_buf(), fd })
}

/// Opens a plain file to read. A link is not followed, and what is no plain file (a pipe would block us) is refused.
pub(crate) fn open_regular_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Takes the lock if it is free; whether it is ours now. It goes with the last copy of the file, in any process.
pub(crate) fn lock_exclusively(file: &File) -> io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A lack that the caller can do something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    Files,
    Processes,
    Other,
}

impl Shortage {
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => Self::Files,
            Some(libc::EAGAIN) => Self::Processes,
            _ => Self::Other,
        }
    }
}

/// The error of a process that may not open another file.
pub(crate) fn out_of_files() -> io::Error {
    io::Error::from_raw_os_error(libc::EMFILE)
}

/// Our own three files; `None` for one that is closed, whose number may stand for anything by now.
pub(crate) fn stdio() -> [Option<BorrowedFd<'static>>; 3] {
    [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()]
        .map(|fd| rustix::io::fcntl_getfd(fd).is_ok_and(|flags| flags.is_empty()).then_some(fd))
}
