//! A cgroup that root delegates to the plain user, as systemd does it for a user's services.

use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::time::Duration;

use moored_testkit::{Mark, User, wait_until};

/// Where the v2 hierarchy is mounted: alone at `/sys/fs/cgroup`, or beside v1.
fn mount() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").expect("/proc");
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (at, kind) = (fields.next()?, fields.next()?);
        (kind == "cgroup2").then(|| at.into())
    })
}

/// The group of a live process, as a folder; `None` if there is no such process, or no such hierarchy.
pub(crate) fn group_of(pid: u32) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(mount()?.join(own))
}

/// A group of the plain user's. Removed, with what is left in it, when this value goes.
pub(crate) struct Delegated {
    path: PathBuf,
}

impl Delegated {
    pub(crate) fn make(name: Mark) -> Self {
        let around = group_of(std::process::id()).expect("a cgroup v2 hierarchy");
        let path = around.join(format!("mt-{:x}", name.value()));
        fs::create_dir(&path).expect("a new group");
        let delegated = Self { path };
        for file in ["", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"] {
            let (uid, gid) = (User::Plain.uid(), User::Plain.gid());
            chown(delegated.path.join(file), Some(uid), Some(gid)).expect("a file of the group");
        }
        delegated
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        // A process that was just reaped may hold its group for another moment.
        let gone = || remove(&self.path).is_ok().then_some(());
        if std::thread::panicking() {
            let _ = gone();
        } else {
            wait_until("the delegated group can be removed", Duration::from_secs(10), gone);
        }
    }
}

fn remove(group: &Path) -> io::Result<()> {
    for entry in fs::read_dir(group)?.flatten() {
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}
