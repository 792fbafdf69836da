//! Who runs a test's programs: root, and a plain user whom the machine need not know.
//!
//! When the tests do not run as root there is only the plain user, which is then whoever runs them.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::path::{Path, PathBuf};

/// The plain user under root. Not `nobody`, whose processes might be somebody else's; it needs no entry in passwd.
pub const PLAIN_UID: u32 = 47110;
/// The plain user's group.
pub const PLAIN_GID: u32 = 47110;

/// A user to run programs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum User {
    /// uid 0.
    Root,
    /// [`PLAIN_UID`] when the tests run as root, else the user who runs them.
    Plain,
}

impl User {
    /// Whom the tests can act as here.
    pub fn available() -> Vec<Self> {
        if is_root() { vec![Self::Root, Self::Plain] } else { vec![Self::Plain] }
    }

    /// The user who runs the tests.
    pub fn current() -> Self {
        if is_root() { Self::Root } else { Self::Plain }
    }

    /// The uid that its programs have.
    pub fn uid(self) -> u32 {
        match self {
            Self::Root => 0,
            Self::Plain if is_root() => PLAIN_UID,
            Self::Plain => rustix::process::geteuid().as_raw(),
        }
    }

    /// The gid that its programs have.
    pub fn gid(self) -> u32 {
        match self {
            Self::Root => 0,
            Self::Plain if is_root() => PLAIN_GID,
            Self::Plain => rustix::process::getegid().as_raw(),
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A fresh folder that belongs to a user, and that goes when this value goes. Its path is short enough for sockets.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A folder under `/tmp`, whatever `TMPDIR` says: the plain user must be able to enter it.
    pub fn for_user(user: User) -> Self {
        let path = fresh_folder().expect("a new folder under /tmp");
        chown(&path, Some(user.uid()), Some(user.gid())).expect("a folder of our own to give away");
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path in it; nothing is created.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn fresh_folder() -> io::Result<PathBuf> {
    loop {
        let mut bytes = [0; 4];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        let path = PathBuf::from(format!("/tmp/mt-{:08x}", u32::from_ne_bytes(bytes)));
        match DirBuilder::new().mode(0o755).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}
