//! One generation of a storm: goes into a session of its own, starts its successor, exits.
//!
//! A lineage is never absent: the parent returns from the spawn only after the successor has been executed. It is
//! meant to be as fast as a re-exec can be, so nothing is parsed that the hop does not need.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use super::uplog;

/// The hidden first argument. Arguments: `PERIOD_MICROS [UP_LOG]`.
pub(super) const NAME: &str = "__hop";

/// Runs one generation. Only the first is given an up log, and reports once its successor runs.
pub(super) fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let _ = rustix::process::setsid();
    let period = args.next().unwrap_or_default();
    let micros: u64 = period.to_str().and_then(|text| text.parse().ok()).unwrap_or(0);
    if micros > 0 {
        std::thread::sleep(Duration::from_micros(micros));
    }
    // No path: the binary may have been deleted meanwhile, and a storm does not care.
    let mut successor = Command::new("/proc/self/exe");
    successor.arg(NAME).arg(period);
    // A full process table stops nobody who tries again.
    while successor.spawn().is_err() {
        std::thread::sleep(Duration::from_micros(200));
    }
    if let Some(up) = args.next() {
        let _ = uplog::append_own_pid(Path::new(&up));
    }
    ExitCode::SUCCESS
}
