//! F6, F12: a server that has not read all that it was told is not idle; one that answers in its own writing is.

use std::fs;
use std::time::Duration;

use moored_containment::ProcessIdentity;
use moored_testkit::wait_until;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::scene::Scene;
use crate::common::{DEADLINE, send};
use crate::seen::{ps, start};

/// Writes down every line that it hears, and answers all calls by the id `1`, but for `initialize`.
const LISTENER: &str = r#"
while IFS= read -r line; do
  printf '%s\n' "$line" >>heard
  case $line in
    *'"method":"initialize"'*) id=0;;
    *'"id":'*) id=1;;
    *) continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"l","version":"1"}}}\n' $id
done
"#;

fn listening(scene: Scene) -> Scene {
    fs::write(scene.scratch.join("listener.sh"), LISTENER).expect("a script");
    scene.hasty().server(["sh", "listener.sh"])
}

fn server(scene: &Scene) -> Option<ProcessIdentity> {
    let alive = scene.mark.alive();
    let listener = alive
        .iter()
        .find(|one| one.cmdline.last().is_some_and(|word| word == "listener.sh" && one.comm == "sh"));
    listener.and_then(|one| ProcessIdentity::of(one.pid).ok())
}

#[test]
fn f06_a_server_that_has_not_read_a_notification_is_not_put_to_sleep() {
    for scene in Scene::all() {
        let scene = listening(scene.options(["--idle", "200ms"]));
        let mut wire = start(&scene);
        let busy = server(&scene).expect("a server");
        assert!(send(&busy, Signal::STOP));
        wire.write_line(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
        assert!(wire.is_silent_for(Duration::from_millis(900)));
        assert_eq!(ps(&scene)[0]["state"], "running", "{:?}: it has something to read", scene.user);
        assert!(send(&busy, Signal::CONT));
        wait_until("it has read it", DEADLINE, || {
            let heard = fs::read_to_string(scene.scratch.join("heard")).expect("a file");
            heard.contains("roots/list_changed").then_some(())
        });
        wait_until("it sleeps then", DEADLINE, || (ps(&scene)[0]["state"] == "hibernating").then_some(()));
        wire.finish();
        scene.assert_clean();
    }
}

/// More than its pipe can hold: what waits with us has not been read either.
#[test]
fn f06_a_server_that_cannot_be_told_a_long_notification_is_not_put_to_sleep() {
    for scene in Scene::all() {
        let scene = listening(scene.options(["--idle", "200ms"]));
        let mut wire = start(&scene);
        let busy = server(&scene).expect("a server");
        assert!(send(&busy, Signal::STOP));
        let text = "x".repeat(200_000);
        wire.write_line(
            &json!({ "jsonrpc": "2.0", "method": "notifications/long", "params": { "text": text } }),
        );
        assert!(wire.is_silent_for(Duration::from_millis(700)));
        assert_eq!(ps(&scene)[0]["state"], "running", "{:?}: it has something to read", scene.user);
        assert!(send(&busy, Signal::CONT));
        wire.finish();
        scene.assert_clean();
    }
}

#[test]
fn f12_a_server_that_writes_ids_in_its_own_way_sleeps_and_is_not_answered_for_twice() {
    for scene in Scene::all() {
        let scene = listening(scene.options(["--idle", "300ms", "--restart", "on-crash"]));
        let mut wire = start(&scene);
        wire.write(b"{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"ping\"}\n");
        assert!(wire.answer_to(&json!(1))["result"].is_object());
        wait_until("it sleeps", DEADLINE, || (ps(&scene)[0]["state"] == "hibernating").then_some(()));
        wire.write(b"{\"jsonrpc\":\"2.0\",\"id\":1e0,\"method\":\"ping\"}\n");
        assert!(wire.answer_to(&json!(1))["result"].is_object());
        assert!(send(&server(&scene).expect("a server"), Signal::KILL));
        let restarted = |event: &Value| event["event"] == "restarting";
        wait_until("it has crashed", DEADLINE, || scene.events().iter().any(restarted).then_some(()));
        let (_, seen) = wire.finish();
        assert_eq!(
            seen.iter().filter(|byte| **byte == b'\n').count(),
            3,
            "{}",
            String::from_utf8_lossy(&seen)
        );
        scene.assert_clean();
    }
}
