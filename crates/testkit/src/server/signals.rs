//! Ignoring the polite signals, and dying by a chosen one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// From here on TERM, INT and HUP do nothing to this process.
///
/// They are caught rather than set to be ignored, as most servers in the wild do it: descendants are born polite.
pub(super) fn ignore_polite_ones() -> io::Result<()> {
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// The shell words that make a program and all its descendants ignore the polite signals, with no moment between.
///
/// A storm needs this: a generation dies before it could install a handler of its own.
pub(super) const SHELL_IGNORES_POLITE_ONES: &str = r#"trap "" TERM INT HUP; exec "$@""#;

/// Stops this process until somebody continues it.
pub(super) fn stop_self() -> io::Result<()> {
    Ok(kill_process(getpid(), Signal::STOP)?)
}

/// Ends this process by `signal`; returns only if the signal does not end a process.
pub(super) fn die_by(signal: i32) -> io::Result<()> {
    // Rust's runtime ignores PIPE and catches SEGV and BUS, so the default action has to be restored first. The call
    // refuses what has no default action to restore, such as KILL, which needs none.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    let named = Signal::from_named_raw(signal).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(getpid(), named)?)
}
