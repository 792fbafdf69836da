//! F7: a server that closes one of its pipes and lives on. The client sees what it would see without us.

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use moored_testkit::wait_until;
use serde_json::{Value, json};

use crate::call;
use crate::common::DEADLINE;
use crate::common::scene::Scene;
use crate::common::wire::Wire;
use crate::seen::ps;

/// Answers `initialize`, and then does this.
fn then(scene: Scene, what: &str) -> Scene {
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"h","version":"1"}}}"#;
    let script = format!("read -r line; echo '{answer}'; {what}");
    scene.hasty().server(["sh", "-c", &script])
}

fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} })
}

fn start(scene: &Scene) -> Wire {
    let mut wire = Wire::start(scene.run_command());
    wire.write_line(&initialize());
    assert!(wire.answer_to(&json!(0))["result"].is_object());
    wire
}

/// Writes until nobody reads any more.
#[track_caller]
fn wait_for_broken_pipe(mut write: impl FnMut() -> std::io::Result<()>) {
    wait_until("a write fails", DEADLINE, || match write() {
        Ok(()) => None,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            Some(())
        }
    });
}

#[test]
fn f07_the_client_sees_the_end_of_a_stdout_that_its_server_closed() {
    for options in [&[][..], &["--restart", "on-crash"], &["--idle", "300ms"]] {
        for scene in Scene::all() {
            let scene =
                then(scene.options(options.iter().copied()), "exec 1>&-; while read -r line; do :; done");
            let mut wire = start(&scene);
            let began = Instant::now();
            assert!(wire.read_line().is_none(), "{:?}", scene.user);
            assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
            assert_eq!(ps(&scene)[0]["state"], "running", "the server lives");
            // It is still told what the client says, and ended with it.
            wire.write_line(&call(1, "into the void"));
            wire.finish();
            assert_eq!(scene.end_causes(), ["client-eof"]);
            scene.assert_clean();
        }
    }
}

/// What was said before is passed on in full.
#[test]
fn f07_what_a_server_said_before_it_closed_its_stdout_arrives() {
    for scene in Scene::all() {
        let scene = then(scene, "head -c 500000 /dev/zero | tr '\\0' 'x'; exec 1>&-; sleep 600");
        let mut wire = start(&scene);
        assert!(wire.read_line().is_none(), "it ends without an end of line");
        let (_, seen) = wire.finish();
        assert_eq!(seen.iter().filter(|byte| **byte == b'x').count(), 500_000, "{:?}", scene.user);
        scene.assert_clean();
    }
}

#[test]
fn f07_a_client_cannot_write_to_a_server_that_has_closed_its_stdin() {
    for options in [&[][..], &["--restart", "on-crash"], &["--idle", "300ms"]] {
        for scene in Scene::all() {
            let scene = then(scene.options(options.iter().copied()), "exec 0<&-; sleep 600");
            let mut wire = start(&scene);
            // Nothing was written since: it is the closing that is seen.
            wait_until("nobody reads", DEADLINE, || wire.is_unread().then_some(()));
            let write = wire.try_write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/lost\"}\n");
            assert_eq!(write.expect_err("nobody reads").kind(), ErrorKind::BrokenPipe, "{:?}", scene.user);
            assert_eq!(ps(&scene)[0]["state"], "running", "the server lives");
            assert!(scene.moored(["stop", "sh"]).status.success());
            wire.exit();
            scene.assert_clean();
        }
    }
}

/// Where so much was written that we had stopped reading, too.
#[test]
fn f07_a_client_that_is_held_up_sees_its_server_close_its_stdin() {
    for scene in Scene::all() {
        let scene = then(scene, "sleep 1; exec 0<&-; sleep 600");
        let mut wire = start(&scene);
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":\"{}\"}}\n",
            "x".repeat(60_000)
        );
        wait_for_broken_pipe(|| wire.try_write(line.as_bytes()));
        assert!(scene.moored(["stop", "sh"]).status.success());
        wire.exit();
        scene.assert_clean();
    }
}

/// Our stdin cannot tell any more that the client has closed its end; our stdout does.
#[test]
fn f07_a_client_that_closes_its_ends_ends_a_server_that_had_closed_its_stdin() {
    for scene in Scene::all() {
        let scene = then(scene, "exec 0<&-; sleep 600");
        let mut command = scene.run_command();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("moored");
        drop(command);
        let (mut input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        writeln!(input, "{}", initialize()).expect("a reader");
        let mut output = BufReader::new(output);
        output.read_line(&mut String::new()).expect("an answer");
        wait_for_broken_pipe(|| writeln!(input, "{}", call(1, "lost")));
        drop((input, output));
        wait_until("moored has ended", Duration::from_secs(3), || child.try_wait().expect("our child"));
        scene.assert_clean();
    }
}

/// Neither side can say anything any more.
#[test]
fn f07_a_server_that_closes_both_of_its_pipes_is_ended() {
    for scene in Scene::all() {
        let scene = then(scene, "exec 0<&- 1>&-; sleep 600");
        let mut wire = start(&scene);
        assert!(wire.read_line().is_none());
        wait_until("moored has ended", Duration::from_secs(3), || wire.child.try_wait().expect("our child"));
        scene.assert_clean();
    }
}

/// A crash closes both too, and is one: the client's pipes stay for the next server.
#[test]
fn f07_a_crash_is_not_taken_for_a_half_close() {
    for scene in Scene::all() {
        let scene = then(scene.options(["--restart", "on-crash"]), "read -r line; read -r line; kill -9 $$");
        let mut wire = start(&scene);
        for id in 1..3 {
            wire.write_line(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
            wire.write_line(&call(id, "crash"));
            assert!(wire.answer_to(&json!(id))["error"]["message"].is_string());
        }
        wire.finish();
        scene.assert_clean();
    }
}

/// The guardians cannot tell that it has exited, and the client would wait for ever.
#[test]
fn f13_a_server_that_stops_its_guardians_and_exits_ends_its_session() {
    for scene in Scene::all() {
        let stop_both =
            r#"outer="$(sed 's/.*) . //; s/ .*//' /proc/$PPID/stat)"; kill -STOP "$outer" "$PPID"; exit 3"#;
        let scene = then(scene, stop_both);
        let mut wire = start(&scene);
        let began = Instant::now();
        assert!(wire.read_line().is_none(), "{:?}", scene.user);
        wire.exit();
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
        scene.assert_clean();
    }
}
