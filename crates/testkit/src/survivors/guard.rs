//! Ends what carries a mark, so that a test that fails leaves nothing behind.
//!
//! Each kill is by pidfd: opened first, then the mark read again, then the signal. If the pid had passed to another
//! process between, either the mark would be missing or the pidfd would be of the dead.

use std::io;
use std::ops::Deref;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{Mark, Survivor, watcher};
use crate::proc::{Proc, newest_pids};

/// A storm takes some rounds; anything longer is a fault that the test shall report.
const DEADLINE: Duration = Duration::from_secs(30);
/// Ends all that carries its mark when it goes out of scope. It stands for the mark wherever one is wanted.
#[derive(Debug)]
pub struct MarkGuard {
    mark: Mark,
}

impl MarkGuard {
    /// A guard over a mark of its own.
    pub fn fresh() -> Self {
        Self::new(Mark::fresh())
    }

    pub(super) fn new(mark: Mark) -> Self {
        Self { mark }
    }

    /// Ends all that carries the mark now; the error has who is left after the deadline.
    pub fn end_all(&self) -> Result<(), Vec<Survivor>> {
        let start = Instant::now();
        loop {
            kill_all_listed(self.mark).expect("/proc");
            for _ in 0..20 {
                hunt_hoppers(self.mark).expect("/proc");
            }
            // A short look is enough here: whoever is left is met again in the next round.
            match self.mark.wait_until_none(Duration::from_millis(1)) {
                Ok(_) => return Ok(()),
                Err(left) if start.elapsed() > DEADLINE => return Err(left),
                Err(_) => {}
            }
        }
    }
}

impl Deref for MarkGuard {
    type Target = Mark;

    fn deref(&self) -> &Mark {
        &self.mark
    }
}

impl Drop for MarkGuard {
    fn drop(&mut self) {
        let ended = self.end_all();
        if ended.is_ok() {
            watcher::forget(self.mark);
        }
        if !std::thread::panicking() {
            assert_eq!(ended, Ok(()), "some processes could not be ended");
        }
    }
}

/// Kills at sight rather than after the scan: a process that hops is not there for long.
fn kill_all_listed(mark: Mark) -> io::Result<()> {
    let mut proc = Proc::open()?;
    for pid in proc.pids()? {
        kill_if_marked(&mut proc, pid, mark)?;
    }
    Ok(())
}

fn hunt_hoppers(mark: Mark) -> io::Result<()> {
    let mut proc = Proc::open()?;
    for pid in newest_pids()? {
        kill_if_marked(&mut proc, pid, mark)?;
    }
    Ok(())
}

fn kill_if_marked(proc: &mut Proc, pid: u32, mark: Mark) -> io::Result<()> {
    let is_marked = |proc: &mut Proc| Ok::<_, io::Error>(proc.rss_limit(pid)? == Some(Some(mark.value())));
    if pid == std::process::id() || !is_marked(proc)? {
        return Ok(());
    }
    let Some(target) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    // Whoever is gone by now needs no signal.
    let Ok(pidfd) = pidfd_open(target, PidfdFlags::empty()) else { return Ok(()) };
    if is_marked(proc)? {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    }
    Ok(())
}
