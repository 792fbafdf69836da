//! Too few processes or files, files that may not grow, a stderr that nobody reads: the server runs all the same, or it is said why not.

use std::os::unix::fs::chown;
use std::process::Stdio;
use std::time::Duration;

use moored_testkit::User;

use crate::common::scene::Scene;
use crate::common::wire::Wire;

/// A user of nobody's, so that nobody else's processes count.
const ALONE: u32 = 47_123;

/// With every number of processes it either is told that there are too few, or it serves: nothing in between.
#[test]
fn too_few_processes_are_told_or_do_no_harm() {
    if User::current() != User::Root {
        return;
    }
    let mut served = 0;
    for limit in 2..=9 {
        let scene = Scene::new(User::Root);
        chown(scene.scratch.path(), Some(ALONE), Some(ALONE)).expect("ours");
        let alone = [format!("--reuid={ALONE}"), format!("--regid={ALONE}"), "--clear-groups".into()];
        let mut argv: Vec<_> = alone.map(Into::into).to_vec();
        argv.extend(["prlimit".into(), format!("--nproc={limit}:{limit}").into()]);
        argv.extend(scene.argv());
        let mut wire = Wire::start(scene.command("setpriv", argv));
        let _ = wire.try_write(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
        if wire.read_line().is_some() {
            // Later than the look around that comes after the start.
            assert!(wire.is_silent_for(Duration::from_millis(400)));
            wire.assert_echo(2, "still there");
            served += 1;
            assert_eq!(wire.finish().0.code(), Some(0), "{limit}");
        } else {
            assert_eq!((wire.finish().0.code(), served), (Some(125), 0), "{limit}");
        }
        // Without a thread history waits in the spool.
        scene.assert_nobody();
    }
    assert!(served > 0, "enough are enough");
}

/// The same with files; a shortage of ours is never taken for an end of the server's.
#[test]
fn too_few_files_are_told_or_do_no_harm() {
    for scene in Scene::all() {
        let mut served = 0;
        for limit in 7..=40 {
            let mut argv = vec![format!("--nofile={limit}:{limit}").into()];
            argv.extend(scene.argv());
            let output = scene.command("prlimit", argv).output().expect("prlimit");
            match output.status.code() {
                Some(0) => served += 1,
                code => assert_eq!((code, served), (Some(125), 0), "{limit}: {output:?}"),
            }
            scene.assert_nobody();
        }
        assert!(served > 0, "enough are enough");
    }
}

/// Fewer than the reactor takes: tokio would panic.
#[test]
fn f13_hardly_any_files_are_told_as_such_needs_prlimit() {
    for scene in Scene::all() {
        for limit in 7..=14 {
            let mut argv = vec![format!("--nofile={limit}:{limit}").into()];
            argv.extend(scene.argv());
            let output = scene.command("prlimit", argv).output().expect("prlimit");
            let words = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(125), "{limit}: {words}");
            assert!(words.contains("Too many open files") && !words.contains("panicked"), "{limit}: {words}");
            scene.assert_nobody();
        }
    }
}

/// Less than the guardians' memory takes, which counts as a file.
#[test]
fn f13_files_that_may_hardly_grow_are_told_as_such_needs_prlimit() {
    for scene in Scene::all() {
        let mut argv = vec!["--fsize=4096:4096".into()];
        argv.extend(scene.argv());
        let output = scene.command("prlimit", argv).output().expect("prlimit");
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{words}");
        assert!(
            words.contains("files may have 4096 bytes at most") && words.contains("ulimit -f"),
            "{words}"
        );
        scene.assert_nobody();
    }
}

/// A `/proc` without `/proc/sys`. Root makes the namespace for a plain user too; a plain user alone makes its own.
#[test]
fn f13_a_proc_that_shows_processes_only_is_named_needs_unshare() {
    for scene in Scene::all() {
        let how = if User::current() == User::Root { "-mpf" } else { "-Urmpf" };
        let script = r#"mount -t proc -o subset=pid proc /proc && exec "$@""#;
        let run = scene.run_command();
        let mut command = scene.mark.wrap("unshare", [how, "--kill-child", "sh", "-c", script, "sh"]);
        command.arg(run.get_program()).args(run.get_args()).current_dir(scene.scratch.path());
        command.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
        let output = command.output().expect("unshare");
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{:?}: {words}", scene.user);
        assert!(words.contains("subset=pid") && words.contains("boot_id"), "{:?}: {words}", scene.user);
        scene.assert_nobody();
    }
}

/// History and logs that may not grow any further are told of, and are no reason to die.
#[test]
fn a_limit_on_the_size_of_files_does_no_harm() {
    for scene in Scene::all() {
        let scene = scene.misbehave(["--block-stderr", "3000000"]);
        let mut argv = vec!["--fsize=1048576:1048576".into()];
        argv.extend(scene.argv());
        let mut command = scene.command("prlimit", argv);
        command.stderr(std::fs::File::create("/dev/null").expect("a file"));
        let mut wire = Wire::start(command);
        wire.initialize();
        wire.assert_echo(1, "works");
        assert_eq!(wire.finish().0.code(), Some(0));
        scene.assert_clean();
    }
}

/// There is something to be said at the end, and no room for it.
#[test]
fn a_stderr_that_nobody_reads_keeps_nobody() {
    for scene in Scene::all() {
        let scene = scene.misbehave(["--block-stderr", "1000000"]);
        let mut command = scene.run_command();
        // Neither history nor the log can be kept in a file.
        command.env("MOORED_STATE_DIR", scene.argv()[0].clone());
        let mut wire = Wire::start(command);
        wire.initialize();
        wire.assert_echo(1, "works");
        assert_eq!(wire.finish().0.code(), Some(0));
        scene.assert_nobody();
    }
}
