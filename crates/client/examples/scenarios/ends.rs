//! Ends of a set, and of a transport, in every state that they can be in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use moored_client::{ContainedTransport, ReplaceError, ServerSet, SetOptions};
use moored_containment::{Command, EndReason, Ladder};
use rmcp::ServiceExt as _;
use tokio::runtime::{Builder, Runtime};

use super::{Stage, ask_pid, assert_ended, assert_verified, call_in_flight, connect, handle};

/// Whoever connects gives up before a server has answered.
pub(crate) async fn connecting_is_given_up(stage: &Stage) {
    let specs = [stage.misbehave("mute", &["--slow-start", "600000", "--ignore-eof"]), stage.stub("good")];
    let mut connecting = Box::pin(ServerSet::connect(specs, SetOptions::default()));
    while stage.alive("mute").is_empty() || stage.alive("good").is_empty() {
        let poll = tokio::time::timeout(Duration::from_millis(10), &mut connecting).await;
        assert!(poll.is_err(), "it is not connected");
    }
    drop(connecting);
    assert!(stage.alive("mute").is_empty() && stage.alive("good").is_empty());
}

/// Dropped while calls are in flight on clones: they are told, at once.
pub(crate) async fn dropped_in_flight(stage: &Stage) {
    let set = connect([stage.stub("a"), stage.stub("b")]).await;
    let (a, b) = (handle(&set, "a"), handle(&set, "b"));
    let calls = [call_in_flight(&a, "hang", 0).await, call_in_flight(&b, "hang", 0).await];
    let lease = a.lease().await.expect("it is up");
    drop(set);
    assert!(stage.alive("a").is_empty() && stage.alive("b").is_empty());
    let began = Instant::now();
    for call in calls {
        assert_ended(&call.await.expect("no panic"));
    }
    lease.over().await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_ended(&ask_pid(&a).await);
}

/// The set is shut down while a replacement waits for a server that never answers.
pub(crate) async fn shutdown_while_replacing(stage: &Stage) {
    let set = Arc::new(connect([stage.stub("a")]).await);
    let replacing = tokio::spawn({
        let (set, mute) = (set.clone(), stage.misbehave("mute", &["--slow-start", "600000"]));
        async move { set.replace([mute]).await }
    });
    stage.wait_until_alive("mute", 1);
    assert_verified(&set.shutdown().await, 1);
    let refused = replacing.await.expect("no panic").expect_err("there was no room for it");
    assert!(matches!(refused, ReplaceError::Closed), "{refused}");
    assert!(stage.alive("a").is_empty() && stage.alive("mute").is_empty());
    assert_verified(&set.shutdown().await, 0);
}

/// The set is dropped on the one thread of its runtime, whose tasks cannot run meanwhile.
pub(crate) fn drop_on_the_only_thread(stage: &Stage) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let set = connect([stage.stub("a"), stage.misbehave("b", &["--ignore-eof", "--ignore-term"])]).await;
        let a = handle(&set, "a");
        let call = call_in_flight(&a, "hang", 0).await;
        drop(set);
        assert!(stage.alive("a").is_empty() && stage.alive("b").is_empty());
        assert_ended(&call.await.expect("no panic"));
    });
}

/// The runtime goes first, in the middle of everything; then the set, on a thread that never had one.
pub(crate) fn drop_without_the_runtime(stage: &Stage, runtime: Runtime) {
    let (set, a) = runtime.block_on(async {
        let set = connect([stage.stub("a"), stage.misbehave("b", &["--ignore-eof", "--ignore-term"])]).await;
        let a = handle(&set, "a");
        // Detached: it goes with the runtime.
        drop(call_in_flight(&a, "hang", 0).await);
        (set, a)
    });
    runtime.shutdown_background();
    drop(std::thread::spawn(move || drop(set)).join());
    assert!(stage.alive("a").is_empty() && stage.alive("b").is_empty());
    let other = Builder::new_current_thread().enable_all().build().expect("a runtime");
    assert_ended(&other.block_on(ask_pid(&a)));
}

/// The transport alone: closed, and dropped.
pub(crate) async fn transport(stage: &Stage) {
    let mut command = Command::new(stage.misbehave_program());
    let ladder = Ladder::default().kill_after(Duration::from_millis(300));
    let transport = ContainedTransport::spawn(command.args(["--daemon"]));
    let mut transport = transport.expect("it starts").ladder(ladder);
    let (process, ended) = (transport.process(), transport.ended());
    let client = ().serve(transport).await.expect("it answers");
    assert_eq!(client.list_all_tools().await.expect("an answer").len(), 1);
    client.cancel().await.expect("no panic");
    let report = ended.report().await.expect("it was closed");
    assert!(report.verified && report.reason == EndReason::Requested, "{report:?}");
    assert!(!process.is_alive().expect("can look"));

    // One that ends by itself, with a daemon that holds its output.
    let mut command = Command::new(stage.misbehave_program());
    let mut transport =
        ContainedTransport::spawn(command.args(["--daemon", "--crash-after", "1"]).ladder(ladder))
            .expect("it starts");
    let ended = transport.ended();
    let client = ().serve(transport).await.expect("it answers");
    client.call_tool(rmcp::model::CallToolRequestParams::new("echo")).await.expect("its one answer");
    client.waiting().await.expect("no panic");
    let report = ended.report().await.expect("it was closed");
    assert!(report.verified && report.reason == EndReason::ServerExited, "{report:?}");

    let dropped = ContainedTransport::spawn(Command::new(stage.stub_program())).expect("it starts");
    let process = dropped.process();
    drop(dropped);
    assert!(!process.is_alive().expect("can look"));
}

/// The transport, when the runtime that serves it goes.
pub(crate) fn transport_without_the_runtime(stage: &Stage, runtime: Runtime) {
    let mut command = Command::new(stage.misbehave_program());
    let transport = runtime.block_on(async { ContainedTransport::spawn(command.args(["--ignore-eof"])) });
    let transport = transport.expect("it starts");
    let process = transport.process();
    let client = runtime.block_on(().serve(transport)).expect("it answers");
    drop(runtime);
    assert!(!process.is_alive().expect("can look"));
    drop(client);
}
