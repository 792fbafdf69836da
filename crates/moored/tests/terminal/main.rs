//! At a terminal, `moored run` behaves as the bare command: ^C, ^Z, ^D, and the window that is closed.

#![expect(clippy::disallowed_methods, reason = "a shell under a mark, which ends what is left of it")]

#[allow(dead_code, reason = "each target uses its part of it")]
#[path = "../common/mod.rs"]
mod common;

use common::scene::Scene;
use common::{AFTER_ANYTHING, fixtures};

const PROMPT: &str = "ready> ";

/// Types the steps into a shell; each waits for what it names. Nothing is left when the terminal is closed.
fn play(scene: &Scene, steps: &[(&str, &str)]) -> String {
    // What is typed is echoed, so what is awaited is never written as it is typed.
    let prompt = ("PS1='rea''dy> '\n", PROMPT);
    let steps: Vec<_> = [prompt].into_iter().chain(steps.iter().copied()).collect();
    let steps = serde_json::to_string(&steps).expect("JSON");
    let script = std::fs::read_to_string(fixtures::source("python/terminal.py")).expect("a fixture");
    let played = scene.command("python3", ["-c", &script, &steps]).output().expect("python3");
    let text = String::from_utf8_lossy(&played.stdout).into_owned();
    assert!(played.status.success(), "{}\n{text}", String::from_utf8_lossy(&played.stderr));
    let left = scene.mark.wait_until_none(AFTER_ANYTHING);
    assert!(left.is_ok(), "{left:?}\n{text}");
    text
}

/// The command line of the scene, for a shell.
fn typed(scene: &Scene) -> String {
    let words: Vec<String> = scene
        .argv()
        .iter()
        .map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")))
        .collect();
    format!("{}\n", words.join(" "))
}

#[test]
fn an_interrupt_ends_it_as_it_ends_the_bare_command_needs_python() {
    for scene in Scene::all() {
        let scene = scene.server(["sh", "-c", "echo u''p; exec sleep 600"]);
        play(&scene, &[(&typed(&scene), "up"), ("\x03", PROMPT), ("echo code=$?\n", "code=130")]);
    }
}

/// A terminal tells the whole job, not only its first process: a wrapper may leave the work to its child.
#[test]
fn an_interrupt_reaches_all_of_the_servers_job_needs_python() {
    for scene in Scene::all() {
        let child = "trap 'echo child''-told; exit 0' INT; echo u''p; while :; do sleep 0.1; done";
        let script = format!("trap 'wait; exit 9' INT; sh -c \"{child}\"");
        let scene = scene.server(["sh", "-c", &script]);
        let seen = play(&scene, &[(&typed(&scene), "up"), ("\x03", PROMPT), ("echo code=$?\n", "code=9")]);
        assert!(seen.contains("child-told"), "{seen}");
    }
}

#[test]
fn a_stop_stops_the_server_too_and_it_goes_on_in_the_foreground_needs_python() {
    for scene in Scene::all() {
        let pid_file = scene.scratch.join("pid");
        let scene = scene.options(["--pid-file".into(), pid_file.clone()]).server(["sed", "-u", "s/^/got /"]);
        let state = format!("echo state=$(cut -d' ' -f3 /proc/$(head -n1 '{}')/stat)\n", pid_file.display());
        let steps = [
            (typed(&scene), ""),
            ("one\n".into(), "got one"),
            ("\x1a".into(), "Stopped"),
            (state, "state=T"),
            ("fg\n".into(), "run"),
            ("two\n".into(), "got two"),
            ("\x04".into(), PROMPT),
            ("echo code=$?\n".into(), "code=0"),
        ];
        let steps: Vec<(&str, &str)> =
            steps.iter().map(|(typed, awaited)| (typed.as_str(), *awaited)).collect();
        play(&scene, &steps);
    }
}

#[test]
fn s04_a_window_that_is_closed_takes_everything_with_it_needs_python() {
    for scene in Scene::all() {
        let scene = scene.misbehave(["--ignore-eof", "--daemon"]);
        // The shell is hung up while it runs.
        play(
            &scene,
            &[
                (&typed(&scene), ""),
                ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n", "\"result\""),
            ],
        );
    }
}

#[test]
fn words_without_a_newline_are_seen_at_once_needs_python() {
    for scene in Scene::all() {
        let scene = scene.server(["sh", "-c", "printf 'na''me? '; read name; echo hello $name"]);
        play(&scene, &[(&typed(&scene), "name? "), ("moored\n", "hello moored")]);
    }
}
