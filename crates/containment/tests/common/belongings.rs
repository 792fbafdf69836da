//! What a host has that could pile up in it; of a part, which has a process, a folder of records and a group of its own.

use std::fs;
use std::path::{Path, PathBuf};

use super::part;
use super::traces::names;

/// All of it, at one moment. Two of them are compared.
#[derive(Debug, PartialEq)]
pub(crate) struct Belongings {
    files: Vec<String>,
    pub(crate) threads: usize,
    children: String,
    records: Vec<PathBuf>,
    leaves: Vec<PathBuf>,
    shared_memory: Vec<PathBuf>,
}

impl Belongings {
    pub(crate) fn now() -> Self {
        let tasks = names(Path::new("/proc/self/task"));
        // The listing's own file is gone by the time its link is read.
        let files = names(Path::new("/proc/self/fd")).into_iter().filter_map(|fd| fs::read_link(fd).ok());
        let files = files.map(|file| file.display().to_string());
        let children = |task: &PathBuf| fs::read_to_string(task.join("children")).unwrap_or_default();
        let folder = std::env::var_os("MOORED_RUNTIME_DIR").expect("a folder of the part's own");
        let is_leaf = |path: &PathBuf| path.is_dir() && is_ours(path);
        let leaves = part::group().map(|group| names(&group)).unwrap_or_default();
        Self {
            // The guardian's image is opened once, by the first session, and stays.
            files: files.filter(|file| !file.starts_with("/memfd:moored-guardian")).collect(),
            threads: tasks.len(),
            children: tasks.iter().map(children).collect(),
            records: names(Path::new(&folder)),
            leaves: leaves.into_iter().filter(is_leaf).collect(),
            shared_memory: names(Path::new("/dev/shm")).into_iter().filter(|path| is_ours(path)).collect(),
        }
    }

    /// There are no sessions, so there is nothing of them.
    #[track_caller]
    pub(crate) fn assert_nothing_of_sessions(&self) {
        let of_sessions = self.records.len() + self.leaves.len() + self.shared_memory.len();
        assert!(self.children.is_empty() && of_sessions == 0, "{self:?}");
    }
}

fn is_ours(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("moored"))
}
