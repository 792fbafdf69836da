//! Records that cannot be written.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use moored_containment::{Command, Findable, Recording, RuntimeDir, StartError, Stdio};
use moored_testkit::{Scratch, User};

use crate::assert_clean;
use crate::common::part::{Part, stage};
use crate::common::short;
use crate::common::traces::names;

fn cat() -> Command {
    let mut command = Command::new("cat");
    command.stdin(Stdio::Pipe).stdout(Stdio::Null).ladder(short());
    command
}

/// Folders that are not the user's alone, each with the sign by which its refusal is known.
fn bad_folders(scratch: &Scratch, user: User) -> Vec<(PathBuf, &'static str)> {
    let make = |name: &str, mode: u32| {
        let path = scratch.join(name);
        fs::create_dir(&path).expect("a new folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
        chown(&path, Some(user.uid()), Some(user.gid())).expect("ours to give");
        path
    };
    let mut bad: Vec<_> =
        [0o777, 0o755, 0o701, 0o770].map(|mode| (make(&format!("{mode:o}"), mode), "alone")).to_vec();
    let real = make("real", 0o700);
    symlink(&real, scratch.join("link")).expect("a link");
    bad.push((scratch.join("link"), ""));
    fs::write(scratch.join("file"), "x").expect("a file");
    bad.push((scratch.join("file"), ""));
    bad.push((scratch.join("no/such/folder"), ""));
    if User::current() == User::Root {
        let other = if user == User::Root { User::Plain } else { User::Root };
        let foreign = make("foreign", 0o700);
        chown(&foreign, Some(other.uid()), Some(other.gid())).expect("ours to give");
        bad.push((foreign, "alone"));
    }
    bad
}

#[test]
fn a_folder_that_is_not_the_users_alone_is_refused() {
    let scratch = Scratch::for_user(User::current());
    for (folder, sign) in bad_folders(&scratch, User::current()) {
        let refused = RuntimeDir::at(&folder).expect_err("not ours alone");
        assert!(refused.to_string().contains(sign), "{}: {refused}", folder.display());
    }
}

/// Wanted and not to be had: the session starts all the same, and says that it could not be found.
#[test]
fn a_session_without_a_folder_says_that_it_cannot_be_found() {
    for user in User::available() {
        let part = Part::new("folders::part_without_a_folder", user);
        for (folder, _) in bad_folders(&part.scratch, user) {
            let mut command = part.command(part.wrap());
            let played = command.env("MOORED_RUNTIME_DIR", &folder).output().expect("this program");
            let words = String::from_utf8_lossy(&played.stdout);
            assert!(
                played.status.success() && words.contains("1 passed"),
                "{}: {played:?}",
                folder.display()
            );
            assert!(names(&folder).is_empty(), "{}", folder.display());
        }
        assert!(names(&part.scratch.join("real")).is_empty());
        assert_clean(&part);
    }
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_without_a_folder() {
    if stage().is_none() {
        return;
    }
    assert!(RuntimeDir::of_user().is_err());
    let mut server = cat().spawn().expect("weaker, but started");
    assert_eq!(server.strength().findable, Findable::No);
    assert!(server.end(short()).expect("a report").verified);
}

/// Asked for by name, it must be written there or not be started at all.
#[test]
fn a_record_that_must_be_written_and_cannot_be_is_refused() {
    for user in User::available() {
        let part = Part::new("folders::part_whose_folder_is_spoiled", user);
        part.play();
        assert_clean(&part);
    }
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_whose_folder_is_spoiled() {
    let Some(stage) = stage() else { return };
    let gone = stage.join("gone");
    let folder = RuntimeDir::at(&gone).expect("a new folder");
    fs::remove_dir(&gone).expect("an empty folder");
    assert_refused(folder, &gone, io::ErrorKind::NotFound);
    if !rustix::process::geteuid().is_root() {
        let closed = stage.join("closed");
        let folder = RuntimeDir::at(&closed).expect("a new folder");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).expect("ours");
        assert_refused(folder, &closed, io::ErrorKind::PermissionDenied);
    }
}

#[track_caller]
fn assert_refused(to: RuntimeDir, path: &Path, kind: io::ErrorKind) {
    let error = cat().recording(Recording::In(to)).spawn().expect_err("it must be written down");
    let StartError::Record { folder, source } = &error else { panic!("{error:?}") };
    assert_eq!((folder.as_path(), source.kind()), (path, kind));
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    assert_eq!(error.exit_code(), 125);
}
