//! Ends what carries a mark when the test that made the mark is dead: killed by its runner for being slow, interrupted, or
//! aborted, so that no guard of it ever ran.
//!
//! The first program that a test starts under a mark is preceded by a watcher: the bin `marked` again, in a session of its own, so
//! that what is sent to the test's process group does not reach it. The test tells it each mark through a pipe, and takes back
//! those whose guard has ended all. The watcher ends the rest when the test's pidfd is readable or the pipe has no writer.

#![expect(clippy::disallowed_methods, reason = "the watcher ends with the test that starts it")]

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open, setsid};

use super::Mark;
use crate::bins::bin;

/// The first argument that makes `marked` a watcher.
pub(crate) const WATCH: &str = "--watch";

static WATCHER: Mutex<Option<Child>> = Mutex::new(None);

/// What carries the mark is ended if this process dies before [`forget`].
pub(super) fn watch(mark: Mark) {
    let mut watcher = WATCHER.lock().unwrap_or_else(PoisonError::into_inner);
    if watcher.is_none() {
        let mut command = Command::new(bin("marked"));
        command.arg(WATCH).arg(std::process::id().to_string()).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        *watcher = Some(command.spawn().expect("marked"));
    }
    tell(watcher.as_mut(), &format!("+{}\n", mark.value()));
}

/// All that carried the mark has been ended.
pub(super) fn forget(mark: Mark) {
    tell(WATCHER.lock().unwrap_or_else(PoisonError::into_inner).as_mut(), &format!("-{}\n", mark.value()));
}

fn tell(watcher: Option<&mut Child>, line: &str) {
    if let Some(pipe) = watcher.and_then(|watcher| watcher.stdin.as_mut()) {
        // A watcher that was killed cannot be told; the guards are still there.
        let _ = pipe.write_all(line.as_bytes());
    }
}

/// The watcher's own life: until the test with that number is dead.
pub(crate) fn main(test: Option<OsString>) -> ExitCode {
    let _ = setsid();
    let marks = test.and_then(|pid| pid.to_str()?.parse().ok()).and_then(Pid::from_raw).map(hear_until_dead);
    for mark in marks.into_iter().flatten() {
        // Those that cannot be ended are nobody's any more who could be told.
        let _ = Mark::of(mark).guard().end_all();
    }
    ExitCode::SUCCESS
}

/// The marks that the test leaves.
fn hear_until_dead(test: Pid) -> HashSet<u64> {
    let mut heard = Vec::new();
    let stdin = io::stdin();
    // Opened first: if our parent is still the test after that, the file is of the test.
    let pidfd = pidfd_open(test, PidfdFlags::empty()).ok().filter(|_| getppid() == Some(test));
    let _ = fcntl_setfl(&stdin, OFlags::NONBLOCK);
    loop {
        let mut fds = vec![PollFd::new(&stdin, PollFlags::IN)];
        fds.extend(pidfd.as_ref().map(|test| PollFd::new(test, PollFlags::IN)));
        let is_dead = pidfd.is_none() || poll(&mut fds, None).is_ok() && !fds[1].revents().is_empty();
        // What was written before the death is still in the pipe.
        let ended = stdin.lock().read_to_end(&mut heard).is_ok();
        if is_dead || ended {
            return marks_in(&String::from_utf8_lossy(&heard));
        }
    }
}

fn marks_in(text: &str) -> HashSet<u64> {
    let mut marks = HashSet::new();
    for line in text.lines() {
        match line.split_at_checked(1) {
            Some(("+", mark)) => marks.extend(mark.parse::<u64>()),
            Some(("-", mark)) => {
                let _ = mark.parse().map(|mark: u64| marks.remove(&mark));
            }
            _ => {}
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_were_taken_back_are_not_left() {
        assert_eq!(marks_in("+1\n+2\n+3\n-2\n"), HashSet::from([1, 3]));
        assert_eq!(marks_in(""), HashSet::new());
    }
}
