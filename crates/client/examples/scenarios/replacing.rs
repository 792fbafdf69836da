//! Generations that give way to one another: S13, S14, S15, and replacements that fail or are given up.

use std::sync::Arc;
use std::time::Duration;

use moored_client::{ReplaceError, Replaced, ServerSet, SetOptions};

use super::{Stage, ask_pid, assert_ended, assert_verified, call_in_flight, connect, handle};

fn reports(replaced: &Replaced) -> Vec<moored_containment::EndReport> {
    let report = |server: &moored_client::EndedServer| server.outcome.clone()?.ok();
    replaced.ended.iter().filter_map(report).collect()
}

/// S13: the manager is replaced while clones are kept and a request is in flight.
pub(crate) async fn replaced_while_referenced(stage: &Stage) {
    let names = ["a", "b", "c"];
    let set = connect(names.map(|name| stage.stub(name))).await;
    let old: Vec<_> = names.iter().map(|name| handle(&set, name)).collect();
    let first = call_in_flight(&old[0], "wait", 700).await;
    let changed = names.map(|name| stage.stub(name).env("GENERATION", "2"));
    let replaced = set.replace(changed).await.expect("all come up");

    assert_eq!((replaced.kept.len(), replaced.started.len(), replaced.ended.len()), (0, 3, 3));
    assert_verified(&reports(&replaced), 3);
    first.await.expect("no panic").expect("the call in flight was answered");
    for (name, old) in names.iter().zip(&old) {
        assert_eq!(stage.alive(name).len(), 1, "{name}");
        assert_ended(&ask_pid(old).await);
        let pid = ask_pid(&handle(&set, name)).await.expect("the new one serves");
        assert_eq!(stage.alive(name), [pid]);
    }

    // A call that is never answered holds up the end for as long as the bound allows, and is told.
    let set = {
        drop(set);
        let options = SetOptions::default().drain(Duration::from_millis(300));
        ServerSet::connect([stage.stub("a")], options).await.expect("one name")
    };
    let hung = call_in_flight(&handle(&set, "a"), "hang", 0).await;
    set.replace([stage.stub("a").env("GENERATION", "3")]).await.expect("it comes up");
    assert_ended(&hung.await.expect("no panic"));
    assert_eq!(stage.alive("a").len(), 1);
    assert_verified(&set.shutdown().await, 1);
}

/// S14: one entry was edited.
pub(crate) async fn edited(stage: &Stage) {
    let set = connect([stage.stub("same"), stage.stub("edited"), stage.stub("removed")]).await;
    let (same, old) = (handle(&set, "same"), handle(&set, "edited"));
    let pid = ask_pid(&same).await.expect("it serves");
    let edited = [stage.stub("same"), stage.stub("edited").env("TOKEN", "new"), stage.stub("added")];
    let replaced = set.replace(edited).await.expect("all come up");
    assert_eq!(replaced.kept, ["same"]);
    assert_eq!(replaced.started, ["edited", "added"]);
    let ended: Vec<_> = replaced.ended.iter().map(|server| &*server.name).collect();
    assert_eq!(ended, ["edited", "removed"]);
    assert_eq!(ask_pid(&same).await.expect("its handle is still good"), pid);
    assert_ended(&ask_pid(&old).await);
    assert!(stage.alive("removed").is_empty());
    assert_eq!(stage.pids("same").len(), 1);
    assert_verified(&set.shutdown().await, 3);
}

/// S15: all is rebuilt right after the start, twice at once.
pub(crate) async fn rebuilt_at_start(stage: &Stage) {
    let generation = |number: &str| ["a", "b"].map(|name| stage.stub(name).env("GENERATION", number));
    let set = connect(generation("1")).await;
    let (second, third) = tokio::join!(set.replace(generation("2")), set.replace(generation("3")));
    let (second, third) = (second.expect("all come up"), third.expect("all come up"));
    assert_eq!((second.ended.len(), third.ended.len()), (2, 2), "one after the other");
    for name in ["a", "b"] {
        assert_eq!((stage.alive(name).len(), stage.pids(name).len()), (1, 3));
    }
    assert_verified(&set.shutdown().await, 2);
}

/// A new server does not come up: the old generation serves on, the others of the new one are gone.
pub(crate) async fn failed(stage: &Stage) {
    let set = connect([stage.stub("a")]).await;
    let old = handle(&set, "a");
    let pid = ask_pid(&old).await.expect("it serves");
    let broken = [
        stage.stub("a").env("GENERATION", "2"),
        stage.misbehave("broken", &["--exit-now", "3"]),
        stage.stub("new"),
    ];
    let refused = set.replace(broken).await.expect_err("one does not come up");
    let ReplaceError::Failed { failed } = &refused else { panic!("{refused}") };
    assert_eq!((failed.len(), &*failed[0].name), (1, "broken"));
    assert!(failed[0].error.to_string().contains("exit code 3"), "{}", failed[0].error);
    assert_eq!(ask_pid(&old).await.expect("the old one serves on"), pid);
    assert!(set.server("new").is_none() && stage.alive("new").is_empty());
    assert_eq!(stage.alive("a"), [pid]);

    let twice = set.replace([stage.stub("x"), stage.stub("x")]).await.expect_err("one name twice");
    assert!(matches!(twice, ReplaceError::Duplicate(_)), "{twice}");
    assert!(stage.pids("x").is_empty(), "nothing was started");
    assert_verified(&set.shutdown().await, 1);
    let closed = set.replace([stage.stub("x")]).await.expect_err("it is closed");
    assert!(matches!(closed, ReplaceError::Closed), "{closed}");
    assert!(stage.alive("x").is_empty());
}

/// Whoever waits for a replacement gives up; it is finished all the same.
pub(crate) async fn cancelled(stage: &Stage) {
    let set = Arc::new(connect([stage.stub("a")]).await);
    let held = call_in_flight(&handle(&set, "a"), "wait", 400).await;
    let waiting = tokio::spawn({
        let (set, spec) = (set.clone(), stage.stub("a").env("GENERATION", "2"));
        async move { set.replace([spec]).await.map(drop) }
    });
    stage.wait_until_alive("a", 2);
    waiting.abort();
    assert!(waiting.await.is_err());
    held.await.expect("no panic").expect("the call in flight was answered");
    stage.wait_until_alive("a", 1);
    assert_eq!(stage.alive("a"), [ask_pid(&handle(&set, "a")).await.expect("the new one serves")]);
    assert_verified(&set.shutdown().await, 1);
}
