//! Which old logs go. Only files that are named as ours are ever looked at: a log may be told to lie anywhere.

use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::Limits;
use crate::event::RunId;
use moored_registry::open_regular_file;

/// A log, as it lies in its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Old {
    path: PathBuf,
    bytes: u64,
    written_at: Timestamp,
    in_use: bool,
}

/// The logs in this folder that are being written, or were last, one per `run`, the oldest `run` first. A folder that is
/// not there has none.
///
/// # Errors
/// If it cannot be read.
pub fn all(folder: &Path) -> io::Result<Vec<(RunId, PathBuf)>> {
    let mut found: Vec<(RunId, PathBuf)> = names(folder)?
        .into_iter()
        .filter_map(|path| match parse(&path)? {
            (run, 0) => Some((run, path)),
            _ => None,
        })
        .collect();
    found.sort();
    Ok(found)
}

/// Removes what is too old or too much. "Already gone" counts as done.
pub(super) fn clean(folder: &Path, limits: &Limits, now: Timestamp) -> io::Result<()> {
    let mut old = Vec::new();
    for path in names(folder)? {
        if parse(&path).is_some()
            && let Ok(found) = look(folder, path)
        {
            old.push(found);
        }
    }
    for path in doomed(old, limits, now) {
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// What goes: whatever is too old, then the oldest until the rest is not too much. What is in use stays.
fn doomed(mut old: Vec<Old>, limits: &Limits, now: Timestamp) -> Vec<PathBuf> {
    let cutoff = now.checked_sub(limits.age).unwrap_or(Timestamp::MIN);
    let mut total: u64 = old.iter().map(|log| log.bytes).sum();
    old.sort_by(|a, b| (a.written_at, &a.path).cmp(&(b.written_at, &b.path)));
    let mut doomed = Vec::new();
    for log in old.into_iter().filter(|log| !log.in_use) {
        if log.written_at < cutoff || total > limits.folder_bytes {
            total -= log.bytes;
            doomed.push(log.path);
        }
    }
    doomed
}

/// Whose it is, and how many rotations ago it was written: `RUN.log`, `RUN.log.1` ….
fn parse(path: &Path) -> Option<(RunId, u32)> {
    let (run, rest) = path.file_name()?.to_str()?.split_once(".log")?;
    let ago = match rest.strip_prefix('.') {
        Some(ago) => ago.parse().ok()?,
        None if rest.is_empty() => 0,
        None => return None,
    };
    Some((run.parse().ok()?, ago))
}

fn look(folder: &Path, path: PathBuf) -> io::Result<Old> {
    let metadata = fs::symlink_metadata(&path)?;
    if !metadata.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let written_at = Timestamp::try_from(metadata.modified()?).unwrap_or(Timestamp::MAX);
    // The one that is written is locked, and what was rotated belongs to it.
    let head = parse(&path).map(|(run, _)| folder.join(format!("{run}.log")));
    let in_use = head.is_some_and(|head| is_locked(&head));
    Ok(Old { path, bytes: metadata.len(), written_at, in_use })
}

fn is_locked(path: &Path) -> bool {
    match open_regular_file(path).map(|file| file.try_lock().err()) {
        Ok(Some(TryLockError::WouldBlock)) => true,
        Ok(Some(TryLockError::Error(_)) | None) => false,
        // What cannot be looked at is not touched, but what is not there is not in use.
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn names(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn old(name: &str, bytes: u64, second: i64, in_use: bool) -> Old {
        Old { path: name.into(), bytes, written_at: at(second), in_use }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn doomed_of(logs: &[Old], age: u64, folder_bytes: u64) -> Vec<String> {
        let limits = Limits { age: Duration::from_secs(age), folder_bytes, ..Limits::default() };
        let paths = doomed(logs.to_vec(), &limits, at(100));
        paths.iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn the_old_go_and_then_the_oldest_but_none_that_is_in_use() {
        let logs =
            [old("c", 5, 60, false), old("a", 5, 10, false), old("b", 5, 50, false), old("u", 5, 1, true)];
        assert_eq!(doomed_of(&logs, 1000, 20), [""; 0]);
        assert_eq!(doomed_of(&logs, 80, 20), ["a"]);
        assert_eq!(doomed_of(&logs, 1000, 19), ["a"]);
        assert_eq!(doomed_of(&logs, 80, 12), ["a", "b"]);
        assert_eq!(doomed_of(&logs, 1000, 0), ["a", "b", "c"]);
    }

    #[test]
    fn only_names_like_ours_are_ours() {
        let run = RunId::generate();
        let parse = |name: String| parse(Path::new(&name));
        assert_eq!(parse(format!("/x/{run}.log")), Some((run, 0)));
        assert_eq!(parse(format!("{run}.log.2")), Some((run, 2)));
        for name in ["srv.log".into(), format!("{run}.logs"), format!("{run}.log.gz"), format!("x{run}.log")]
        {
            assert_eq!(parse(name), None);
        }
    }
}
