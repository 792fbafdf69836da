//! The PID file: three lines, the server's pid, its version, and when it was started. Others read it, so it is written
//! whole or not at all; one whose process is dead is replaced, one whose process lives is left alone, and so is anything
//! that is no PID file.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use moored_containment::ProcessIdentity;

use moored_registry::boot_time::age_of;
use moored_registry::{RunInfo, read_pid_file};

use crate::ignored::ignore;

/// The file cannot be ours: another server that lives has it, or it is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum PidFileError {
    #[error("`{path}` belongs to process {pid}, which is running; it is left as it is")]
    Live { path: PathBuf, pid: u32 },
    #[error("`{path}` is there and is no PID file; it is left as it is")]
    Other { path: PathBuf },
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
    /// processes had a number is told by clocks, which may step, but a session that holds its registration is alive.
    pub(super) fn write(
        path: &Path,
        pid: u32,
        version: Option<&str>,
        others: &[RunInfo],
    ) -> Result<Self, PidFileError> {
        let is_held = others.iter().any(|facts| facts.pid_file.as_deref() == Some(path));
        match Named::by(path) {
            Named::Process(pid) if is_held || lives(path, pid) => {
                return Err(PidFileError::Live { path: path.to_path_buf(), pid });
            }
            Named::Process(_) | Named::NoProcess => {}
            Named::SomethingElse => return Err(PidFileError::Other { path: path.to_path_buf() }),
        }
        let file = Self { path: path.to_path_buf(), pid, started_at: Timestamp::now() };
        file.put(version).map_err(|source| PidFileError::Io { path: path.to_path_buf(), source })?;
        Ok(file)
    }

    /// Its version is known now.
    pub(super) fn update(&self, version: Option<&str>) {
        if self.is_there() {
            // It is there already, with less in it.
            ignore("write the version into the PID file", self.put(version));
        }
    }

    /// Whether it still is ours.
    fn is_there(&self) -> bool {
        matches!(Named::by(&self.path), Named::Process(pid) if pid == self.pid)
    }

    fn put(&self, version: Option<&str>) -> io::Result<()> {
        let draft = self.path.with_extension(format!("{}.draft", std::process::id()));
        // A draft that is there was left by a dead process that had our pid, or is a link that leads elsewhere.
        let _ = fs::remove_file(&draft);
        let mut file = fs::File::options().write(true).create_new(true).mode(0o644).open(&draft)?;
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
        if self.is_there() {
            ignore("remove the PID file", fs::remove_file(&self.path));
        }
    }
}

/// Removes the file if the process that it names is dead; for the guardians, which clean up after a killed moored.
///
/// # Errors
/// If it is there and cannot be removed.
pub fn remove_if_dead(path: &Path) -> io::Result<()> {
    match Named::by(path) {
        Named::Process(pid) if !lives(path, pid) => fs::remove_file(path),
        // What is no PID file is not ours to remove.
        Named::Process(_) | Named::NoProcess | Named::SomethingElse => Ok(()),
    }
}

/// Whom a file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Process(u32),
    /// There is no file, or nothing is in it.
    NoProcess,
    /// It is no PID file.
    SomethingElse,
}

impl Named {
    fn by(path: &Path) -> Self {
        match read_pid_file(path) {
            Ok(text) if text.is_empty() => Self::NoProcess,
            Ok(text) => {
                let pid = text.lines().next().and_then(|line| line.trim().parse().ok());
                pid.map_or(Self::SomethingElse, Self::Process)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::NoProcess,
            Err(_) => Self::SomethingElse,
        }
    }
}

/// Whether the process that the file names lives: one that was started after the file was written only has its number.
fn lives(path: &Path, pid: u32) -> bool {
    let process = ProcessIdentity::of(pid).ok().filter(|process| process.is_alive().unwrap_or(true));
    let written = fs::symlink_metadata(path).and_then(|file| file.modified());
    let (Some(process), Ok(written)) = (process, written) else { return false };
    let age = written.elapsed().unwrap_or_default();
    // A file is written after its process was started, and a clock may be a little off.
    age_of(&process) + Duration::from_secs(2) >= age
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

    #[test]
    fn what_is_no_pid_file_is_neither_replaced_nor_removed() {
        let path = place();
        let refused = || matches!(PidFile::write(&path, 1, None, &[]), Err(PidFileError::Other { .. }));
        fs::write(&path, "dear diary\n").expect("a file");
        assert!(refused());
        remove_if_dead(&path).expect("nothing to do");
        assert_eq!(fs::read_to_string(&path).expect("the file"), "dear diary\n");
        // A link may lead to another user's file, and a FIFO has no end.
        let link = place();
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert_eq!(Named::by(&link), Named::SomethingElse);
        fs::remove_file(&path).expect("the file");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a FIFO");
        assert!(refused());
        for file in [path, link] {
            fs::remove_file(file).expect("it is there");
        }
    }

    #[test]
    fn an_empty_file_is_taken_and_a_draft_leads_nowhere_else() {
        let (path, other) = (place(), place());
        fs::write(&path, "").expect("a file");
        fs::write(&other, "other").expect("a file");
        let draft = path.with_extension(format!("{}.draft", std::process::id()));
        std::os::unix::fs::symlink(&other, draft).expect("a link");
        drop(PidFile::write(&path, std::process::id(), None, &[]).expect("nobody is named there"));
        assert_eq!(fs::read_to_string(&other).expect("the file"), "other");
        fs::remove_file(other).expect("the file");
        assert!(!path.exists());
    }
}
