//! F3: after five crashes within a minute a server is not started, until the minute is over; and only the crashes that the same
//! client saw count.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use moored_testkit::{bin, wait_until};
use serde_json::{Value, json};

use crate::common::DEADLINE;
use crate::common::scene::Scene;
use crate::common::wire::Wire;
use crate::seen::ps;

/// A server that exits 9 until there is a file `good`, and is a good one then.
fn failing(scene: Scene) -> Scene {
    let script = format!("[ -e good ] || exit 9; exec {}", bin("misbehave").display());
    scene.hasty().server(["sh", "-c", &script])
}

fn make_good(scene: &Scene) {
    let good = scene.scratch.join("good");
    fs::write(&good, "").expect("a file");
    fs::set_permissions(&good, fs::Permissions::from_mode(0o644)).expect("ours");
}

fn initialize(id: u64) -> Value {
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "w", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params })
}

fn crash(scene: &Scene) {
    let mut wire = Wire::start(scene.run_command());
    // It may have crashed before it is asked.
    let _ = wire.try_write(format!("{}\n", initialize(0)).as_bytes());
    assert_eq!(wire.exit().code(), Some(9));
}

/// Moves all crashes that are remembered into the past.
fn age(scene: &Scene, by: Duration) {
    let entries =
        fs::read_dir(scene.runtime_dir()).expect("a folder").map(|entry| entry.expect("an entry").path());
    for path in entries.filter(|path| path.extension().is_some_and(|ending| ending == "crashes")) {
        let older = |line: &str| {
            let (at, rest) = line.split_once(' ').expect("a time and a code");
            let at =
                at.parse::<u128>().expect("a number").checked_sub(by.as_millis()).expect("up for a minute");
            format!("{at} {rest}\n")
        };
        let text: String = fs::read_to_string(&path).expect("a file").lines().map(older).collect();
        fs::write(&path, text).expect("a file");
    }
}

#[test]
fn f03_a_run_that_began_in_a_crash_loop_starts_its_server_when_the_minute_is_over() {
    for scene in Scene::all() {
        let scene = failing(scene);
        (0..5).for_each(|_| crash(&scene));
        age(&scene, Duration::from_millis(57_500));
        let mut wire = Wire::start(scene.run_command());
        wire.write_line(&initialize(0));
        assert!(wire.answer_to(&json!(0))["error"]["message"].is_string(), "not before the minute is over");
        assert_eq!(ps(&scene)[0]["state"], "backing-off", "it does not sleep");
        make_good(&scene);
        let mut id = 0;
        wait_until("its server is started", Duration::from_secs(10), || {
            id += 1;
            std::thread::sleep(Duration::from_millis(100));
            wire.write_line(&initialize(id));
            wire.answer_to(&json!(id))["result"].is_object().then_some(())
        });
        wire.assert_echo(1000, "it serves");
        let (status, _) = wire.finish();
        assert_eq!(status.code(), Some(0), "as its server");
        assert_eq!(scene.end_causes().last(), Some(&json!("client-eof")), "and no crash loop any more");
        scene.assert_clean();
    }
}

#[test]
fn f03_crashes_that_other_clients_saw_do_not_block_a_client_whose_server_has_not_crashed() {
    for scene in Scene::all() {
        let scene = failing(scene);
        for _ in 0..6 {
            let argv = std::iter::once("--".into()).chain(scene.argv());
            let output = scene.command(bin("client"), argv).output().expect("a client");
            assert!(!output.status.success(), "{output:?}");
        }
        make_good(&scene);
        let mut wire = Wire::start(scene.run_command());
        assert!(wire.initialize()["result"].is_object(), "none of those was its own");
        wire.finish();
        let causes = scene.end_causes();
        assert!(!causes.contains(&json!("crash-loop")), "{causes:?}");
        scene.assert_clean();
    }
}

/// One client whose server works does not hide the loop of another.
#[test]
fn f03_a_server_that_works_for_one_client_does_not_hide_the_loop_of_another() {
    for scene in Scene::all() {
        let scene = failing(scene);
        (0..4).for_each(|_| crash(&scene));
        make_good(&scene);
        let argv = std::iter::once("--".into()).chain(scene.argv());
        let output = scene.command(bin("client"), argv).output().expect("a client");
        assert!(output.status.success(), "{output:?}");
        fs::remove_file(scene.scratch.join("good")).expect("ours");
        crash(&scene);
        let mut wire = Wire::start(scene.run_command());
        wire.write_line(&initialize(0));
        assert!(wire.answer_to(&json!(0))["error"]["message"].is_string(), "its fifth within a minute");
        wait_until("it is shown so", DEADLINE, || (ps(&scene)[0]["state"] == "backing-off").then_some(()));
        wire.finish();
        scene.assert_clean();
    }
}
