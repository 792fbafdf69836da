//! What the targets about whole sessions share.
//!
//! - `hold`: by which layers a session is held, and which of them can be had here;
//! - `host`: an owner in a process of its own, the example `promise_host`, that can be ended in every way there is;
//! - `ending`: those ways;
//! - `part`: a test's own code in a process of its own, as any user and under any limit;
//! - `belongings`: what a host has that could pile up in it;
//! - `group`: a cgroup of a test's own, so that no other test's leaves are seen in it;
//! - `traces`: what must not be left: processes, records, leaves.

pub(crate) mod belongings;
pub(crate) mod ending;
pub(crate) mod group;
pub(crate) mod hold;
pub(crate) mod host;
pub(crate) mod part;
pub(crate) mod traces;

use std::time::Duration;

use moored_containment::{Ladder, ProcessIdentity};
use moored_testkit::Target;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Generous: it only passes when something is wrong.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Sends a signal to that very process; whether it was there to get it.
pub(crate) fn send(to: &ProcessIdentity, signal: Signal) -> bool {
    let Some(pid) = i32::try_from(to.pid).ok().and_then(Pid::from_raw) else { return false };
    // Opened before it is looked at: who is then alive under that number is whom the file holds.
    let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    to.is_alive().expect("/proc") && pidfd_send_signal(&held, signal).is_ok()
}

/// SIGKILL to all of them as one stroke; they are dead when this returns.
#[track_caller]
pub(crate) fn kill_at_once(processes: &[ProcessIdentity]) {
    let hold = |process: &ProcessIdentity| Target::hold(process.pid, || process.is_alive().expect("/proc"));
    let targets: Option<Vec<_>> = processes.iter().map(hold).collect();
    moored_testkit::kill_at_once(&targets.expect("all of them live"));
}

/// A ladder whose steps have little patience.
pub(crate) fn short() -> Ladder {
    let patience = Duration::from_millis(100);
    Ladder::default().grace(patience).kill_after(patience)
}
