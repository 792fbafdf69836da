//! Crashes are remembered across `run`s: a client that starts a server anew as often as it dies would fill the machine
//! otherwise. One small file per entry in the runtime folder: a line per crash that came before `initialize` was
//! answered, with its time on a clock that does not step, and how the server ended.
//!
//! After five within a minute the server is not started: the client gets an error at once. The minute passes, and the next
//! start is another try.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use moored_containment::ServerExit;

use crate::boot_time::since_boot;
use crate::places::{UNSURPRISED, open_plain, private_file};
use moored_launch::{CrashLimit, Key};

const ENDING: &str = "crashes";
const LIMIT: CrashLimit = CrashLimit::DEFAULT;

/// The file of one entry.
#[derive(Clone, Debug)]
pub(super) struct Crashes {
    path: PathBuf,
}

impl Crashes {
    pub(super) fn of(folder: &Path, entry: Key) -> Self {
        Self { path: folder.join(format!("{entry}.{ENDING}")) }
    }

    /// If it has crashed too often lately: the code that it exited with last.
    pub(super) fn too_many(&self) -> Option<i32> {
        let recent = self.recent();
        let count = u32::try_from(recent.len()).unwrap_or(u32::MAX);
        if LIMIT.is_reached(count) { recent.last().copied() } else { None }
    }

    /// What it exited with in the last minute.
    fn recent(&self) -> Vec<i32> {
        // There is none unless it has crashed.
        let text = open_plain(&self.path).and_then(io::read_to_string).unwrap_or_default();
        let now = since_boot();
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(at, code)| Some((Duration::from_millis(at.parse().ok()?), code.parse().ok()?)))
            .filter(|(at, _)| *at <= now && LIMIT.counts(now.saturating_sub(*at)))
            .map(|(_, code)| code)
            .collect()
    }

    /// Removes the files of entries that have not crashed lately: some are never started again.
    pub(super) fn forget_old(folder: &Path) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| path.extension() == Some(ENDING.as_ref()))
        {
            let crashes = Self { path };
            if crashes.recent().is_empty() {
                crashes.forget();
            }
        }
    }

    /// It crashed. What cannot be written down is not remembered.
    pub(super) fn note(&self, exit: Option<ServerExit>) {
        let code = exit.map_or(1, ServerExit::exit_code);
        let line = format!("{} {code}\n", since_boot().as_millis());
        // Appended in one call, so that two at once do not mix.
        let file = private_file().append(true).create(true).custom_flags(UNSURPRISED).open(&self.path);
        if let Ok(mut file) = file {
            let _ = file.write_all(line.as_bytes());
        }
    }

    /// It works.
    pub(super) fn forget(&self) {
        // Most have none.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RunId;

    #[test]
    fn five_crashes_within_a_minute_are_too_many_until_it_works_again() {
        let folder = std::env::temp_dir().join(format!("moored-crashes-{}", RunId::generate()));
        fs::create_dir(&folder).expect("a folder");
        let crashes = Crashes::of(&folder, serde_json::from_str("1").expect("a key"));
        for _ in 0..4 {
            crashes.note(Some(ServerExit::Code(1)));
            assert_eq!(crashes.too_many(), None);
        }
        crashes.note(Some(ServerExit::Signal(9)));
        assert_eq!(crashes.too_many(), Some(137));
        crashes.forget();
        assert_eq!(crashes.too_many(), None);
        fs::remove_dir(folder).expect("nothing is left in it");
    }

    #[test]
    fn crashes_of_another_minute_or_another_boot_do_not_count() {
        let folder = std::env::temp_dir().join(format!("moored-crashes-{}", RunId::generate()));
        fs::create_dir(&folder).expect("a folder");
        let crashes = Crashes::of(&folder, serde_json::from_str("1").expect("a key"));
        let later = since_boot().as_millis() + 3_600_000;
        fs::write(&crashes.path, format!("{later} 1\n").repeat(9)).expect("a file");
        assert_eq!(crashes.too_many(), None);
        let recent = Crashes::of(&folder, serde_json::from_str("2").expect("a key"));
        recent.note(None);
        Crashes::forget_old(&folder);
        assert!(!crashes.path.exists(), "its crashes are of no account any more");
        assert!(recent.path.exists(), "its crash is");
        recent.forget();
        fs::remove_dir(folder).expect("nothing is left in it");
    }

    /// Anybody of this user can put one there, and whoever opened it would wait for the other end.
    #[test]
    fn a_fifo_in_its_place_keeps_nobody_waiting() {
        let folder = std::env::temp_dir().join(format!("moored-crashes-{}", RunId::generate()));
        fs::create_dir(&folder).expect("a folder");
        let crashes = Crashes::of(&folder, serde_json::from_str("1").expect("a key"));
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &crashes.path, kind, 0o600.into(), 0).expect("a FIFO");
        assert_eq!(crashes.too_many(), None);
        crashes.note(None);
        Crashes::forget_old(&folder);
        fs::remove_dir(folder).expect("nothing is left in it");
    }
}
