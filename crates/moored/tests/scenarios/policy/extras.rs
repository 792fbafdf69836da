//! `--pid-file`, `--info-tool` and `--keep`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use moored_testkit::{read_pids, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{events, finish_all, listening, offer, ps, servers, start, wait_until_awake};
use crate::common::client::Client;
use crate::common::playing::{Holders, Playing};
use crate::common::scene::Scene;
use crate::common::{AFTER_ANYTHING, DEADLINE};

// === --pid-file ===

/// Where it is, and a scene that has one.
fn with_pid_file(scene: Scene) -> (Scene, PathBuf) {
    let path = scene.scratch.join("server.pid");
    let option = ["--pid-file".into(), path.clone().into_os_string()];
    (scene.hasty().options(option), path)
}

/// The three lines of it.
#[track_caller]
fn lines(path: &Path) -> [String; 3] {
    let text = fs::read_to_string(path).expect("a PID file");
    text.lines().map(str::to_owned).collect::<Vec<_>>().try_into().expect("three lines")
}

#[test]
fn pid_file_names_the_server_and_its_version_and_sleeps_with_it() {
    for scene in Scene::all() {
        let (scene, path) = with_pid_file(scene.options(["--idle", "500ms"]));
        let mut wire = start(&scene);
        let version = ps(&scene)[0]["server_version"].as_str().expect("a version").to_owned();
        let [pid, shown, started] = lines(&path);
        assert_eq!(pid, servers(&scene)[0].pid.to_string());
        assert_eq!(shown, version);
        assert!(started.parse::<jiff::Timestamp>().is_ok(), "{started}");
        wait_until_awake(&scene, 0);
        wait_until("there is no file of a server that sleeps", DEADLINE, || (!path.exists()).then_some(()));
        wire.assert_echo(1, "awake");
        let [again, shown, _] = lines(&path);
        assert_eq!((again, shown), (servers(&scene)[0].pid.to_string(), version), "of the woken one");
        finish_all(&scene, vec![wire]);
        assert!(!path.exists());
    }
}

/// What is there and is no PID file stays as it is, whatever it is; the server runs without one.
#[test]
fn pid_file_does_not_take_the_place_of_another_thing() {
    for scene in Scene::all() {
        let (scene, path) = with_pid_file(scene);
        fs::write(&path, "dear diary\n").expect("a file");
        let mut wire = start(&scene);
        wire.assert_echo(1, "works");
        finish_all(&scene, vec![wire]);
        assert_eq!(fs::read_to_string(&path).expect("the file"), "dear diary\n");
        fs::remove_file(&path).expect("the file");
        let made = scene.command("mkfifo", [&path]).output().expect("mkfifo");
        assert!(made.status.success(), "{made:?}");
        // Nobody ever writes to it.
        let mut wire = start(&scene);
        wire.assert_echo(1, "works");
        finish_all(&scene, vec![wire]);
        assert!(path.exists());
        assert_eq!(events(&scene, "warned").len(), 2, "and it is told");
    }
}

/// Whatever ends the session: the file goes with it.
#[test]
fn pid_file_is_gone_after_every_ending() {
    type End = fn(&mut Playing, Holders);
    let endings: [(&str, End); 8] = [
        ("close", |playing, _| playing.order("close")),
        ("exit", |playing, _| playing.order("exit")),
        ("the client is killed", |playing, _| playing.kill_client()),
        ("SIGTERM", |playing, holders| playing.send(&holders.moored, Signal::TERM)),
        ("moored is killed", |playing, holders| playing.send(&holders.moored, Signal::KILL)),
        ("the outer guardian is killed", |playing, holders| playing.send(&holders.outer, Signal::KILL)),
        ("the inner guardian is killed", |playing, holders| playing.send(&holders.inner, Signal::KILL)),
        ("stop", |playing, _| {
            let id = ps(&playing.scene)[0]["id"].as_str().expect("an id").to_owned();
            assert!(playing.scene.moored(["stop", &id]).status.success());
        }),
    ];
    for (what, end) in endings {
        for scene in Scene::all() {
            let (scene, path) = with_pid_file(scene);
            let mut playing = Client::Pipes.play(scene.misbehave(["--daemon"]));
            let holders = playing.holders();
            let server = fs::read_to_string(playing.scene.ready_file()).expect("a pid");
            assert_eq!(lines(&path)[0], server.trim());
            end(&mut playing, holders);
            playing.assert_gone_but(AFTER_ANYTHING, |one| one.comm == "client");
            wait_until(&format!("{what}: the file is gone"), DEADLINE, || (!path.exists()).then_some(()));
        }
    }
}

#[test]
fn pid_file_of_a_dead_process_is_replaced_and_that_of_a_live_one_is_respected() {
    for scene in Scene::all() {
        let (scene, path) = with_pid_file(scene);
        // One more than any process can have.
        fs::write(&path, "4194305\n1.0\n2026-01-01T00:00:00Z\n").expect("a file");
        let first = start(&scene);
        let ours = lines(&path);
        assert_eq!(ours[0], servers(&scene)[0].pid.to_string());
        let mut second = start(&scene);
        assert_eq!(lines(&path), ours, "it belongs to the first");
        second.assert_echo(1, "served all the same");
        second.finish();
        assert_eq!(lines(&path), ours, "and is not the second one's to remove");
        finish_all(&scene, vec![first]);
        assert!(!path.exists());
        let warned = events(&scene, "warned");
        let told = |event: &Value| event["message"].as_str().is_some_and(|m| m.contains("server.pid"));
        assert!(warned.iter().any(told), "{warned:?}");
    }
}

