//! What the tests of abandoned servers see of them: who is awake, what `ps` shows; and how such a server is started and
//! ended.

use moored_testkit::{Survivor, wait_until};
use serde_json::Value;

use crate::common::DEADLINE;
use crate::common::scene::Scene;
use crate::common::wire::Wire;

/// The servers that are awake; each `misbehave` here is one process.
pub(crate) fn servers(scene: &Scene) -> Vec<Survivor> {
    scene.mark.alive().into_iter().filter(|one| one.comm == "misbehave").collect()
}

#[track_caller]
pub(crate) fn wait_until_awake(scene: &Scene, count: usize) {
    let look = || (servers(scene).len() == count).then_some(());
    wait_until(&format!("{count} are awake"), DEADLINE, look);
}

/// The rows of `moored ps`, the oldest first.
#[track_caller]
pub(crate) fn ps(scene: &Scene) -> Vec<Value> {
    let output = scene.moored(["ps", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let shown: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut rows = shown["servers"].as_array().expect("a list").clone();
    rows.sort_by_key(|row| row["id"].as_str().map(str::to_owned));
    rows
}

pub(crate) fn start(scene: &Scene) -> Wire {
    let mut wire = Wire::start(scene.run_command());
    wire.initialize();
    wire
}

#[track_caller]
pub(crate) fn finish_all(scene: &Scene, wires: Vec<Wire>) {
    for wire in wires {
        wire.finish();
    }
    scene.assert_clean();
}
