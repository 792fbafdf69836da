//! The cgroup v2 leaf of a session, by plain files.
//!
//! The hierarchy is found by its mount, wherever that is: alone at `/sys/fs/cgroup`, or beside v1 at `…/unified`. The
//! leaf is made inside our own group, which root can always do and a plain user where that group was delegated to it.
//! No controller is switched on: all we want of it are `cgroup.kill` and `populated`.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A leaf, and the group around it.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) path: PathBuf,
    leaf: OwnedFd,
    parent: OwnedFd,
}

impl Leaf {
    pub(crate) fn leaf(&self) -> BorrowedFd<'_> {
        self.leaf.as_fd()
    }

    pub(crate) fn parent(&self) -> BorrowedFd<'_> {
        self.parent.as_fd()
    }

    /// Stops everything in it, or lets it go on. What is stopped can still be killed, and cannot fork.
    pub(crate) fn set_frozen(&self, frozen: bool) -> io::Result<()> {
        fs::write(self.path.join("cgroup.freeze"), if frozen { "1" } else { "0" })
    }

    /// Takes one process out of it, into the group around it.
    pub(crate) fn move_out(&self, pid: u32) {
        if let (true, Some(parent)) = (self.members().contains(&pid), self.path.parent()) {
            let _ = fs::write(parent.join("cgroup.procs"), pid.to_string());
        }
    }

    /// The processes in it.
    pub(crate) fn members(&self) -> Vec<u32> {
        let list = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        list.lines().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Removes it if it is empty, with the empty groups inside it. An error means that it is not.
    pub(crate) fn remove(&self) -> io::Result<()> {
        remove(&self.path)
    }
}

/// Why a leaf cannot be had: a sentence, with the kernel's own word where there was one.
#[derive(Debug)]
pub(crate) struct NoLeaf {
    pub(crate) why: String,
    pub(crate) source: Option<io::Error>,
}

impl NoLeaf {
    fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), source: None }
    }

    fn failed(what: String, source: io::Error) -> Self {
        Self { why: format!("{what}: {source}"), source: Some(source) }
    }
}

/// Where the leaf `name` would be.
pub(crate) fn leaf_path(name: &str) -> Result<PathBuf, NoLeaf> {
    Ok(own_group()?.join(name))
}

/// Makes that leaf.
pub(crate) fn make_leaf(path: &Path) -> Result<Leaf, NoLeaf> {
    let parent = path.parent().ok_or_else(|| NoLeaf::because("the root group has no parent"))?;
    fs::create_dir(path)
        .map_err(|error| NoLeaf::failed(format!("failed to make the group `{}`", path.display()), error))?;
    match open_leaf(parent, path) {
        Ok(leaf) => Ok(leaf),
        Err(error) => {
            let _ = fs::remove_dir(path);
            Err(error)
        }
    }
}

fn open_leaf(parent: &Path, path: &Path) -> Result<Leaf, NoLeaf> {
    if !path.join("cgroup.kill").exists() {
        return Err(NoLeaf::because("this kernel's groups have no cgroup.kill (Linux 5.14)"));
    }
    let open = |path: &Path| {
        File::open(path)
            .map(OwnedFd::from)
            .map_err(|error| NoLeaf::failed(format!("failed to open the group `{}`", path.display()), error))
    };
    Ok(Leaf { path: path.to_path_buf(), leaf: open(path)?, parent: open(parent)? })
}

/// A recorded leaf that is still there. It must be a leaf of that name in a v2 hierarchy, whatever the record says.
pub(crate) fn adopt_leaf(path: &Path, name: &str) -> Option<Leaf> {
    let mount = mounts().ok()?.iter().find(|mount| path.starts_with(mount))?;
    let plain = path.components().all(|part| !matches!(part, std::path::Component::ParentDir));
    let named = path.file_name().is_some_and(|last| last == name);
    let parent = path.parent().filter(|parent| parent.starts_with(mount))?;
    if plain && named { open_leaf(parent, path).ok() } else { None }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Ok(()) => return Ok(()),
        Err(_) => {}
    }
    for entry in fs::read_dir(path)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(path)
}

/// Every mount of the v2 hierarchy. Looked up once: it is not moved while programs run.
fn mounts() -> Result<&'static [PathBuf], NoLeaf> {
    static MOUNTS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    if let Some(known) = MOUNTS.get() {
        return Ok(known);
    }
    let mounts = fs::read_to_string("/proc/self/mounts")
        .map_err(|error| NoLeaf::failed("failed to read the mounts".into(), error))?;
    let found = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (_, at, kind) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(at.replace("\\040", " ")))
    });
    Ok(MOUNTS.get_or_init(|| found.collect()))
}

/// Our own group in the v2 hierarchy.
fn own_group() -> Result<PathBuf, NoLeaf> {
    let mount = mounts()?.first().ok_or_else(|| NoLeaf::because("no cgroup v2 hierarchy is mounted"))?;
    let groups = fs::read_to_string("/proc/self/cgroup")
        .map_err(|error| NoLeaf::failed("failed to read our own group".into(), error))?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let own = own.ok_or_else(|| NoLeaf::because("we are in no cgroup v2 group"))?;
    if own.split('/').any(|part| part == "..") {
        return Err(NoLeaf::because(format!("our own group `{own}` lies outside of the mounted hierarchy")));
    }
    Ok(mount.join(own.trim_start_matches('/')))
}
