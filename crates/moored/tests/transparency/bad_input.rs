//! What a client or a server should never write, and does. None of it ends a session, and none of it is changed.

use std::time::Duration;

use serde_json::json;

use crate::common::scene::Scene;
use crate::common::wire::Wire;

/// Not text, no line for long, and no multiple of anything.
fn garbage(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 31 + i / 251) as u8).map(|byte| if byte == b'\n' { 0 } else { byte }).collect()
}

/// `cat` gives back what it gets, so both directions are seen.
fn through_cat(scene: Scene, bytes: &[u8]) -> Vec<u8> {
    let scene = scene.server(["cat"]);
    let mut wire = Wire::start(scene.run_command());
    let (mut rest, step) = (bytes, 60_001);
    while !rest.is_empty() {
        let (now, later) = rest.split_at(step.min(rest.len()));
        wire.write(now);
        rest = later;
    }
    let (status, seen) = wire.finish();
    assert_eq!(status.code(), Some(0));
    scene.assert_clean();
    seen
}

#[track_caller]
fn assert_same(seen: &[u8], expected: &[u8]) {
    assert!(seen == expected, "{} bytes instead of {}", seen.len(), expected.len());
}

#[test]
fn a_huge_line_goes_through_whole() {
    for scene in Scene::all() {
        let text = "x".repeat(16 << 20);
        let line =
            format!("{}\n", json!({ "jsonrpc": "2.0", "method": "notifications/huge", "params": text }));
        assert_same(&through_cat(scene, line.as_bytes()), line.as_bytes());
    }
}

/// Larger than any limit on a message: that one call fails, and the session goes on.
#[test]
fn heavy_a_line_beyond_the_limit_fails_that_call_alone() {
    let scene = Scene::new(moored_testkit::User::current());
    let mut wire = Wire::start(scene.run_command());
    wire.initialize();
    let beginning =
        r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"echo","arguments":{"text":""#;
    wire.write(beginning.as_bytes());
    let megabyte = vec![b'y'; 1 << 20];
    (0..80).for_each(|_| wire.write(&megabyte));
    wire.write(b"\"}}}\n");
    let answer = wire.answer_to(&json!(77));
    assert!(answer["error"]["code"].is_i64(), "{}", &answer.to_string()[..200]);
    wire.assert_echo(78, "still there");
    assert_eq!(wire.finish().0.code(), Some(0));
    scene.assert_clean();
}

#[test]
fn binary_garbage_goes_through_whole() {
    for scene in Scene::all() {
        let mut bytes = garbage(300_007);
        bytes.extend(b"\n\xff\xfe\n\n\0\n\r\n{]\n");
        assert_same(&through_cat(scene, &bytes), &bytes);
    }
}

#[test]
fn half_a_line_before_eof_goes_through() {
    for scene in Scene::all() {
        let bytes = b"{\"jsonrpc\":\"2.0\",\"id\":1}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"meth";
        assert_same(&through_cat(scene, bytes), bytes);
    }
}

/// A message is passed on when it is whole; half of one may wait, but not be lost.
#[test]
fn half_a_line_becomes_a_whole_one() {
    for scene in Scene::all() {
        let mut wire = Wire::start(scene.run_command());
        wire.initialize();
        wire.write(br#"{"jsonrpc":"2.0","id":5,"#);
        assert!(wire.is_silent_for(Duration::from_millis(100)));
        wire.write(b"\"method\":\"ping\"}\n");
        assert_eq!(wire.answer_to(&json!(5))["result"], json!({}));
        assert_eq!(wire.finish().0.code(), Some(0));
        scene.assert_clean();
    }
}

#[test]
fn what_a_server_writes_before_initialize_goes_through() {
    for scene in Scene::all() {
        let misbehave = moored_testkit::bin("misbehave").display().to_string();
        let script =
            format!("echo 'Starting server on stdio...'; printf '\\377 no text'; echo; exec {misbehave}");
        let scene = scene.server(["sh", "-c", &script]);
        let mut wire = Wire::start(scene.run_command());
        assert_eq!(wire.read_line().expect("a line"), b"Starting server on stdio...");
        assert_eq!(wire.read_line().expect("a line"), b"\xff no text");
        wire.initialize();
        wire.assert_echo(1, "after all");
        assert_eq!(wire.finish().0.code(), Some(0));
        scene.assert_clean();
    }
}

/// What was written before the end is read before the end.
#[test]
fn the_last_words_of_a_server_that_exits_arrive() {
    for scene in Scene::all() {
        let scene =
            scene.server(["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' z; printf 'no newline'; exit 3"]);
        let (status, seen) = Wire::start(scene.run_command()).finish();
        assert_eq!((status.code(), seen.len()), (Some(3), 3_000_010));
        assert!(seen.ends_with(b"no newline"));
        scene.assert_clean();
    }
}

/// Answers to what was asked just before EOF arrive: the client still reads.
#[test]
fn what_was_asked_before_eof_is_answered() {
    for scene in Scene::all() {
        let scene = scene.misbehave(["--slow-start", "300"]);
        let mut wire = Wire::start(scene.run_command());
        for id in 1..=50 {
            wire.write_line(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
        }
        let (status, seen) = wire.finish();
        assert_eq!(status.code(), Some(0));
        assert_eq!(seen.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count(), 50);
        scene.assert_clean();
    }
}

/// More than fits in between, for a server that is slow to read: whoever closes its end has said all of it.
#[test]
fn all_that_was_written_before_eof_is_read_and_answered() {
    for scene in Scene::all() {
        let scene = scene.misbehave(["--slow-start", "700"]);
        let mut wire = Wire::start(scene.run_command());
        let text = "x".repeat(2000);
        let calls = 1..=1000;
        for id in calls.clone() {
            let params = json!({ "name": "echo", "arguments": { "text": text } });
            wire.write_line(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
        }
        wire.close_stdin();
        for id in calls {
            let answer = wire.answer_to(&json!(id));
            assert_eq!(answer["result"]["content"][0]["text"], text.as_str(), "{answer}");
        }
        assert_eq!(wire.exit().code(), Some(0));
        scene.assert_clean();
    }
}

/// stderr is the server's, whole and in order, on moored's own stderr.
#[test]
fn stderr_goes_through_whole() {
    for scene in Scene::all() {
        let scene = scene.server([
            "sh",
            "-c",
            "i=0; while [ $i -lt 2000 ]; do echo \"line $i\" >&2; i=$((i+1)); done",
        ]);
        let output = scene.run_command().output().expect("moored");
        let expected: String = (0..2000).map(|i| format!("line {i}\n")).collect();
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
        scene.assert_clean();
    }
}
