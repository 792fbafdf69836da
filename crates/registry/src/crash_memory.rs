//! CrashMemory are remembered across `run`s: a client that starts a server anew as often as it dies would fill the machine
//! otherwise. One small file per entry and client process in the runtime folder: a line per crash that came before
//! `initialize` was answered, with its time on a clock that does not step, and how the server ended. What one client sees fail,
//! for want of a login say, is no reason not to start the server for another.
//!
//! After five within a minute the server is not started: the client gets an error at once. The minute passes, and the next
//! start is another try.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use moored_containment::{ProcessIdentity, ServerExit};

use crate::boot_time::since_boot;
use crate::private_files::{NOFOLLOW_NONBLOCK, open_regular_file, private_file};
use moored_launch::{CrashLimit, Key};

const ENDING: &str = "crashes";
const LIMIT: CrashLimit = CrashLimit::DEFAULT;

/// A server that has crashed too often lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashLoop {
    /// The exit code of the last crash.
    pub exit_code: i32,
    /// Time until it may be started again.
    pub pause: Duration,
}

/// The crashes of one config entry for one client process: a file in the runtime folder.
#[derive(Clone, Debug)]
pub struct CrashMemory {
    path: PathBuf,
}

impl CrashMemory {
    /// Those of that entry for that client. Clients that could not be looked at share one file.
    pub fn of(folder: &Path, entry: Key, client: Option<ProcessIdentity>) -> Self {
        let (pid, ticks) = client.map_or((0, 0), |client| (client.pid, client.start_ticks));
        Self { path: folder.join(format!("{entry}.{pid}.{ticks}.{ENDING}")) }
    }

    /// Whether it has crashed too often lately, and for how long it is not started.
    pub fn crash_loop(&self) -> Option<CrashLoop> {
        let recent = self.recent();
        // The oldest of those that are too many: without it there is one less.
        let (age, _) = *recent.iter().rev().nth(LIMIT.crashes.saturating_sub(1) as usize)?;
        let (_, exit_code) = *recent.last()?;
        Some(CrashLoop { exit_code, pause: LIMIT.cooling.saturating_sub(age) })
    }

    /// How long ago it crashed, and what it exited with, in the last minute.
    fn recent(&self) -> Vec<(Duration, i32)> {
        // There is none unless it has crashed.
        let text = open_regular_file(&self.path).and_then(io::read_to_string).unwrap_or_default();
        let now = since_boot();
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(at, code)| Some((Duration::from_millis(at.parse().ok()?), code.parse().ok()?)))
            .filter_map(|(at, code)| Some((now.checked_sub(at)?, code)))
            .filter(|(age, _)| LIMIT.counts(*age))
            .collect()
    }

    /// Removes the files of entries that have not crashed lately: some are never started again.
    pub fn forget_old(folder: &Path) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| path.extension() == Some(ENDING.as_ref()))
        {
            let crashes = Self { path };
            if crashes.recent().is_empty() {
                crashes.forget();
            }
        }
    }

    /// Adds a crash. One that cannot be written is not remembered.
    pub fn note(&self, exit: Option<ServerExit>) {
        let code = exit.map_or(1, ServerExit::exit_code);
        let line = format!("{} {code}\n", since_boot().as_millis());
        // Appended in one call, so that two at once do not mix.
        let file = private_file().append(true).create(true).custom_flags(NOFOLLOW_NONBLOCK).open(&self.path);
        if let Ok(mut file) = file {
            let _ = file.write_all(line.as_bytes());
        }
    }

    /// Forgets all crashes, because the server has answered `initialize`.
    pub fn forget(&self) {
        // Most have none.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_id::RunId;

    #[test]
    fn five_crashes_within_a_minute_are_too_many_until_it_works_again() {
        let folder = std::env::temp_dir().join(format!("moored-crashes-{}", RunId::generate()));
        fs::create_dir(&folder).expect("a folder");
        let crashes = CrashMemory::of(&folder, serde_json::from_str("1").expect("a key"), None);
        for _ in 0..4 {
            crashes.note(Some(ServerExit::Code(1)));
            assert_eq!(crashes.crash_loop(), None);
        }
        crashes.note(Some(ServerExit::Signal(9)));
        let found = crashes.crash_loop().expect("five");
        assert_eq!(found.exit_code, 137);
        assert!(
            found.pause <= LIMIT.cooling && found.pause > LIMIT.cooling - Duration::from_secs(10),
            "{found:?}"
        );
        crashes.forget();
        assert_eq!(crashes.crash_loop(), None);
        fs::remove_dir(folder).expect("nothing is left in it");
    }

    #[test]
    fn f03_the_pause_ends_when_the_fifth_last_crash_is_a_minute_old() {
        let folder = std::env::temp_dir().join(format!("moored-crashes-{}", RunId::generate()));
        fs::create_dir(&folder).expect("a folder");
        let crashes = CrashMemory::of(&folder, serde_json::from_str("1").expect("a key"), None);
        let now = since_boot().as_millis();
        let lines: String = [50, 40, 30, 20, 10, 1].map(|age| format!("{} 1\n", now - age * 1000)).concat();
        fs::write(&crashes.path, lines).expect("a file");
        let pause = crashes.crash_loop().expect("six").pause;
        assert!(pause <= Duration::from_secs(20) && pause > Duration::from_secs(10), "{pause:?}");
        crashes.forget();
        fs::remove_dir(folder).expect("nothing is left in it");
    }

    #[test]
    fn f03_each_client_has_crashes_of_its_own() {
        let folder = std::env::temp_dir().join(format!("moored-crashes-{}", RunId::generate()));
        fs::create_dir(&folder).expect("a folder");
        let us = ProcessIdentity::of(std::process::id()).expect("us");
        let of = |client| CrashMemory::of(&folder, serde_json::from_str("1").expect("a key"), client);
        let others = [None, Some(ProcessIdentity { start_ticks: us.start_ticks + 1, ..us })].map(of);
        let ours = of(Some(us));
        (0..5).for_each(|_| others.iter().for_each(|other| other.note(None)));
        assert_eq!(ours.crash_loop(), None);
        ours.forget();
        assert!(
            others.iter().all(|other| other.crash_loop().is_some()),
            "that ours works says nothing of them"
        );
        others.iter().for_each(CrashMemory::forget);
        fs::remove_dir(folder).expect("nothing is left in it");
    }

    #[test]
    fn crashes_of_another_minute_or_another_boot_do_not_count() {
        let folder = std::env::temp_dir().join(format!("moored-crashes-{}", RunId::generate()));
        fs::create_dir(&folder).expect("a folder");
        let crashes = CrashMemory::of(&folder, serde_json::from_str("1").expect("a key"), None);
        let later = since_boot().as_millis() + 3_600_000;
        fs::write(&crashes.path, format!("{later} 1\n").repeat(9)).expect("a file");
        assert_eq!(crashes.crash_loop(), None);
        let recent = CrashMemory::of(&folder, serde_json::from_str("2").expect("a key"), None);
        recent.note(None);
        CrashMemory::forget_old(&folder);
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
        let crashes = CrashMemory::of(&folder, serde_json::from_str("1").expect("a key"), None);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &crashes.path, kind, 0o600.into(), 0).expect("a FIFO");
        assert_eq!(crashes.crash_loop(), None);
        crashes.note(None);
        CrashMemory::forget_old(&folder);
        fs::remove_dir(folder).expect("nothing is left in it");
    }
}
