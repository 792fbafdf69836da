//! Copies of programs that every user can run, in `/tmp/moored-testkit-UID/BUILD/NAME`.
//!
//! Many tests ask at once, from threads and from processes: a copy gets its name only when it is whole, and of two who
//! make the same copy the first one's stays.

#![expect(clippy::disallowed_methods, reason = "cp is no server, and is waited for")]

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// How many builds of one program stay. More than one: somebody may rebuild while our tests still run the last.
const BUILDS_KEPT: usize = 3;

/// The copy of `source`, made if need be.
pub(super) fn for_everyone(source: &Path) -> io::Result<PathBuf> {
    let metadata = fs::metadata(source)?;
    let name = source.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let home = PathBuf::from(format!("/tmp/moored-testkit-{}", rustix::process::geteuid().as_raw()));
    let folder = home.join(format!("{}-{}", hash(source.as_os_str().as_bytes()), hash(&identity(&metadata))));
    let copy = folder.join(name);
    own_folder(&home)?;
    own_folder(&folder)?;
    if !copy.exists() {
        make(source, &copy)?;
        forget_old_builds(&home, &folder);
    }
    Ok(copy)
}

fn identity(metadata: &Metadata) -> impl Hash + use<> {
    (metadata.mtime(), metadata.mtime_nsec(), metadata.size())
}

fn hash(value: &(impl Hash + ?Sized)) -> String {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Makes sure that the folder is ours, all may enter it and nobody else may write to it: others own files in `/tmp` too.
fn own_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o755).create(path) {
        // The umask may have taken from it.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o755))?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let metadata = fs::symlink_metadata(path)?;
    let is_ours = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
    if is_ours && metadata.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::other(format!("`{}` is not a folder of ours alone", path.display())))
}

/// `cp` copies, and not we: an fd open for writing here could be inherited by a child that another thread forks at this
/// moment, and would make the first start of the copy fail with ETXTBSY.
fn make(source: &Path, copy: &Path) -> io::Result<()> {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let part = copy.with_extension(format!("part-{}-{serial}", std::process::id()));
    let output = Command::new("cp").arg("--").arg(source).arg(&part).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    fs::set_permissions(&part, Permissions::from_mode(0o755))?;
    // Not over a copy that another has made meanwhile: whoever runs it already would run a deleted file.
    let linked = fs::hard_link(&part, copy);
    fs::remove_file(&part)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Debug builds are large, and each edit makes another. Best effort: what cannot be removed only takes space.
fn forget_old_builds(home: &Path, newest: &Path) {
    let prefix =
        newest.file_name().and_then(|name| name.to_str()?.split_once('-')).map_or("", |split| split.0);
    let folders = fs::read_dir(home).into_iter().flatten().flatten().filter(|entry| {
        !prefix.is_empty()
            && entry.file_name().to_string_lossy().starts_with(prefix)
            && entry.path() != newest
    });
    let mut builds: Vec<_> =
        folders.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    builds.sort();
    for (_, folder) in builds.iter().rev().skip(BUILDS_KEPT - 1) {
        let _ = fs::remove_dir_all(folder);
    }
}
