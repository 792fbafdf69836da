//! What a server finds around it, and how its end is passed on.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

use moored_testkit::wait::wait_for_file;
use moored_testkit::{bin, wait_until};
use rustix::process::{Pid, Signal};

use crate::common::scene::Scene;
use crate::common::wire::Wire;
use crate::common::{AFTER_EOF, AFTER_TERM, DEADLINE};

/// Prints its argv, its working directory and its environment, each word ended by a NUL.
const TELL_ALL: &str = r#"printf '%s\0' "$0" "$@" "$(pwd -P)"; tr '\0' '\0' </proc/self/environ"#;

#[test]
fn argv_environment_and_folder_are_the_clients_own() {
    for scene in Scene::all() {
        let words = ["zero", "", "two words", "--name", "-x", "--", "'quoted'", "ümläut", "new\nline"];
        let argv = ["sh", "-c", TELL_ALL].into_iter().chain(words);
        let folder = scene.scratch.join("a folder");
        fs::create_dir(&folder).expect("a folder");
        let extra = [
            ("PLAIN", "1"),
            ("EMPTY", ""),
            ("MANY", "a=b\nc"),
            ("LD_LIBRARY_PATH", ""),
            ("npm_config_x", "y"),
        ];

        let mut direct = scene.command("sh", argv.clone().skip(1));
        let expected = direct.envs(extra).current_dir(&folder).output().expect("sh");
        let scene = scene.server(argv);
        let mut through = scene.run_command();
        let seen = through.envs(extra).current_dir(&folder).output().expect("moored");

        let parts = |stdout: &[u8]| -> (Vec<String>, BTreeMap<String, String>) {
            let all: Vec<_> =
                stdout.split(|byte| *byte == 0).map(|w| String::from_utf8_lossy(w).into_owned()).collect();
            let (told, env) = all.split_at(words.len() + 1);
            let pairs = env.iter().filter_map(|pair| pair.split_once('='));
            (told.to_vec(), pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
        };
        let (told, env) = parts(&seen.stdout);
        let (expected_told, expected_env) = parts(&expected.stdout);
        assert_eq!(told, expected_told, "{seen:?}");
        assert_eq!(env, expected_env);
        assert_eq!(env.get("MANY").map(String::as_str), Some("a=b\nc"));
        assert_eq!(seen.status.code(), Some(0));
        scene.assert_clean();
    }
}

/// Nothing of moored's own but stdio is open in the server.
#[test]
fn the_server_inherits_no_file_of_moored() {
    for scene in Scene::all() {
        let scene = scene.server(["sh", "-c", "ls /proc/$$/fd"]);
        let seen = scene.run_command().output().expect("moored");
        let listed = String::from_utf8_lossy(&seen.stdout).into_owned();
        assert_eq!(listed.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2"], "{seen:?}");
    }
}

#[test]
fn every_exit_code_is_passed_on() {
    let scene = Scene::new(moored_testkit::User::current());
    for code in (0..=255).step_by(if std::env::var_os("MOORED_TEST_FULL").is_some() { 1 } else { 15 }) {
        let scene_argv = ["sh".to_owned(), "-c".into(), format!("exit {code}")];
        let argv = [vec!["run".to_owned(), "--".into()], scene_argv.to_vec()].concat();
        let output = scene.moored(argv);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(
            output.stdout.is_empty() && output.stderr.is_empty(),
            "quiet unless something is wrong: {output:?}"
        );
    }
    scene.assert_clean();
}

/// `moored -- CMD` is the same as `moored run -- CMD`.
#[test]
fn the_verb_can_be_left_out() {
    for scene in Scene::all() {
        let output = scene.moored(["--", "sh", "-c", "echo out; exit 9"]);
        assert_eq!((output.status.code(), &*output.stdout), (Some(9), &b"out\n"[..]), "{output:?}");
    }
}

#[test]
fn death_by_a_signal_is_128_and_its_number() {
    for scene in Scene::all() {
        for signal in [1, 2, 3, 6, 9, 11, 13, 15] {
            let misbehave = bin("misbehave").display().to_string();
            let output = scene.moored(["run", "--", &misbehave, "--die-by", &signal.to_string()]);
            assert_eq!(output.status.code(), Some(128 + signal), "{output:?}");
        }
        scene.assert_clean();
    }
}

#[test]
fn what_cannot_be_started_is_127_or_126_and_named() {
    for scene in Scene::all() {
        let file = scene.scratch.join("plain-file");
        fs::write(&file, "x").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("ours");
        let file = file.display().to_string();
        let unknown = "no-such-program-anywhere";
        for (program, code) in [("/no/such/program", 127), (unknown, 127), (&*file, 126), ("/etc", 126)] {
            let output = scene.moored(["run", "--", program]);
            let words = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{words}");
            assert!(words.contains(program), "{words}");
            assert!(output.stdout.is_empty());
        }
        scene.assert_clean();
    }
}

#[test]
fn a_command_line_that_makes_no_sense_is_2() {
    let scene = Scene::new(moored_testkit::User::current());
    let lines: [&[&str]; 5] = [
        &["run"],
        &["run", "--"],
        &["run", "--no-such", "--", "true"],
        &["run", "--grace", "soon", "--", "true"],
        &["nonsense"],
    ];
    for line in lines {
        let output = scene.moored(line);
        assert_eq!(output.status.code(), Some(2), "{line:?}: {output:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{output:?}");
    }
}

/// Some programs block signals in the threads from which they start others, and that is inherited.
#[test]
fn a_sigterm_that_was_blocked_from_the_start_is_heard() {
    for scene in Scene::all() {
        let scene = scene.misbehave(["--ignore-term", "--ignore-eof", "--daemon"]);
        let mut argv = vec!["--block-signal".into()];
        argv.extend(scene.argv());
        let mut wire = Wire::start(scene.command("env", argv));
        wire.initialize();
        let began = Instant::now();
        rustix::process::kill_process(Pid::from_child(&wire.child), Signal::TERM).expect("our child");
        wire.exit();
        assert!(began.elapsed() < AFTER_TERM, "{:?}", began.elapsed());
        scene.assert_clean();
    }
}

/// A client whose files we may not look at is a client all the same: its tree is gone by the bound, although a call in flight
/// is never answered.
#[test]
fn a_client_of_another_user_has_the_same_bound() {
    for scene in Scene::all() {
        let scene = scene.misbehave(["--slow-start", "600000", "--ignore-term"]);
        let mut wire = Wire::start(scene.run_command());
        wire.write(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
        wait_for_file(&scene.ready_file(), DEADLINE);
        let moored = wire.child.id();
        wire.close_stdin();
        wait_until("its tree is gone", AFTER_EOF, || {
            scene.mark.alive().iter().all(|one| one.pid == moored).then_some(())
        });
        wire.exit();
        scene.assert_clean();
    }
}
