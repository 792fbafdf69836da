//! F5, F9: a call that is followed by the end of the input. Where the server can answer it does, and then all is gone by the
//! bound that counts from that end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use moored_containment::ProcessIdentity;
use moored_testkit::wait_until;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::call;
use crate::common::scene::Scene;
use crate::common::wire::Wire;
use crate::common::{AFTER_EOF, DEADLINE, send};
use crate::seen::{finish_all, ps, servers, start, wait_until_awake};

#[track_caller]
fn wait_until_state(scene: &Scene, row: usize, state: &str) {
    wait_until(&format!("row {row} is {state}"), DEADLINE, || {
        ps(scene).get(row).is_some_and(|row| row["state"] == state).then_some(())
    });
}

/// Makes a call, closes the input, and expects the answer, and the end by the bound.
#[track_caller]
fn assert_last_call_is_answered(scene: &Scene, mut wire: Wire) {
    let closed = Instant::now();
    wire.write_line(&call(77, "the last"));
    wire.close_stdin();
    let answer = wire.answer_to(&json!(77));
    assert_eq!(answer["result"]["content"][0]["text"], "the last", "{:?}: {answer}", scene.user);
    assert!(wire.read_line().is_none(), "and nothing else");
    assert_eq!(wire.exit().code(), Some(0));
    assert!(closed.elapsed() <= AFTER_EOF, "{:?}", closed.elapsed());
    assert_eq!(scene.end_causes().last(), Some(&json!("client-eof")));
}

#[test]
fn f05_a_last_call_is_answered_by_a_server_that_was_falling_asleep() {
    for scene in Scene::all() {
        let scene = scene.options(["--idle", "150ms"]).misbehave(["--die-on-eof-after", "700"]);
        let wire = start(&scene);
        // Put to sleep, and not gone yet.
        wait_until_state(&scene, 0, "ending");
        assert_last_call_is_answered(&scene, wire);
        scene.assert_clean();
    }
}

/// One that takes all of its time to fall asleep leaves none for another start: the call fails, and the bound holds.
#[test]
fn f05_the_bound_holds_for_a_last_call_to_the_most_stubborn() {
    for scene in Scene::all() {
        let scene = scene.options(["--idle", "150ms"]).misbehave(["--ignore-eof", "--ignore-term"]);
        let mut wire = start(&scene);
        wait_until_state(&scene, 0, "ending");
        let closed = Instant::now();
        wire.write_line(&call(77, "the last"));
        wire.close_stdin();
        let answer = wire.answer_to(&json!(77));
        assert!(answer["error"]["message"].is_string(), "{answer}");
        wire.exit();
        assert!(closed.elapsed() <= AFTER_EOF, "{:?}", closed.elapsed());
        scene.assert_clean();
    }
}

#[test]
fn f05_a_last_call_is_answered_by_a_sleeping_server() {
    for scene in Scene::all() {
        let scene = scene.options(["--idle", "150ms"]);
        let wire = start(&scene);
        wait_until_state(&scene, 0, "hibernating");
        assert_last_call_is_answered(&scene, wire);
        scene.assert_clean();
    }
}

/// The only place is taken by one that is busy, so that room is still being made when the input ends.
#[test]
fn f05_a_last_call_is_answered_while_room_is_being_made() {
    for scene in Scene::all() {
        let scene = scene.options(["--max-instances", "1"]);
        let last = start(&scene);
        let mut other = start(&scene);
        wait_until_state(&scene, 0, "hibernating");
        wait_until_awake(&scene, 1);
        let server = ProcessIdentity::of(servers(&scene)[0].pid).expect("a server");
        assert!(send(&server, Signal::STOP));
        other.write_line(&call(1, "busy"));
        wait_until("the call is in flight", DEADLINE, || {
            let id = ps(&scene)[1]["id"].as_str().expect("an id").to_owned();
            let shown = scene.moored(["inspect", &id, "--json"]);
            String::from_utf8_lossy(&shown.stdout).contains(r#""in_flight":1"#).then_some(())
        });
        assert_last_call_is_answered(&scene, last);
        assert!(send(&server, Signal::CONT));
        assert_eq!(other.answer_to(&json!(1))["result"]["content"][0]["text"], "busy");
        finish_all(&scene, vec![other]);
    }
}

#[test]
fn f05_a_last_call_is_answered_by_a_server_that_would_be_started_again_later() {
    for scene in Scene::all() {
        let scene = scene.options(["--restart", "on-crash"]);
        let mut wire = start(&scene);
        // The second pause is a whole second.
        for crashes in 1..=2 {
            let server = wait_until("it serves", DEADLINE, || servers(&scene).into_iter().next());
            wire.assert_echo(crashes, "it serves");
            assert!(send(&ProcessIdentity::of(server.pid).expect("a server"), Signal::KILL));
            let restarting = |event: &Value| event["event"] == "restarting" && event["attempt"] == crashes;
            wait_until("it backs off", DEADLINE, || scene.events().iter().any(restarting).then_some(()));
        }
        assert_last_call_is_answered(&scene, wire);
        scene.assert_clean();
    }
}

// === F9: how long a call in flight is waited for ===

/// Reads `initialize` and answers; all else is read and never answered.
const MUTE: &str = r#"
read -r line
echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"mute","version":"1"}}}'
while read -r line; do :; done
sleep 600
"#;

/// A client that is no ancestor of moored, since a launcher between them has exited: it lives, reads on, and is bound to see
/// the tree gone in time all the same.
#[test]
fn f09_a_live_client_that_is_no_ancestor_sees_the_tree_gone_by_the_bound() {
    for scene in Scene::all() {
        let scene = scene.hasty().server(["sh", "-c", MUTE]);
        let launcher = r#"exec 3<&0; "$@" <&3 3<&- & exec 3<&-"#;
        let words = ["-c".into(), launcher.into(), "sh".into()].into_iter().chain(scene.argv());
        let mut launcher = scene.command("sh", words);
        launcher.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = launcher.spawn().expect("sh");
        drop(launcher);
        let (mut input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        assert!(child.wait().expect("our child").success());
        let mut output = BufReader::new(output).lines();
        writeln!(input, r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{}}}}"#)
            .expect("a reader");
        assert!(output.next().expect("an answer").expect("text").contains("mute"));
        writeln!(input, "{}", call(1, "never answered")).expect("a reader");
        drop(input);
        let closed = Instant::now();
        assert!(output.next().is_none(), "it is not answered");
        scene.assert_nobody();
        assert!(closed.elapsed() < Duration::from_secs(3), "{:?}: {:?}", scene.user, closed.elapsed());
        scene.assert_clean();
    }
}

/// A pipeline whose writer has left: the answer is all that is waited for, beyond the bound of the ladder.
#[test]
fn f09_a_pipeline_whose_writer_has_left_still_gets_a_slow_answer() {
    for scene in Scene::all() {
        let scene = scene.hasty().misbehave(["--slow-start", "1500"]);
        let pipeline = format!(r#"printf '%s\n' '{}' | "$@" | cat"#, call(1, "late"));
        let words = ["-c".into(), pipeline.into(), "sh".into()].into_iter().chain(scene.argv());
        let output = scene.command("sh", words).output().expect("sh");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("late"), "{:?}: {said}", scene.user);
        scene.assert_clean();
    }
}
