//! Superseded: of the instances that one client has started, those that nobody uses any more sleep. S13 to S17.

use std::time::Duration;

use moored_testkit::wait_until;
use serde_json::json;

use super::{events, finish_all, heard, inspect, listening, ps, servers, wait_until_state};
use crate::common::DEADLINE;
use crate::common::scene::Scene;
use crate::common::wire::Wire;

/// A `run` for which this much silence is long.
fn run(scene: &Scene, silence: &str) -> Wire {
    let mut command = scene.run_command();
    command.env("MOORED_AUTO_IDLE", silence);
    Wire::start(command)
}

/// Of two generations for one client the forgotten one sleeps, the other does not; and the forgotten one still answers.
#[test]
fn s15_a_superseded_server_that_is_silent_sleeps_and_the_newest_does_not() {
    for scene in Scene::all() {
        let scene = scene.hasty();
        let run = || {
            let mut wire = run(&scene, "1s");
            wire.initialize();
            wire
        };
        let mut old = run();
        // Silent for longer than that, but nobody has taken its place.
        wait_until("it has been silent for long", DEADLINE, || {
            (inspect(&scene, 0)
                .to_string()
                .split_once(r#""silent_ms":"#)?
                .1
                .split_once(',')?
                .0
                .parse::<u64>()
                .ok()?
                > 1300)
                .then_some(())
        });
        assert_eq!(servers(&scene).len(), 1, "only the superseded sleep by themselves");
        let mut new = run();
        wait_until_state(&scene, 0, "hibernating");
        let rows = ps(&scene);
        assert_eq!(rows[1]["state"], "running", "{rows:?}");
        wait_until("it is written down", DEADLINE, || {
            events(&scene, "hibernated").first().map(|event| assert_eq!(event["why"], "superseded"))
        });
        old.assert_echo(1, "not lost");
        new.assert_echo(1, "nor this one");
        finish_all(&scene, vec![old, new]);
    }
}

/// A server that holds something that a new one would not have stays awake, superseded or not.
#[test]
fn s16_a_superseded_server_that_holds_something_does_not_sleep() {
    for scene in Scene::all() {
        let scene = listening(scene.hasty());
        let run = || {
            let mut wire = run(&scene, "400ms");
            wire.initialize();
            wire
        };
        let mut subscribed = run();
        subscribed.ask(1, "resources/subscribe", json!({ "uri": "file:///a" }));
        let mut parent = run();
        parent.ask(1, "tools/call", json!({ "name": "start", "arguments": {} }));
        let idle = run();
        let newest = run();
        wait_until_state(&scene, 2, "hibernating");
        // They had as long as the one that sleeps, and as long again.
        let mut waiting = newest;
        assert!(waiting.is_silent_for(Duration::from_millis(600)));
        let states: Vec<_> = ps(&scene).iter().map(|row| row["state"].clone()).collect();
        assert_eq!(states, ["running", "running", "hibernating", "running"]);
        finish_all(&scene, vec![subscribed, parent, idle, waiting]);
    }
}

/// The entry was edited, and the client has started it anew beside what it had.
#[test]
fn s14_a_server_whose_entry_was_edited_is_superseded_and_sleeps() {
    for scene in Scene::all() {
        let scene = scene.hasty();
        let mut old = run(&scene, "500ms");
        old.initialize();
        assert!(old.is_silent_for(Duration::from_millis(600)), "entries of one config are started together");
        let mut command = scene.run_command();
        command.env("MOORED_AUTO_IDLE", "500ms").env("EDITED", "1");
        let mut new = Wire::start(command);
        new.initialize();
        wait_until_state(&scene, 0, "hibernating");
        let rows = ps(&scene);
        let expected = format!("superseded by pid {}, config hash changed", rows[1]["pid"]);
        assert_eq!((&rows[0]["verdict"], &rows[1]["verdict"]), (&json!("superseded"), &json!("attached")));
        assert!(rows[0]["reason"].as_str().expect("text").starts_with(&expected), "{expected}: {rows:?}");
        old.assert_echo(1, "not lost");
        finish_all(&scene, vec![old, new]);
    }
}

/// The client gave up on it, keeps its pipe, and tries again. Whoever does say something after all is answered as if the
/// server had been slow.
#[test]
fn s17_a_server_that_never_answered_sleeps_when_another_was_started() {
    for scene in Scene::all() {
        let scene = listening(scene.hasty());
        // The third start is the first that works.
        let script = "echo x >>starts; [ $(wc -l <starts) -gt 2 ] && exec sh listener.sh; exec sleep 600";
        let scene = scene.server(["sh", "-c", script]);
        let attempt = || {
            let mut wire = run(&scene, "500ms");
            wire.write_line(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} }));
            wire
        };
        let mut first = attempt();
        wait_until_state(&scene, 0, "starting");
        let second = attempt();
        wait_until_state(&scene, 0, "hibernating");
        assert_eq!(ps(&scene)[1]["state"], "starting", "the newest is waited for");
        assert!(first.is_silent_for(Duration::ZERO), "it was never answered");
        let answer = first.ask(1, "ping", json!({}));
        assert_eq!(answer["result"], json!({}));
        assert_eq!(heard(&scene), ["initialize", "ping"]);
        finish_all(&scene, vec![first, second]);
    }
}
