//! The end of a run whose own housekeeping takes long: what dead sessions left is ended while a run serves, and the run's client
//! waits no longer for its end because of that.

use std::fs;
use std::time::Instant;

use moored_containment::ProcessIdentity;
use moored_testkit::{Target, example, in_time, kill_at_once, wait_until};
use serde_json::Value;

use crate::common::scene::Scene;
use crate::common::{AFTER_EOF, DEADLINE};
use crate::seen::start;

/// Leaves a dead session on record whose `on_end` takes longer than any run: its owner and both guardians were killed at once,
/// and the next run has to do what they would have done.
fn leave_a_session_that_is_slow_to_sweep(scene: &Scene) {
    let pids = scene.scratch.join("pids");
    let mut owner = scene.command(
        example("moored-containment", "promise_host"),
        ["--ending", "hold", "--on-end", "sleep", "--on-end", "60", "--off", "cgroup"],
    );
    owner.arg("--runtime").arg(scene.runtime_dir()).arg("--pids").arg(&pids).args(["--", "cat"]);
    let mut owner = owner.spawn().expect("promise_host");
    let who = wait_until("the session has begun", DEADLINE, || fs::read_to_string(&pids).ok());
    let who: Value = serde_json::from_str(&who).expect("JSON");
    let hold = |name: &str| {
        let pid = who[name].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a pid");
        let process = ProcessIdentity::of(pid).expect("it lives");
        Target::hold(pid, || process.is_alive().expect("/proc")).expect("it lives")
    };
    kill_at_once(&["host", "outer", "inner"].map(hold));
    owner.wait().expect("our child");
    fs::remove_file(pids).expect("a file");
}

/// Whether the run's sweep is under way, by the command that it runs in the dead session's stead.
fn is_sweeping(scene: &Scene) -> bool {
    scene.mark.alive().iter().any(|one| one.comm == "sleep")
}

/// Five of a matrix of ends took 7.1 s on a machine with load 6, instead of 4: the run waited 3 s for its sweep when all else was
/// over, though the sweep had had these 3 s while the server took its 4 s to end.
#[test]
fn f13_an_end_by_eof_does_not_wait_for_a_sweep_that_has_had_its_time() {
    for scene in Scene::all() {
        let scene = scene.misbehave(["--ignore-eof", "--ignore-term"]);
        in_time(
            AFTER_EOF,
            |took| *took,
            || {
                leave_a_session_that_is_slow_to_sweep(&scene);
                let mut wire = start(&scene);
                wait_until("the run sweeps", DEADLINE, || is_sweeping(&scene).then_some(()));
                let closed = Instant::now();
                wire.close_stdin();
                wire.exit();
                let took = closed.elapsed();
                scene.assert_nobody();
                took
            },
        );
    }
}
