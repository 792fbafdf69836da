//! Work that is given up at every moment there is, and work of all kinds at once.

use std::sync::Arc;
use std::time::Duration;

use moored_client::{ServerSet, ServerSpec, SetOptions};
use moored_testkit::wait_until;
use tokio::time::timeout;

use super::{DEADLINE, Stage, ask_pid, assert_verified, blocking, connect, handle};

/// Connecting, given up after 0, 1, 2 … ms: nothing is left the moment it is.
pub(crate) async fn connects(stage: &Stage) {
    for millis in 0..25 {
        let specs = ["a", "b", "c"].map(|name| stage.stub(name));
        let connecting = ServerSet::connect(specs, SetOptions::default());
        let connected = timeout(Duration::from_millis(millis), connecting).await;
        drop(connected);
        for name in ["a", "b", "c"] {
            assert!(stage.alive(name).is_empty(), "{name} after {millis} ms");
        }
    }
}

/// Replacements, given up after 0, 1, 2 … ms: each that was begun is finished, and in the end there is one generation.
pub(crate) async fn replacements(stage: &Stage) {
    let generation =
        |number: u64| ["a", "b"].map(|name| stage.stub(name).env("GENERATION", number.to_string()));
    let set = connect(generation(1000)).await;
    for millis in 0..25 {
        let _ = timeout(Duration::from_millis(millis), set.replace(generation(millis))).await;
    }
    let last = timeout(DEADLINE, set.replace(generation(2000))).await.expect("in time").expect("all come up");
    assert_eq!(last.ended.len(), 2);
    for name in ["a", "b"] {
        assert_eq!(stage.alive(name), [ask_pid(&handle(&set, name)).await.expect("it serves")]);
    }
    assert_verified(&set.shutdown().await, 2);
}

fn version(stage: &Stage, number: usize) -> [ServerSpec; 2] {
    ["a", "b"].map(|name| stage.stub(name).env("GENERATION", number.to_string()))
}

/// Replacements, restarts and calls, all at once and many of them: all come to an end, and one generation is left.
pub(crate) async fn everything_at_once(stage: &Stage) {
    let set = Arc::new(connect(version(stage, 0)).await);
    let mut work = tokio::task::JoinSet::new();
    for number in 1..=12 {
        let (replacing, restarting, calling) = (set.clone(), set.clone(), set.clone());
        let specs = version(stage, number);
        work.spawn(async move { replacing.replace(specs).await.map(drop).expect("all come up") });
        work.spawn(async move {
            for name in ["a", "b"].into_iter().cycle().take(10) {
                // It may be replaced meanwhile.
                let _ = restarting.restart(name).await;
            }
        });
        work.spawn(async move {
            for _ in 0..20 {
                for server in calling.servers() {
                    let _ = ask_pid(&server).await;
                }
            }
        });
    }
    let all = async { while work.join_next().await.is_some() {} };
    timeout(DEADLINE * 3, all).await.expect("nobody waits for ever");
    for name in ["a", "b"] {
        assert_eq!(stage.alive(name), [ask_pid(&handle(&set, name)).await.expect("it serves")]);
    }
    assert_verified(&set.shutdown().await, 2);
}

/// A shutdown while servers wait for their turn to start: they are not started any more.
pub(crate) async fn queued(stage: &Stage) {
    let options = SetOptions::default().starts_at_once(1);
    let set = Arc::new(ServerSet::connect([stage.stub("a")], options).await.expect("one name"));
    let specs = ["m", "n", "o"].map(|name| stage.misbehave(name, &["--slow-start", "600000"]));
    let replacing = tokio::spawn({
        let set = set.clone();
        async move { set.replace(specs).await.map(drop) }
    });
    let pids = || ["m", "n", "o"].map(|name| stage.pids(name)).concat();
    blocking(|| wait_until("one has begun", DEADLINE, || (!pids().is_empty()).then_some(())));
    assert_verified(&set.shutdown().await, 1);
    assert!(replacing.await.expect("no panic").is_err());
    assert_eq!(pids().len(), 1, "whose turn it was, and nobody else");
    assert!(["a", "m", "n", "o"].iter().all(|name| stage.alive(name).is_empty()));
}
