//! What the tests of the binary share.
//!
//! - `scene`: one user with folders and a mark of its own, and the command lines of `moored`;
//! - `client`: the MCP clients that start `moored run`, each a process of its own that obeys orders;
//! - `playing`: a client that has started its server, what can be done to it, and what must be left of it: nothing;
//! - `fixtures`: the real clients and servers that `scripts/test` installs;
//! - `wire`: a client within the test, which sees every byte.

pub(crate) mod client;
pub(crate) mod fixtures;
pub(crate) mod playing;
pub(crate) mod scene;
pub(crate) mod wire;

use std::time::Duration;

use moored_containment::ProcessIdentity;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Generous: it only passes when something is wrong.
pub(crate) const DEADLINE: Duration = Duration::from_secs(40);

/// What the promise gives a tree after the end of the client's input, whatever the tree does: 2 s of grace, 2 s after
/// SIGTERM, and then what SIGKILL and our own looking take.
pub(crate) const AFTER_EOF: Duration = Duration::from_millis(4000 + SLACK);
/// The same after SIGTERM to `moored run`.
pub(crate) const AFTER_TERM: Duration = Duration::from_millis(2000 + SLACK);
/// The same after anything else.
pub(crate) const AFTER_ANYTHING: Duration = Duration::from_secs(5);

/// What a busy machine may take to look.
const SLACK: u64 = 600;

/// Sends a signal to that very process; whether it was there to get it.
pub(crate) fn send(to: &ProcessIdentity, signal: Signal) -> bool {
    let Some(pid) = i32::try_from(to.pid).ok().and_then(Pid::from_raw) else { return false };
    // Opened before it is looked at: who is then alive under that number is whom the file holds.
    let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    to.is_alive().expect("/proc") && pidfd_send_signal(&held, signal).is_ok()
}
