//! Which processes hold an end of a pipe, as far as this user may look.
//!
//! The files of a process are those of its threads. `/proc/PID/fd` is the first thread's: once that thread has ended it is
//! empty, and denied to a plain user, while the other threads and their files live on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::held::HeldProcess;
use crate::sys;

/// One of the two ends of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipeEnd {
    /// What is written is read here.
    Reading,
    /// Opened for writing, or for both.
    Writing,
}

/// Whether a process can be seen to hold that end of the pipe with this inode.
#[must_use]
pub fn holds_pipe(pid: u32, inode: u64, end: PipeEnd) -> bool {
    let name = format!("pipe:[{inode}]");
    let Ok(task) = task_with_files(pid) else { return false };
    let Ok(files) = fs::read_dir(task.join("fd")) else { return false };
    files.flatten().any(|file| {
        fs::read_link(file.path()).is_ok_and(|link| link.as_os_str() == name.as_str())
            && is_end(&task.join("fdinfo").join(file.file_name()), end)
    })
}

/// Every process that can be seen to hold that end of the pipe. It reads the files of all processes: some milliseconds.
#[must_use]
pub fn holders_of_pipe(inode: u64, end: PipeEnd) -> Vec<HeldProcess> {
    let holds = |pid: u32| holds_pipe(pid, inode, end);
    let pids = sys::process_ids().unwrap_or_default().into_iter().filter(|pid| holds(*pid));
    // Looked at again once it is held: the number may have passed to another process.
    pids.filter_map(|pid| HeldProcess::with_pid(pid, || holds(pid))).collect()
}

/// Whether the files of a process are denied to us: it is another user's, or not dumpable.
#[must_use]
pub fn files_are_denied(pid: u32) -> bool {
    task_with_files(pid).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// The `/proc` folder of a thread of the process whose files can be read; the first thread's if none has any.
fn task_with_files(pid: u32) -> io::Result<PathBuf> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let has_files = |task: &Path| Ok::<_, io::Error>(fs::read_dir(task.join("fd"))?.next().is_some());
    let first = has_files(&process);
    if matches!(first, Ok(true)) {
        return Ok(process);
    }
    let mut tasks = fs::read_dir(process.join("task"))?.flatten().map(|task| task.path());
    match tasks.find(|task| has_files(task).is_ok_and(|has| has)) {
        Some(task) => Ok(task),
        None => first.map(|_| process),
    }
}

fn is_end(info: &Path, end: PipeEnd) -> bool {
    const ACCESS: u32 = 0o3;
    const READ_ONLY: u32 = 0;
    let Ok(info) = fs::read_to_string(info) else { return false };
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| match end {
        PipeEnd::Reading => flags & ACCESS == READ_ONLY,
        PipeEnd::Writing => flags & ACCESS != READ_ONLY,
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn each_end_of_a_pipe_is_found_while_it_is_held() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let own = std::process::id();
        let file = fs::File::from(reader.as_fd().try_clone_to_owned().expect("a copy"));
        let inode = file.metadata().expect("a pipe").ino();
        let found = |end| holders_of_pipe(inode, end).iter().map(HeldProcess::pid).collect::<Vec<_>>();
        assert_eq!(found(PipeEnd::Writing), [own]);
        drop(writer);
        assert_eq!(found(PipeEnd::Writing), [] as [u32; 0], "its reader is no writer");
        assert_eq!(found(PipeEnd::Reading), [own]);
        assert!(!files_are_denied(own));
    }
}