// === --info-tool ===

#[test]
fn info_tool_is_listed_and_answered_without_the_server() {
    for scene in Scene::all() {
        let scene = listening(scene.hasty().options(["--info-tool", "--idle", "500ms"]));
        let mut wire = start(&scene);
        let list = wire.ask(1, "tools/list", json!({}));
        let names: Vec<_> =
            list["result"]["tools"].as_array().expect("a list").iter().map(|t| &t["name"]).collect();
        assert_eq!(names, ["echo", "get_server_info"]);
        let other = start(&scene);
        let answer = wire.ask(2, "tools/call", json!({ "name": "get_server_info", "arguments": {} }));
        let info = &answer["result"]["structuredContent"];
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
        assert_eq!(&serde_json::from_str::<Value>(text).expect("JSON"), info, "the same twice");
        assert_eq!(info["success"], true);
        assert_eq!(info["server_version"], "7.1");
        assert_eq!(info["current_pid"], ps(&scene)[0]["pid"]);
        assert_eq!(info["total_server_processes"], 2);
        assert_eq!(info["health"], "healthy");
        let processes = info["server_processes"].as_array().expect("a list");
        let current: Vec<_> = processes.iter().filter(|one| one["is_current"] == true).collect();
        assert_eq!((processes.len(), current.len()), (2, 1), "{info}");
        assert_eq!(
            (&info["stale"], info["session_uptime_seconds"].is_u64()),
            (&json!(false), true),
            "{info}"
        );
        for key in ["build_date", "current_uptime_seconds", "current_uptime_formatted", "pid_file"] {
            assert!(info.get(key).is_some(), "{key}: {info}");
        }
        // Asked of one that sleeps, it sleeps on.
        wait_until("it sleeps", DEADLINE, || (ps(&scene)[0]["state"] == "hibernating").then_some(()));
        let answer = wire.ask(3, "tools/call", json!({ "name": "get_server_info", "arguments": {} }));
        let info = &answer["result"]["structuredContent"];
        assert_eq!((&info["success"], &info["current_pid"]), (&json!(true), &Value::Null), "{info}");
        assert_eq!(ps(&scene)[0]["state"], "hibernating");
        let calls = super::heard(&scene).iter().filter(|method| *method == "tools/call").count();
        assert_eq!(calls, 0, "the server has never heard of it");
        finish_all(&scene, vec![wire, other]);
    }
}

#[test]
fn info_tool_of_the_servers_own_is_left_to_it() {
    for scene in Scene::all() {
        let scene = listening(scene.hasty().options(["--info-tool"]));
        offer(&scene, &["get_server_info"]);
        let mut wire = start(&scene);
        let list = wire.ask(1, "tools/list", json!({}));
        assert_eq!(list["result"]["tools"].as_array().map(Vec::len), Some(1), "{list}");
        let answer = wire.ask(2, "tools/call", json!({ "name": "get_server_info", "arguments": {} }));
        assert_eq!(answer["result"], json!({}), "the server's own answer");
        finish_all(&scene, vec![wire]);
    }
}

// === --keep ===

/// What is kept is kept through sleep and wake too, and is on record.
#[test]
fn keep_holds_through_sleep() {
    for scene in Scene::all() {
        let folder = scene.scratch.path().as_os_str().to_owned();
        let scene = scene.hasty().options(["--keep", "tmux", "--idle", "1s"]);
        let switches =
            ["--keep-alive-child".into(), "tmux".into(), "--keep-dir".into(), folder, "--daemon".into()];
        let scene = scene.misbehave(switches);
        let wire = start(&scene);
        let kept = read_pids(scene.scratch.join("tmux.pids"));
        assert_eq!(kept.len(), 2, "one and its child");
        wait_until("it sleeps", DEADLINE, || (ps(&scene)[0]["state"] == "hibernating").then_some(()));
        let mut expected = kept.clone();
        expected.sort_unstable();
        wait_until("they are alive, and nobody else", DEADLINE, || {
            let mut alive: Vec<u32> = scene.mark.alive().iter().map(|one| one.pid).collect();
            alive.retain(|pid| *pid != wire.child.id());
            alive.sort_unstable();
            (alive == expected).then_some(())
        });
        wire.finish();
        wait_until("it was written down", DEADLINE, || {
            let slept = events(&scene, "hibernated");
            let report = slept.first()?["report"]["kept"].to_string();
            kept.iter().all(|pid| report.contains(&pid.to_string())).then_some(())
        });
        let mut left: Vec<u32> = scene.mark.alive().iter().map(|one| one.pid).collect();
        left.sort_unstable();
        assert_eq!(left, expected, "still");
        // The scene ends them.
        assert!(scene.mark.wait_until_none(Duration::from_millis(1)).is_err());
    }
}
