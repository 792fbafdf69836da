//! Servers that end in the middle of a line, and have a successor: what the client hears next must not run into that half.

use moored_testkit::wait_until;
use serde_json::{Value, json};

use super::{call, events, wait_until_state};
use crate::common::DEADLINE;
use crate::common::scene::Scene;
use crate::common::wire::Wire;

/// A server that behaves until it is asked for `half`: then it writes this, which is no whole line, and does that.
fn cut_off(scene: Scene, half: &str, then: &str) -> Scene {
    let script = format!(
        r#"while IFS= read -r line; do
  id=${{line#*\"id\":}}; id=${{id%%[,\}}]*}}
  case $line in
    *'"method":"initialize"'*) result='{{"protocolVersion":"2025-06-18","capabilities":{{}},"serverInfo":{{"name":"cut","version":"1"}}}}';;
    *'"method":"half"'*) printf '%s' '{half}'; {then};;
    *'"id":'*) result='{{}}';;
    *) continue;;
  esac
  printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$result"
done"#
    );
    scene.server(["sh", "-c", &script])
}

/// Half of an answer, and half of what is no message.
const HALVES: [&str; 2] = [r#"{"jsonrpc":"2.0","id":7,"result":{"con"#, "half way thr"];

#[test]
fn a_call_that_was_answered_by_half_is_answered_by_a_whole_error_after_a_crash() {
    for half in HALVES {
        for scene in Scene::all() {
            let scene = cut_off(scene.hasty().options(["--restart", "on-crash"]), half, "exit 9");
            let mut wire = Wire::start(scene.run_command());
            wire.initialize();
            wire.write_line(&json!({ "jsonrpc": "2.0", "id": 7, "method": "half" }));
            let answer = wire.answer_to(&json!(7));
            assert_eq!(answer["error"]["data"]["moored"], "server-ended", "{answer}");
            // By the successor, whose answer to `initialize` is not the client's business.
            wire.write_line(&call(8, "again"));
            let line = wire.read_line().expect("a line");
            let answer: Value = serde_json::from_slice(&line).expect("a whole message");
            assert_eq!((&answer["id"], &answer["result"]), (&json!(8), &json!({})));
            wire.finish();
            scene.assert_clean();
        }
    }
}

#[test]
fn what_a_server_said_by_half_before_its_sleep_does_not_spoil_what_the_next_one_says() {
    for half in HALVES {
        for scene in Scene::all() {
            let scene = cut_off(scene.hasty().options(["--idle", "300ms"]), half, "continue");
            let mut wire = Wire::start(scene.run_command());
            wire.initialize();
            wire.write_line(&json!({ "jsonrpc": "2.0", "method": "half" }));
            wait_until("it sleeps", DEADLINE, || (!events(&scene, "hibernated").is_empty()).then_some(()));
            wait_until_state(&scene, 0, "hibernating");
            wire.write_line(&call(8, "again"));
            let answer = wire.answer_to(&json!(8));
            assert_eq!(answer["result"], json!({}), "{answer}");
            wire.finish();
            scene.assert_clean();
        }
    }
}

/// Nobody speaks after the end: there the half is passed on as it is.
#[test]
fn half_a_line_before_the_end_of_all_is_passed_on_unchanged() {
    for half in HALVES {
        for scene in Scene::all() {
            let scene = cut_off(scene.hasty(), half, "exit 9");
            let mut wire = Wire::start(scene.run_command());
            wire.initialize();
            wire.write_line(&json!({ "jsonrpc": "2.0", "id": 7, "method": "half" }));
            let (status, seen) = wire.finish();
            assert_eq!(status.code(), Some(9));
            assert!(seen.ends_with(format!("\n{half}").as_bytes()), "{}", String::from_utf8_lossy(&seen));
            scene.assert_clean();
        }
    }
}
