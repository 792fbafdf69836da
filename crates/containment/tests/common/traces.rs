//! What must not be left of a session.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use moored_containment::ProcessIdentity;
use moored_testkit::{MarkGuard, User, example, wait_until};

use super::DEADLINE;
use super::host::Host;

/// The records in a folder. The folder may not be there.
pub(crate) fn records(folder: &Path) -> Vec<PathBuf> {
    let is_record = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "session");
    names(folder).into_iter().filter(is_record).collect()
}

/// Everything in a folder. The folder may not be there.
pub(crate) fn names(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path()).collect()
}

/// The values of one key of a record, in order.
pub(crate) fn values(record: &Path, key: &str) -> Vec<String> {
    let text = fs::read_to_string(record).unwrap_or_default();
    let value = |line: &str| match line.split_once(' ') {
        Some((found, value)) if found == key => Some(value.to_owned()),
        None if line == key => Some(String::new()),
        _ => None,
    };
    text.lines().filter_map(value).collect()
}

/// Panics unless nobody of the host's is alive, its folder of records is empty and no leaf is left.
#[track_caller]
pub(crate) fn assert_nothing_left(host: &mut Host) {
    let what = (host.cell, host.ending);
    let left = host.mark.wait_until_none(DEADLINE);
    assert!(left.is_ok(), "{what:?}: {left:?}");
    host.exit();
    let found = names(&host.runtime());
    let texts: Vec<_> = found.iter().map(fs::read_to_string).collect();
    assert!(found.is_empty(), "{what:?}: {found:?} {texts:?}");
    if let Some(group) = &host.group {
        assert_eq!(group.leaves(), [] as [PathBuf; 0], "{what:?}");
    }
}

/// Sweeps a folder as its user, by way of `contain`, which does so before anything else.
#[track_caller]
pub(crate) fn sweep_as(user: User, folder: &Path) -> Output {
    let mark = MarkGuard::fresh();
    let contain = example("moored-containment", "contain");
    let mut command = mark.wrapping().user(user).command(contain, ["--no-cgroup", "--", "true"]);
    command.env("MOORED_RUNTIME_DIR", folder).stdin(Stdio::null()).current_dir("/");
    let output = command.output().expect("contain");
    assert!(output.status.success(), "{output:?}");
    output
}

/// Waits until SIGSTOP has had its effect.
#[track_caller]
pub(crate) fn wait_until_stopped(process: ProcessIdentity) {
    let stat = format!("/proc/{}/stat", process.pid);
    wait_until("it has stopped", DEADLINE, || {
        fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T ")).then_some(())
    });
}
