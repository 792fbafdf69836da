//! The client is alive and has forgotten its server, so that the end of the input never comes: S13 to S20, S24, S38, S41,
//! S42. What helps is sleep, limits and back-off; and no call is ever lost to them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use moored_testkit::{User, bin, wait_until};
use serde_json::{Value, json};

use crate::common::DEADLINE;
use crate::common::scene::Scene;
use crate::common::wire::Wire;
use crate::seen::{finish_all, ps, servers, start, wait_until_awake};

// === S24: idle but attached ===

#[test]
fn s24_an_idle_server_sleeps_and_the_next_call_wakes_it() {
    for scene in Scene::all() {
        let scene = scene.hasty().options(["--idle", "300ms"]);
        let mut wire = start(&scene);
        let first = wire.ask(1, "tools/list", json!({}));
        for id in 2..4 {
            wait_until_awake(&scene, 0);
            let rows = ps(&scene);
            assert_eq!(rows.iter().map(|row| &row["state"]).collect::<Vec<_>>(), ["hibernating"], "{rows:?}");
            assert!(wire.is_silent_for(Duration::from_millis(50)), "falling asleep is not told");
            let mut again = wire.ask(id, "tools/list", json!({}));
            again["id"] = json!(1);
            assert_eq!(again, first, "the wake is not to be seen");
            assert_eq!(servers(&scene).len(), 1);
        }
        let (status, seen) = wire.finish();
        assert_eq!(status.code(), Some(0));
        assert_eq!(seen.iter().filter(|byte| **byte == b'\n').count(), 4, "the answers, and no word more");
        scene.assert_clean();
    }
}

/// A client that goes while its server sleeps has nobody to wait for.
#[test]
fn s24_a_sleeping_session_ends_at_once() {
    for scene in Scene::all() {
        let scene = scene.options(["--idle", "100ms"]);
        let wire = start(&scene);
        wait_until_awake(&scene, 0);
        let began = Instant::now();
        assert_eq!(wire.finish().0.code(), Some(0));
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        scene.assert_clean();
    }
}

/// Nothing in flight is lost: a server that takes its time is not idle.
#[test]
fn s24_a_server_with_a_call_in_flight_does_not_sleep() {
    for scene in Scene::all() {
        let scene = scene.hasty().options(["--idle", "100ms"]).misbehave(["--slow-start", "700"]);
        let mut wire = start(&scene);
        wire.assert_echo(1, "answered");
        finish_all(&scene, vec![wire]);
    }
}

#[test]
fn s24_without_a_policy_nothing_is_touched() {
    for scene in Scene::all() {
        let scene = scene.hasty().options(["--idle", "off"]);
        let mut wire = start(&scene);
        let before: Vec<u32> = scene.mark.alive().iter().map(|one| one.pid).collect();
        assert!(wire.is_silent_for(Duration::from_millis(700)));
        let after: Vec<u32> = scene.mark.alive().iter().map(|one| one.pid).collect();
        assert_eq!(before, after);
        finish_all(&scene, vec![wire]);
    }
}

// === S13, S15, S18: another generation, and the old one forgotten ===

#[test]
fn s13_the_old_generation_sleeps_when_its_call_is_answered_and_loses_nothing() {
    for scene in Scene::all() {
        let scene = scene.hasty().options(["--max-instances", "1"]).misbehave(["--slow-start", "600"]);
        let mut old = Wire::start(scene.run_command());
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "w", "version": "1" } });
        old.write_line(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
        wait_until_awake(&scene, 1);
        // Pending, and no earlier: the second one comes while the first has not been answered.
        let mut new = Wire::start(scene.run_command());
        assert_eq!(old.answer_to(&json!(0))["result"]["serverInfo"]["name"], "misbehave");
        old.write_line(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        new.initialize();
        wait_until_awake(&scene, 1);
        old.assert_echo(1, "the old one wakes");
        new.assert_echo(1, "and so does the new one");
        wait_until_awake(&scene, 1);
        finish_all(&scene, vec![old, new]);
    }
}

#[test]
fn s15_s16_s18_generations_are_bounded_and_all_of_them_answer() {
    for scene in Scene::all() {
        let scene = scene.hasty().options(["--max-instances", "2"]);
        let mut wires: Vec<Wire> = (0..6).map(|_| start(&scene)).collect();
        wait_until_awake(&scene, 2);
        assert_eq!(ps(&scene).len(), 6);
        for (id, wire) in wires.iter_mut().enumerate() {
            wire.assert_echo(id as u64 + 1, "here");
        }
        wait_until_awake(&scene, 2);
        finish_all(&scene, wires);
    }
}

