//! The PID file: three lines, the server's pid, its version, and when it was started. Others read it, so it is written
//! whole or not at all; one whose process is dead is replaced, one whose process lives is left alone.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use moored_containment::ProcessIdentity;

use crate::berth::Facts;
use crate::boot_time::age_of;

/// Somebody else's server has that file, and lives.
#[derive(Debug, thiserror::Error)]
pub(super) enum PidFileError {
    #[error("`{path}` belongs to process {pid}, which is running; it is left as it is")]
    Live { path: PathBuf, pid: u32 },
    #[error("cannot write `{path}`: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// A PID file that is ours.
#[derive(Debug)]
pub(super) struct PidFile {
    path: PathBuf,
    pid: u32,
    started_at: Timestamp,
}

impl PidFile {
    /// Writes it for a server that was just started. `others` are the `run`s that are alive besides ours: which of two
    /// processes had a number is told by clocks, which may step, but whoever holds a berth is alive.
    pub(super) fn write(
        path: &Path,
        pid: u32,
        version: Option<&str>,
        others: &[Facts],
    ) -> Result<Self, PidFileError> {
        let is_held = others.iter().any(|facts| facts.pid_file.as_deref() == Some(path));
        if let Some(pid) = if is_held { owner(path) } else { live_owner(path) } {
            return Err(PidFileError::Live { path: path.to_path_buf(), pid });
        }
        let file = Self { path: path.to_path_buf(), pid, started_at: Timestamp::now() };
        file.put(version).map_err(|source| PidFileError::Io { path: path.to_path_buf(), source })?;
        Ok(file)
    }

    /// Its version is known now.
    pub(super) fn update(&self, version: Option<&str>) {
        if owner(&self.path) == Some(self.pid) {
            // It is there already, with less in it.
            let _ = self.put(version);
        }
    }

    fn put(&self, version: Option<&str>) -> io::Result<()> {
        let draft = self.path.with_extension(format!("{}.draft", std::process::id()));
        let mut file =
            fs::File::options().write(true).create(true).truncate(true).mode(0o644).open(&draft)?;
        let text = format!("{}\n{}\n{}\n", self.pid, version.unwrap_or("unknown"), self.started_at);
        let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&draft, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if owner(&self.path) == Some(self.pid) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the file if the process that it names is dead; for whoever cleans up after a killed moored.
///
/// # Errors
/// If it is there and cannot be removed.
pub fn remove_if_dead(path: &Path) -> io::Result<()> {
    if path.exists() && live_owner(path).is_none() {
        fs::remove_file(path)?;
    }
    Ok(())
}

fn owner(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.lines().next()?.trim().parse().ok()
}

/// Whom the file names, if that process lives: one that was started after the file was written only has its number.
fn live_owner(path: &Path) -> Option<u32> {
    let pid = owner(path)?;
    let process = ProcessIdentity::of(pid).ok().filter(|process| process.is_alive().unwrap_or(true))?;
    let written = fs::metadata(path).and_then(|file| file.modified()).ok()?;
    let age = written.elapsed().unwrap_or_default();
    // A file is written after its process was started, and a clock may be a little off.
    (age_of(&process) + Duration::from_secs(2) >= age).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RunId;

    fn place() -> PathBuf {
        std::env::temp_dir().join(format!("moored-pid-{}", RunId::generate()))
    }

    #[test]
    fn it_has_three_lines_and_goes_with_its_owner() {
        let path = place();
        let file = PidFile::write(&path, std::process::id(), None, &[]).expect("a file");
        file.update(Some("1.2"));
        let text = fs::read_to_string(&path).expect("the file");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], [std::process::id().to_string().as_str(), "1.2"]);
        assert!(lines.len() == 3 && lines[2].parse::<Timestamp>().is_ok(), "{text}");
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn one_of_a_dead_process_is_replaced_and_one_of_a_live_process_is_respected() {
        let path = place();
        // The largest number there can be is one more than any process has.
        fs::write(&path, "4194304\n1\n2026-01-01T00:00:00Z\n").expect("a file");
        drop(PidFile::write(&path, std::process::id(), None, &[]).expect("it was stale"));
        let mine = PidFile::write(&path, std::process::id(), None, &[]).expect("a file");
        let refused = PidFile::write(&path, 1, None, &[]);
        assert!(matches!(refused, Err(PidFileError::Live { .. })), "{refused:?}");
        assert!(path.exists(), "it is left as it is");
        drop(mine);
    }
}
