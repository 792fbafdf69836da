//! Guardians that cannot be executed from memory, or not at all.

use std::fs;
use std::path::Path;

use moored_containment::{Command, EndReport, Recording, StartError, Stdio};
use moored_testkit::{User, lacking};

use crate::assert_clean;
use crate::common::part::{Part, stage};
use crate::common::short;
use crate::common::traces::names;

const NOEXEC: &str = "/proc/sys/vm/memfd_noexec";

/// Plays a part where executing a memfd is forbidden: by a setting that only a PID namespace can have for itself.
fn play_without_memfd(name: &'static str, before: &str) {
    if User::current() != User::Root {
        return;
    }
    if !fs::exists(NOEXEC).expect("/proc") {
        return lacking("a kernel that can forbid to execute a memfd");
    }
    let part = Part::new(name, User::Root);
    let script = format!(r#"echo 2 >{NOEXEC} && {before} && "$@"; exit $?"#);
    let mut argv = ["-pmf", "--mount-proc", "sh", "-c", &script, "sh"].map(str::to_owned).to_vec();
    argv.extend(part.argv());
    let played = part.set(part.wrap().command("unshare", argv)).output().expect("unshare");
    let words = String::from_utf8_lossy(&played.stdout);
    assert!(played.status.success() && words.contains("1 passed"), "{played:?}");
    assert_clean(&part);
}

fn cat() -> Command {
    let mut command = Command::new("cat");
    command.stdin(Stdio::Pipe).stdout(Stdio::Null).ladder(short());
    command
}

fn end(command: &mut Command) -> EndReport {
    command.spawn().expect("a server").end(short()).expect("a report")
}

#[test]
fn where_memory_cannot_be_executed_a_file_is_needs_unshare() {
    play_without_memfd("images::part_with_a_guardian_in_a_file", "true");
}

#[test]
#[ignore = "a part that another test plays in a PID namespace"]
fn part_with_a_guardian_in_a_file() {
    let Some(stage) = stage() else { return };
    for _ in 0..3 {
        assert!(end(&mut cat()).verified);
        let found = names(&stage.join("run"));
        let [image] = &found[..] else { panic!("{found:?}") };
        assert!(image.file_name().expect("a name").to_string_lossy().starts_with("guardian-"), "{found:?}");
    }
    // A file that somebody has spoiled is made anew, never executed.
    let image = names(&stage.join("run")).remove(0);
    fs::write(&image, "#!/bin/sh\nexit 0\n").expect("our file");
    assert!(end(&mut cat()).verified);
    assert!(fs::read(&image).expect("the image").starts_with(b"\x7fELF"));
    // Without a folder there is no place for it.
    let error = cat().recording(Recording::Off).spawn().expect_err("nowhere to execute it from");
    assert_refused(&error);
}

#[test]
fn where_no_file_can_be_executed_either_it_is_refused_needs_unshare() {
    let mount = r#"mkdir -m 700 "$MOORED_RUNTIME_DIR" && mount -t tmpfs -o noexec,mode=700 none "$MOORED_RUNTIME_DIR""#;
    play_without_memfd("images::part_without_any_guardian", mount);
}

#[test]
#[ignore = "a part that another test plays in a PID namespace"]
fn part_without_any_guardian() {
    let Some(stage) = stage() else { return };
    let error = cat().spawn().expect_err("nowhere to execute it from");
    assert_refused(&error);
    let left = names(&stage.join("run"));
    assert!(left.iter().all(|path| is_image(path)), "{left:?}");
}

fn is_image(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("guardian-"))
}

/// The reason says what cannot be done, and the cause why.
#[track_caller]
fn assert_refused(error: &StartError) {
    let StartError::Guardian { source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied, "{error:?}");
    assert_eq!(
        (error.to_string(), error.exit_code()),
        ("failed to set up the guardians of `cat`".into(), 125)
    );
}