/// What is shown of a forgotten generation, before any limit has been reached.
#[test]
fn s14_a_superseded_server_is_shown_as_such_and_left_alone() {
    for scene in Scene::all() {
        let scene = scene.hasty();
        let wires = vec![start(&scene), start(&scene)];
        let rows = ps(&scene);
        let verdicts: Vec<_> = rows.iter().map(|row| row["verdict"].as_str().expect("a word")).collect();
        assert_eq!(verdicts, ["superseded", "attached"], "{rows:?}");
        assert_eq!(servers(&scene).len(), 2);
        finish_all(&scene, wires);
    }
}

// === S17: a server that never answers ===

/// The client gave up on it and keeps the pipe. It is busy with a call that never ends, so it is not put to sleep; that
/// the attempts pile up is what the limit is for.
#[test]
fn s17_attempts_that_were_given_up_do_not_pile_up() {
    for scene in Scene::all() {
        let options = ["--max-instances", "1", "--over-limit", "refuse"];
        let scene = scene.hasty().options(options).misbehave(["--slow-start", "60000"]);
        let mut first = Wire::start(scene.run_command());
        first.write_line(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} }));
        wait_until_awake(&scene, 1);
        for _ in 0..3 {
            let output = scene.run_command().output().expect("moored");
            assert_eq!(output.status.code(), Some(125), "{output:?}");
            let words = String::from_utf8_lossy(&output.stderr);
            assert!(words.contains("--max-instances"), "the hint names what to change: {words}");
        }
        assert_eq!(servers(&scene).len(), 1);
        let child = moored_containment::ProcessIdentity::of(first.child.id()).expect("our child");
        assert!(crate::common::send(&child, rustix::process::Signal::TERM));
        first.exit();
        scene.assert_clean();
    }
}

// === S19: a crash loop ===

#[test]
fn s19_a_server_that_crashes_at_once_is_not_started_for_ever() {
    for scene in Scene::all() {
        let count = scene.scratch.join("starts");
        fs::write(&count, "").expect("a file");
        fs::set_permissions(&count, fs::Permissions::from_mode(0o666)).expect("ours");
        let script = format!("echo x >>{}; exit 1", count.display());
        let scene = scene.hasty().server(["sh", "-c", &script]);
        let mut errors = 0;
        for _ in 0..20 {
            let mut wire = Wire::start(scene.run_command());
            // It may have crashed before it is asked.
            let _ =
                wire.try_write(b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{}}\n");
            let told = wire.read_line().map(|line| serde_json::from_slice::<Value>(&line).expect("JSON"));
            errors += usize::from(told.is_some_and(|answer| answer["error"]["message"].is_string()));
            assert_eq!(wire.finish().0.code(), Some(1));
        }
        let starts = fs::read_to_string(&count).expect("a file").lines().count();
        assert!(starts <= 6, "{starts} starts of 20");
        assert!(errors >= 14, "the others are told at once: {errors}");
        scene.assert_clean();
    }
}

#[test]
fn s19_a_server_that_crashes_is_started_again_and_serves() {
    for scene in Scene::all() {
        let scene = scene.hasty().options(["--restart", "on-crash"]).misbehave(["--crash-after", "2"]);
        let mut wire = start(&scene);
        for id in 1..=5 {
            let before = ps(&scene)[0]["pid"].clone();
            wire.assert_echo(id, "through all crashes");
            if id % 2 == 0 {
                // It crashes after every second answer. A call that came before that is noticed would be lost with it.
                let look = || (ps(&scene)[0]["pid"] != before).then_some(());
                wait_until("the crash was noticed", DEADLINE, look);
            }
        }
        finish_all(&scene, vec![wire]);
    }
}

/// The call that the crash took with it is answered, with an error.
#[test]
fn s41_a_server_that_is_killed_fails_its_call_and_no_more() {
    for scene in Scene::all() {
        let scene = scene.hasty().options(["--restart", "on-crash"]).misbehave(["--allocate", "8"]);
        let mut wire = start(&scene);
        let server = scene.mark.alive().into_iter().find(|one| one.comm == "misbehave").expect("a server");
        let server = moored_containment::ProcessIdentity::of(server.pid).expect("a server");
        // Stopped first, so that the call is surely in flight when the kernel's choice falls on it.
        assert!(crate::common::send(&server, rustix::process::Signal::STOP));
        let params = json!({ "name": "echo", "arguments": { "text": "lost" } });
        wire.write_line(&json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params }));
        wait_until("the call is in flight", DEADLINE, || in_flight(&scene).then_some(()));
        assert!(crate::common::send(&server, rustix::process::Signal::KILL));
        assert!(wire.answer_to(&json!(9))["error"]["message"].is_string());
        wire.assert_echo(10, "the next one is served");
        finish_all(&scene, vec![wire]);
    }
}

