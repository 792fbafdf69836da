//! A command that makes no sense.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use moored_containment::{Command, ServerExit, StartError, Stdio};

use crate::assert_clean;
use crate::common::belongings::Belongings;
use crate::common::hold::{Hold, cells};
use crate::common::part::{Part, hold, stage};

fn play(name: &'static str) {
    for cell in cells() {
        let part = Part::of(name, cell);
        part.play();
        assert_clean(&part);
    }
}

fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::Pipe).stdout(Stdio::Pipe).stderr(Stdio::Null).env("PATH", "/usr/bin:/bin");
    hold().apply(&mut command);
    command
}

/// Starts it in vain, and sees that nothing came of it.
#[track_caller]
fn refused(command: &mut Command) -> StartError {
    // One session before: the folder of records, and what else is there once and for all.
    drop(self::command("true").spawn().expect("true"));
    let before = Belongings::now();
    let error = command.spawn().expect_err("it makes no sense");
    let after = Belongings::now();
    assert_eq!(after, before, "{error}");
    after.assert_nothing_of_sessions();
    error
}

fn put(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our file");
}

fn with_nul(text: &str) -> OsString {
    OsString::from_vec([text.as_bytes(), b"\0rest"].concat())
}

#[test]
fn what_is_not_there_is_127_and_named() {
    play("commands::part_with_nothing_there");
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_with_nothing_there() {
    let Some(stage) = stage() else { return };
    let file = stage.join("a-file");
    put(&file, "x", 0o644);
    let below_a_file = file.join("x");
    let missing = stage.join("missing");
    for program in
        [missing.as_path(), &below_a_file, Path::new("no-such-program"), Path::new("./x"), Path::new("")]
    {
        let error = refused(&mut command(program));
        assert!(matches!(error, StartError::NotFound { .. }), "{program:?}: {error:?}");
        assert_eq!(error.exit_code(), 127);
        assert!(error.to_string().contains(&program.display().to_string()), "{error}");
    }
    // Found in our PATH, not in the server's. A folder that may not be searched says nothing about what is in it.
    let closed = stage.join("closed");
    fs::create_dir(&closed).expect("a folder");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("ours");
    for path in [Path::new("/nowhere"), Path::new(""), Path::new("::"), &closed] {
        let error = refused(command("true").env("PATH", path));
        assert!(matches!(error, StartError::NotFound { .. }), "{path:?}: {error:?}");
    }
    let error = refused(&mut command("no-such-program"));
    assert_eq!(error.to_string(), "failed to start `no-such-program`: no such program in PATH");
}

#[test]
fn what_is_there_but_cannot_be_executed_is_126() {
    play("commands::part_with_nothing_executable");
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_with_nothing_executable() {
    let Some(stage) = stage() else { return };
    let at = |name: &str| stage.join(name);
    put(&at("plain"), "#!/bin/sh\nexit 7\n", 0o644);
    put(&at("orphan"), "#!/no/such/interpreter\n", 0o755);
    fs::create_dir(at("folder")).expect("a folder");
    std::os::unix::fs::symlink("loop", at("loop")).expect("a link");
    for name in ["plain", "orphan", "folder", "loop"] {
        for program in [at(name).into_os_string(), name.into()] {
            let mut command = command(&program);
            let error = refused(command.env("PATH", &stage));
            assert!(matches!(error, StartError::NotExecutable { .. }), "{program:?}: {error:?}");
            assert_eq!(error.exit_code(), 126);
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}

#[test]
fn the_path_is_searched_as_execvp_does() {
    play("commands::part_with_a_path_to_search");
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_with_a_path_to_search() {
    let Some(stage) = stage() else { return };
    for (folder, text, mode) in
        [("a", "exit 5", 0o644), ("b", "exit 6", 0o755), ("c", "#!/bin/sh\nexit 7", 0o755)]
    {
        fs::create_dir(stage.join(folder)).expect("a folder");
        put(&stage.join(folder).join("tool"), text, mode);
    }
    let path =
        |folders: &[&str]| folders.iter().map(|f| stage.join(f).display().to_string()).collect::<Vec<_>>();
    for (folders, code) in [(&["a", "b", "c"][..], 6), (&["nowhere", "c", "b"], 7), (&["a", "c"], 7)] {
        let mut server = command("tool").env("PATH", path(folders).join(":")).spawn().expect("one of them");
        assert_eq!(server.wait().expect("a status"), ServerExit::Code(code), "{folders:?}");
    }
    // An empty part is the server's working directory.
    let mut server =
        command("tool").env("PATH", "").current_dir(stage.join("c")).spawn().expect("the one there");
    assert_eq!(server.wait().expect("a status"), ServerExit::Code(7));
}

#[test]
fn a_working_directory_that_cannot_be_entered_is_named() {
    play("commands::part_with_nowhere_to_go");
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_with_nowhere_to_go() {
    let Some(stage) = stage() else { return };
    put(&stage.join("file"), "x", 0o644);
    fs::create_dir(stage.join("closed")).expect("a folder");
    fs::set_permissions(stage.join("closed"), fs::Permissions::from_mode(0o000)).expect("ours");
    // Root may enter it, and so may whoever has a user namespace of his own.
    let is_closed = !rustix::process::geteuid().is_root() && hold() != Hold::Strict;
    let closed = is_closed.then_some("closed");
    for name in ["missing", "file", "file/below"].into_iter().chain(closed) {
        let folder = stage.join(name);
        let error = refused(command("true").current_dir(&folder));
        assert!(
            matches!(&error, StartError::WorkingDirectory { path, .. } if *path == folder),
            "{name}: {error:?}"
        );
        assert!(error.to_string().contains(&folder.display().to_string()), "{error}");
        assert_eq!(error.exit_code(), 125);
    }
}

#[test]
fn what_cannot_be_passed_on_is_named() {
    play("commands::part_with_what_cannot_be_passed_on");
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_with_what_cannot_be_passed_on() {
    if stage().is_none() {
        return;
    }
    let nul = with_nul("true");
    let mut all = vec![
        ("program", command(&nul)),
        ("argument", command("true")),
        ("variable", command("true")),
        ("variable", command("true")),
        ("directory", command("true")),
        ("on_end", command("true")),
        ("A=B", command("true")),
        ("variable", command("true")),
    ];
    all[1].1.arg(&nul);
    all[2].1.env("NAME", &nul);
    all[3].1.env(&nul, "value");
    all[4].1.current_dir(Path::new(&nul));
    all[5].1.on_end([OsStr::new("true"), &nul]);
    all[6].1.env("A=B", "value");
    all[7].1.env("", "value");
    for (what, command) in &mut all {
        let error = refused(command);
        assert!(matches!(error, StartError::InvalidInput { .. }), "{what}: {error:?}");
        assert!(error.to_string().contains(*what), "{what}: {error}");
        assert_eq!(error.exit_code(), 125);
    }
    if hold().can_keep() {
        let error = refused(command("true").keep(&nul));
        assert!(matches!(error, StartError::InvalidInput { .. }), "{error:?}");
    }
    // More than the kernel takes.
    let error = refused(command("true").arg("x".repeat(1 << 20)));
    assert!(matches!(error, StartError::NotExecutable { .. }), "{error:?}");
}
