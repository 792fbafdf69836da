//! A cgroup of a test's own.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::time::Duration;

use moored_testkit::{Mark, User, wait_until};

/// A group in the v2 hierarchy, handed to a user as a session manager would do it; removed with this value, by when
/// nobody may be in it.
#[derive(Debug)]
pub(crate) struct Group {
    path: PathBuf,
}

impl Group {
    /// `None` where no group can be made.
    pub(crate) fn for_user(user: User) -> Option<Self> {
        let path = own_group()?.join(format!("mt-{:016x}", Mark::fresh().value()));
        fs::create_dir(&path).ok()?;
        let group = Self { path };
        for file in ["", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"] {
            chown(group.path.join(file), Some(user.uid()), Some(user.gid())).ok()?;
        }
        Some(group)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The groups inside it.
    pub(crate) fn leaves(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.path).expect("a group");
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect()
    }

    /// Who is in the group itself.
    pub(crate) fn members(&self) -> Vec<u32> {
        moored_testkit::read_pids(self.path.join("cgroup.procs"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for leaf in self.leaves() {
                let _ = fs::remove_dir(leaf);
            }
            let _ = fs::remove_dir(&self.path);
            return;
        }
        // Whoever was just reaped may hold its group for another moment.
        wait_until("an empty group", Duration::from_secs(10), || fs::remove_dir(&self.path).ok());
    }
}

/// Where we are in the v2 hierarchy, wherever that is mounted.
pub(crate) fn own_group() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?.split(' ').nth(1)?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(mount).join(own))
}
