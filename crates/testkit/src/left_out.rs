//! What a test could not play on this machine. Said by a test that returns early, so that nobody takes it for played.
//!
//! `scripts/test` names a file in `MOORED_LEFT_OUT`, and shows each of its lines once in the summary.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write as _;
use std::sync::Mutex;

/// Says that a layer or a kernel feature is missing, which the machine of a CI must have.
///
/// # Panics
///
/// With `CI=true`.
#[track_caller]
pub fn lacking(what: &str) {
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!in_ci, "{what}: with CI=true that is a failure");
    left_out(what);
}

/// Says that something is left out which not every machine can have.
pub fn left_out(what: &str) {
    static SAID: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut said = SAID.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let Some(path) = std::env::var_os("MOORED_LEFT_OUT") else { return };
    if said.get_or_insert_default().insert(what.to_owned()) {
        // In one piece: other tests write to it at the same time. A plain user's part may not write to it; the test that
        // plays the part runs as whoever made the file.
        let file = File::options().append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(format!("{what}\n").as_bytes()));
    }
}
