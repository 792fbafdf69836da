//! Sleep and wake: S24, S38.

use std::fs;
use std::time::Duration;

use moored_testkit::wait_until;
use rustix::process::Signal;
use serde_json::json;

use super::{
    LISTENER, call, events, finish_all, heard, listening, offer, ps, servers, start, wait_until_alive,
    wait_until_awake, wait_until_state,
};
use crate::common::scene::Scene;
use crate::common::wire::Wire;
use crate::common::{DEADLINE, send};

// === S24: what a woken server is told, and what the client hears of it ===

#[test]
fn s24_a_woken_server_is_told_again_what_its_predecessor_was_told() {
    for scene in Scene::all() {
        let scene = listening(scene.hasty().options(["--idle", "1s"]));
        let mut wire = start(&scene);
        wire.ask(1, "tools/list", json!({}));
        wire.ask(2, "logging/setLevel", json!({ "level": "error" }));
        for (id, uri) in [(3, "file:///a"), (4, "file:///b")] {
            wire.ask(id, "resources/subscribe", json!({ "uri": uri }));
        }
        wire.ask(5, "resources/unsubscribe", json!({ "uri": "file:///a" }));
        wait_until_alive(&scene, 1);
        heard(&scene);
        assert_eq!(wire.ask(6, "ping", json!({}))["result"], json!({}));
        let again = heard(&scene);
        assert_eq!(again[..2], ["initialize", "notifications/initialized"], "{again:?}");
        let mut between = again[2..again.len() - 1].to_vec();
        between.sort();
        assert_eq!(between, ["logging/setLevel", "resources/subscribe", "tools/list"], "{again:?}");
        assert_eq!(again.last().map(String::as_str), Some("ping"), "the message comes last");
        let (_, seen) = wire.finish();
        assert_eq!(
            seen.iter().filter(|byte| **byte == b'\n').count(),
            7,
            "an answer to each, and no word more"
        );
        let (slept, started) = (events(&scene, "hibernated"), events(&scene, "started"));
        assert_eq!(slept[0]["why"], "idle");
        assert_eq!(
            started.iter().map(|e| e["why"].as_str()).collect::<Vec<_>>(),
            [Some("first"), Some("wake")]
        );
        scene.assert_clean();
    }
}

#[test]
fn s24_the_client_is_told_when_a_woken_server_has_other_tools() {
    for scene in Scene::all() {
        let scene = listening(scene.hasty().options(["--idle", "300ms"]));
        let mut wire = start(&scene);
        wire.ask(1, "tools/list", json!({}));
        wait_until_alive(&scene, 1);
        offer(&scene, &["echo", "another"]);
        wire.ask(2, "ping", json!({}));
        let list = wire.ask(3, "tools/list", json!({}));
        assert_eq!(list["result"]["tools"][1]["name"], "another");
        // Slept and woken once more, with the same tools as the time before.
        wait_until_alive(&scene, 1);
        wire.ask(4, "ping", json!({}));
        let (_, seen) = wire.finish();
        let told = String::from_utf8(seen).expect("text");
        assert_eq!(told.matches("notifications/tools/list_changed").count(), 1, "{told}");
        scene.assert_clean();
    }
}

/// Many messages at once wake one server, and keep their order.
#[test]
fn s24_what_comes_while_it_wakes_is_answered_in_order() {
    for scene in Scene::all() {
        let scene = scene.hasty().options(["--idle", "200ms"]).misbehave(["--slow-start", "150"]);
        let mut wire = start(&scene);
        wait_until_awake(&scene, 0);
        let lines: String = (1..=20).map(|id| format!("{}\n", call(id, "x"))).collect();
        wire.write(lines.as_bytes());
        let ids: Vec<_> = (1..=20)
            .map(|_| serde_json::from_slice::<serde_json::Value>(&wire.read_line().expect("an answer")))
            .map(|answer| answer.expect("JSON")["id"].as_u64().expect("an id"))
            .collect();
        assert_eq!(ids, (1..=20).collect::<Vec<_>>());
        finish_all(&scene, vec![wire]);
    }
}

/// A stream of notifications that the client has open is open again after the sleep, and the client hears neither of its end
/// nor of its beginning.
#[test]
fn s24_a_woken_server_listens_again_for_what_the_client_wants_to_hear() {
    for scene in Scene::all() {
        let scene = listening(scene.hasty().options(["--idle", "400ms"]));
        let mut wire = Wire::start(scene.run_command());
        wire.ask(1, "server/discover", json!({}));
        wire.write_line(
            &json!({ "jsonrpc": "2.0", "id": 2, "method": "subscriptions/listen", "params": {} }),
        );
        let told = wire.read_line().expect("it listens");
        assert!(String::from_utf8_lossy(&told).contains("subscriptions/acknowledged"), "{told:?}");
        wait_until_alive(&scene, 1);
        heard(&scene);
        wire.ask(3, "ping", json!({}));
        assert_eq!(heard(&scene), ["subscriptions/listen", "ping"]);
        let (_, seen) = wire.finish();
        let seen = String::from_utf8(seen).expect("text");
        let ids: Vec<_> = seen
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["id"].clone())
            .collect();
        assert_eq!(ids, [json!(1), json!(null), json!(3), json!(2)], "{seen}");
        scene.assert_clean();
    }
}

// === S38: recycled when idle ===

/// A lifetime that is over is no reason to lose a call.
#[test]
fn s38_a_server_past_its_lifetime_is_not_ended_over_a_call() {
    for scene in Scene::all() {
        let scene = scene.hasty().options(["--max-lifetime", "500ms"]);
        let mut wire = start(&scene);
        let [server] = &servers(&scene)[..] else { panic!("one server") };
        let server = moored_containment::ProcessIdentity::of(server.pid).expect("a server");
        assert!(send(&server, Signal::STOP));
        wire.write_line(&call(1, "long"));
        assert!(wire.is_silent_for(Duration::from_millis(1500)), "past its lifetime by far");
        assert!(server.is_alive().expect("/proc"), "it has a call to answer");
        assert!(send(&server, Signal::CONT));
        assert_eq!(wire.answer_to(&json!(1))["result"]["content"][0]["text"], "long");
        wait_until_awake(&scene, 0);
        wait_until("it is written down", DEADLINE, || {
            events(&scene, "hibernated").first().map(|event| assert_eq!(event["why"], "lifetime"))
        });
        wire.assert_echo(2, "a fresh one");
        finish_all(&scene, vec![wire]);
    }
}

/// New code serves after the next sleep, and is not shown as stale then.
#[test]
fn s38_stale_code_is_replaced_by_sleep_and_wake() {
    for scene in Scene::all() {
        let scene = listening(scene.hasty().options(["--idle", "2s"]));
        let mut wire = start(&scene);
        let script = scene.scratch.join("listener.sh");
        let mut version = 1;
        wait_until("it is shown as stale", DEADLINE, || {
            version += 1;
            let newer = LISTENER.replace(r#""version":"7.1""#, &format!(r#""version":"8.{version}""#));
            fs::write(&script, newer).expect("a script");
            (ps(&scene)[0]["stale"] == true).then_some(())
        });
        assert_eq!(ps(&scene)[0]["server_version"], "7.1");
        wait_until_state(&scene, 0, "hibernating");
        wire.ask(1, "ping", json!({}));
        wait_until("it is shown as fresh", DEADLINE, || (ps(&scene)[0]["stale"] == false).then_some(()));
        assert_eq!(ps(&scene)[0]["server_version"], format!("8.{version}"), "what serves now");
        finish_all(&scene, vec![wire]);
    }
}
