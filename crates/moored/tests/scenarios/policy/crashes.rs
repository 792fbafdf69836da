//! Servers that crash: S19, S41.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use moored_containment::ProcessIdentity;
use moored_testkit::{User, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{call, events, finish_all, inspect, ps, servers, start};
use crate::common::scene::Scene;
use crate::common::wire::Wire;
use crate::common::{DEADLINE, send};

/// A server that writes down each of its starts, and then does this.
fn counted(scene: Scene, then: &str) -> Scene {
    let count = scene.scratch.join("starts");
    fs::write(&count, "").expect("a file");
    fs::set_permissions(&count, fs::Permissions::from_mode(0o666)).expect("ours");
    let script = format!("echo x >>{}; {then}", count.display());
    scene.server(["sh", "-c", &script])
}

fn starts(scene: &Scene) -> usize {
    fs::read_to_string(scene.scratch.join("starts")).expect("a file").lines().count()
}

/// Asks for `initialize`; what is answered, if anything is, and what moored exits with.
fn try_initialize(scene: &Scene) -> (Option<Value>, Option<i32>) {
    let mut wire = Wire::start(scene.run_command());
    // It may have crashed before it is asked.
    let _ =
        wire.try_write(b"{\"jsonrpc\":\"2.0\",\"id\":\"first\",\"method\":\"initialize\",\"params\":{}}\n");
    let answer = wire.read_line().map(|line| serde_json::from_slice(&line).expect("JSON"));
    (answer, wire.finish().0.code())
}

// === S19: across runs ===

#[test]
fn s19_after_five_crashes_the_sixth_start_is_an_answer_and_no_process() {
    for scene in Scene::all() {
        let scene = counted(scene.hasty(), "exit 9");
        for number in 1..=5 {
            assert_eq!(try_initialize(&scene).1, Some(9));
            assert_eq!(starts(&scene), number);
        }
        for _ in 0..3 {
            let began = Instant::now();
            let (answer, code) = try_initialize(&scene);
            let answer = answer.expect("an answer");
            assert_eq!(answer["id"], "first");
            assert!(answer["error"]["message"].as_str().is_some_and(|why| why.contains("crash")), "{answer}");
            assert_eq!(code, Some(9), "as the server would");
            assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        }
        assert_eq!(starts(&scene), 5, "and no more");
        let causes = scene.end_causes();
        assert_eq!(causes[..5], vec![json!("server-exited"); 5]);
        assert_eq!(causes[5..], vec![json!("crash-loop"); 3]);
        // Another entry is not to blame.
        let mut other = scene.run_command();
        other.env("ANOTHER_ENTRY", "1");
        assert_eq!(other.output().expect("moored").status.code(), Some(9));
        assert_eq!(starts(&scene), 6);
        scene.assert_clean();
    }
}

/// Where the client talks to the server itself nobody else can answer it: it learns of the loop by an end.
#[test]
fn s19_a_crash_loop_of_a_direct_server_is_an_end_at_once() {
    for scene in Scene::all() {
        let scene = counted(scene.hasty().options(["--direct"]), "exit 9");
        for _ in 0..8 {
            let mut wire = Wire::start(scene.run_command());
            assert_eq!(wire.exit().code(), Some(9));
        }
        assert_eq!(starts(&scene), 5);
        scene.assert_clean();
    }
}

/// Servers that end well, and those that crash once they have served, are no crash loop.
#[test]
fn s19_ends_that_are_no_crash_at_the_start_do_not_count() {
    for scene in Scene::all() {
        let good = counted(scene.hasty(), "exit 0");
        for number in 1..=7 {
            try_initialize(&good);
            assert_eq!(starts(&good), number);
        }
        good.assert_clean();
        let late = Scene::new(good.user).hasty().misbehave(["--crash-after", "1"]);
        for _ in 0..7 {
            let mut wire = start(&late);
            wire.assert_echo(1, "the last");
            assert_eq!(wire.exit().code(), Some(3));
        }
        late.assert_clean();
    }
}

// === S41: one of two servers is taken by the kernel ===

#[test]
fn s41_a_killed_server_takes_nobody_with_it_and_its_call_is_told_how_it_ended() {
    for scene in Scene::all() {
        let scene = scene.hasty().options(["--restart", "on-crash"]);
        let mut struck = start(&scene);
        let first = ProcessIdentity::of(servers(&scene)[0].pid).expect("a server");
        let mut other = start(&scene);
        let second = servers(&scene).into_iter().find(|one| one.pid != first.pid).expect("another server");
        let second = ProcessIdentity::of(second.pid).expect("a server");
        assert!(send(&first, Signal::STOP));
        for id in [7, 8] {
            struck.write_line(&call(id, "lost"));
        }
        wait_until("both calls are in flight", DEADLINE, || {
            inspect(&scene, 0).to_string().contains(r#""in_flight":2"#).then_some(())
        });
        assert!(send(&first, Signal::KILL));
        let mut failed: Vec<_> = (0..2)
            .map(|_| struck.read_line().expect("an answer to each"))
            .map(|line| serde_json::from_slice::<Value>(&line).expect("JSON"))
            .collect();
        failed.sort_by_key(|answer| answer["id"].as_u64());
        assert_eq!([&failed[0]["id"], &failed[1]["id"]], [7, 8]);
        for answer in failed {
            let why = answer["error"]["message"].as_str().expect("an error");
            assert!(why.contains("signal 9"), "{why}");
        }
        struck.assert_echo(9, "a new one serves");
        other.assert_echo(1, "untouched");
        assert!(second.is_alive().expect("/proc"), "the very same");
        let restarts = events(&scene, "restarting");
        assert_eq!(restarts.len(), 1, "{restarts:?}");
        assert_eq!(restarts[0]["attempt"], 1);
        assert_eq!(restarts[0]["after_ms"].as_u64().map(|after| after <= 500), Some(true), "{restarts:?}");
        finish_all(&scene, vec![struck, other]);
    }
}

/// Back-off, and then an end to it: a server that crashes over every call is not started for ever, and its client is told
/// at once.
#[test]
fn heavy_s19_a_server_that_crashes_five_times_in_a_row_is_left_alone_for_a_while() {
    let scene = Scene::new(User::current()).hasty().options(["--restart", "on-crash"]);
    let mut wire = start(&scene);
    for number in 0..5 {
        let server = wait_until("it serves", DEADLINE, || servers(&scene).into_iter().next());
        wire.assert_echo(number, "alive");
        let server = ProcessIdentity::of(server.pid).expect("a server");
        assert!(send(&server, Signal::KILL));
        wait_until("it is gone", DEADLINE, || (!server.is_alive().expect("/proc")).then_some(()));
    }
    wait_until("it is given up", DEADLINE, || (ps(&scene)[0]["state"] == "backing-off").then_some(()));
    let began = Instant::now();
    wire.write_line(&call(9, "nobody is there"));
    assert!(wire.answer_to(&json!(9))["error"]["message"].is_string());
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    assert!(servers(&scene).is_empty());
    let pauses: Vec<_> = events(&scene, "restarting").iter().map(|e| e["after_ms"].as_u64()).collect();
    assert_eq!(pauses.len(), 4, "{pauses:?}");
    assert!(pauses.is_sorted(), "each longer than the one before: {pauses:?}");
    finish_all(&scene, vec![wire]);
}
