//! Folders for state and records that cannot be used. History may be lost then; the server runs, and is ended.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use moored_testkit::User;

use crate::common::scene::{Scene, moored};
use crate::common::wire::Wire;

/// A session with this state folder works, and ends as it should.
fn assert_works_with_state_in(scene: Scene, state: &Path) {
    let scene = scene.hasty().misbehave(["--exit-code", "5", "--daemon"]);
    let mut command = scene.run_command();
    command.env("MOORED_STATE_DIR", state);
    let mut wire = Wire::start(command);
    wire.initialize();
    wire.assert_echo(1, "works");
    let (status, _) = wire.finish();
    assert_eq!(status.code(), Some(5));
    assert_only_a_spool(&scene);
}

/// What could not be written to the history waits in the runtime folder for a better day; nothing else is left.
fn assert_only_a_spool(scene: &Scene) {
    scene.assert_nobody();
    let found = scene.runtime_files();
    assert!(found.iter().all(|path| path.extension().is_some_and(|ending| ending == "events")), "{found:?}");
}

/// Root can write everywhere but on a file system that is read-only, such as /proc is to all.
#[test]
fn a_read_only_state_folder_does_no_harm() {
    for scene in Scene::all() {
        let folder = scene.scratch.join("read-only");
        fs::create_dir(&folder).expect("a folder");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).expect("ours");
        assert_works_with_state_in(scene, &folder.join("state"));
    }
    for scene in Scene::all() {
        assert_works_with_state_in(scene, Path::new("/proc/1/state"));
    }
}

#[test]
fn a_file_where_the_state_folder_should_be_does_no_harm() {
    for scene in Scene::all() {
        let file = scene.scratch.join("file");
        fs::write(&file, "").expect("a file");
        assert_works_with_state_in(scene, &file);
    }
}

/// A file system of 64 KiB, full to the last byte, in a mount namespace of its own.
#[test]
fn a_full_disk_does_no_harm_needs_unshare() {
    if User::current() != User::Root {
        return;
    }
    let scene = Scene::new(User::Root).hasty().misbehave(["--exit-code", "5", "--daemon"]);
    let full = scene.scratch.join("full");
    fs::create_dir(&full).expect("a folder");
    let script = r#"mount -t tmpfs -o size=64k none "$1" || exit 99
        cat /dev/zero >"$1/fill" 2>/dev/null; mkdir "$1/state"; cat /dev/zero >"$1/more" 2>/dev/null
        MOORED_STATE_DIR=$1/state; export MOORED_STATE_DIR; shift; exec "$@""#;
    let mut argv = ["--mount", "--", "sh", "-c", script, "sh"].map(Into::into).to_vec();
    argv.push(full.into_os_string());
    argv.extend(scene.argv());
    let mut wire = Wire::start(scene.command("unshare", argv));
    wire.initialize();
    wire.assert_echo(1, "works");
    assert_eq!(wire.finish().0.code(), Some(5));
    assert_only_a_spool(&scene);
}

/// Without a place for records an operator cannot find it, and is told so; the tree is held and ended all the same.
#[test]
fn a_runtime_folder_that_cannot_be_used_is_told_and_does_no_harm() {
    for scene in Scene::all() {
        let scene = scene.hasty().misbehave(["--exit-now", "5", "--daemon"]);
        let mut command = scene.run_command();
        let output = command.env("MOORED_RUNTIME_DIR", "/proc/1/moored").output().expect("moored");
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("moored: "), "{output:?}");
        scene.assert_clean();
    }
}

/// A server runs as its user, and can leave anything in the user's folder. What would keep whoever opens it waiting is passed
/// over: by the next `run`, by its sweep, and by whoever looks.
#[test]
fn fifos_among_the_records_keep_nobody_waiting() {
    for scene in Scene::all() {
        let folder = scene.runtime_dir();
        let made = scene.command("mkdir", ["-m700".as_ref(), folder.as_os_str()]).output().expect("mkdir");
        assert!(made.status.success(), "{made:?}");
        let names = ["a.run", ".a.run.draft", "a.room", "a.events", "a.taken", "a.session", "a.crashes"];
        let fifos = names.map(|name| folder.join(name));
        let made = scene.command("mkfifo", &fifos).output().expect("mkfifo");
        assert!(made.status.success(), "{made:?}");
        let scene = scene.hasty().misbehave(["--daemon"]);
        let mut wire = Wire::start(scene.run_command());
        wire.initialize();
        for verb in ["ps", "events"] {
            let argv = ["20".into(), moored().into_os_string(), verb.into()];
            let output = scene.command("timeout", argv).output().expect("timeout");
            assert_eq!(output.status.code(), Some(0), "{verb}: {output:?}");
        }
        assert_eq!(wire.finish().0.code(), Some(0));
        scene.assert_nobody();
        let mut known: Vec<_> = scene.events().into_iter().map(|event| event["event"].clone()).collect();
        assert_eq!(known.pop(), Some("ended".into()), "{known:?}");
    }
}