fn in_flight(scene: &Scene) -> bool {
    let name = ps(scene)[0]["id"].as_str().expect("an id").to_owned();
    let output = scene.moored(["inspect", &name, "--json"]);
    let shown: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    shown.to_string().contains(r#""in_flight":1"#)
}

/// Without `--restart` a crash is the end, as it is without moored.
#[test]
fn s41_without_restart_a_crash_is_the_clients_to_see() {
    for scene in Scene::all() {
        let scene = scene.hasty().misbehave(["--crash-after", "1", "--daemon"]);
        let mut wire = start(&scene);
        wire.assert_echo(1, "the last");
        assert_eq!(wire.exit().code(), Some(3));
        scene.assert_clean();
    }
}

// === S20: many at once ===

#[test]
fn heavy_s20_parallel_starts_stay_within_the_cap() {
    for scene in Scene::all() {
        let scene = scene.hasty().options(["--max-instances", "4"]);
        let mut wires: Vec<Wire> = (0..12).map(|_| Wire::start(scene.run_command())).collect();
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "w", "version": "1" } });
        let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        // All are asked at once, and each says what belongs to it: which of them starts first is not ours to say.
        for wire in &mut wires {
            wire.write_line(&initialize);
            wire.write_line(&initialized);
        }
        let mut peak = 0;
        for wire in &mut wires {
            wire.answer_to(&json!(0));
            peak = peak.max(servers(&scene).len());
        }
        wait_until("no more than the cap are awake", DEADLINE, || {
            let now = servers(&scene).len();
            peak = peak.max(now);
            (now <= 4).then_some(())
        });
        assert!(peak <= 4, "{:?}: {peak} were awake at once", scene.user);
        for (id, wire) in wires.iter_mut().enumerate() {
            wire.assert_echo(id as u64 + 1, "each is served");
        }
        finish_all(&scene, wires);
    }
}

// === S38: stale code ===

#[test]
fn s38_code_that_has_changed_on_disk_is_shown_and_replaced_when_idle() {
    for scene in Scene::all() {
        let script = scene.scratch.join("server.sh");
        fs::write(&script, format!("exec {} # one\n", bin("misbehave").display())).expect("a script");
        let scene = scene.hasty().server(["sh".into(), script.clone().into_os_string()]);
        let mut wire = start(&scene);
        assert_eq!(ps(&scene)[0]["stale"], false);
        let mut version = 1;
        // What was there at the start is read when the server has settled; from then on every change is seen.
        wait_until("it is shown as stale", DEADLINE, || {
            version += 1;
            fs::write(&script, format!("exec {} # {version}\n", bin("misbehave").display()))
                .expect("a script");
            (ps(&scene)[0]["stale"] == true).then_some(())
        });
        wire.assert_echo(1, "still served");
        finish_all(&scene, vec![wire]);
    }
}

/// With a lifetime, the old code is replaced without the client's help.
#[test]
fn s38_an_old_server_is_replaced_when_it_is_idle() {
    for scene in Scene::all() {
        let scene = scene.hasty().options(["--max-lifetime", "300ms"]);
        let mut wire = start(&scene);
        wait_until_awake(&scene, 0);
        wire.assert_echo(1, "a fresh one");
        finish_all(&scene, vec![wire]);
    }
}

// === S42: pipes pile up in the client ===

/// The forgotten ones are ended, so that the client can see on its own ends that they are.
#[test]
fn s42_forgotten_generations_are_ended_with_stop_oldest() {
    for user in User::available() {
        let options = ["--max-instances", "1", "--over-limit", "stop-oldest"];
        let scene = Scene::new(user).hasty().options(options);
        let mut wires: Vec<Wire> = (0..8).map(|_| start(&scene)).collect();
        let mut last = wires.pop().expect("eight");
        for mut wire in wires {
            assert!(wire.read_line().is_none(), "its stdout has ended");
            wire.exit();
        }
        last.assert_echo(1, "the newest serves");
        finish_all(&scene, vec![last]);
    }
}
