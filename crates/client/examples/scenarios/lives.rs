//! Servers that come and go under one handle: S16, S18, S20, lazy start, idle stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use moored_client::{Event, ServerLimit, ServerSet, ServerSpec, SetOptions, Start};
use moored_testkit::wait_until;
use rmcp::model::CallToolRequestParams;
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};

use super::{DEADLINE, Stage, ask_pid, assert_verified, blocking, call_in_flight, connect, handle};

const IDLE: Duration = Duration::from_millis(150);

/// S16: sessions that nobody ends. Idle ones hold no process, and wake when they are called.
pub(crate) async fn sessions_without_an_end(stage: &Stage) {
    let mut sessions = Vec::new();
    for _ in 0..6 {
        let set = connect([stage.stub("a").idle_stop(IDLE)]).await;
        ask_pid(&handle(&set, "a")).await.expect("it serves");
        sessions.push(set);
    }
    stage.wait_until_alive("a", 0);
    let woken = ask_pid(&handle(&sessions[3], "a")).await.expect("it wakes");
    assert_eq!(stage.pids("a").len(), 7, "only that one was started again");
    assert_eq!(stage.pids("a").last(), Some(&woken));
    // Nobody drops them: the end of this process has to do.
    std::mem::forget(sessions);
}

/// S18: reconnected over and over.
pub(crate) async fn reconnected(stage: &Stage) {
    let set = connect([stage.stub("a")]).await;
    let a = handle(&set, "a");
    let mut last = ask_pid(&a).await.expect("it serves");
    for _ in 0..10 {
        set.restart("a").await.expect("it comes up again");
        assert_eq!(stage.alive("a").len(), 1, "never two of them");
        let pid = ask_pid(&a).await.expect("the handle is still good");
        assert_ne!(pid, last);
        last = pid;
    }
    // With a call in flight, which is answered first.
    let held = call_in_flight(&a, "wait", 300).await;
    set.restart("a").await.expect("it comes up again");
    held.await.expect("no panic").expect("the call in flight was answered");
    assert_verified(&set.shutdown().await, 1);
}

/// S20: thirty sub-agents with four servers each, at once, under a limit of eight processes.
pub(crate) async fn thirty_subagents(stage: &Stage) {
    let limit = ServerLimit::new(8);
    let agents: Vec<_> = (0..30)
        .map(|_| {
            let specs = ["a", "b", "c", "d"].map(|name| stage.stub(name));
            let options = SetOptions::default().limit(limit.clone());
            tokio::spawn(async move {
                let set = ServerSet::connect(specs, options).await.expect("names differ");
                for server in set.servers() {
                    ask_pid(&server).await.expect("it serves");
                }
                set.shutdown().await.len()
            })
        })
        .collect();
    let mut peak = 0;
    while !agents.iter().all(tokio::task::JoinHandle::is_finished) {
        let alive = || ["a", "b", "c", "d"].iter().map(|name| stage.alive(name).len()).sum::<usize>();
        peak = peak.max(blocking(alive));
        tokio::task::yield_now().await;
    }
    for agent in agents {
        assert_eq!(agent.await.expect("no panic"), 4);
    }
    assert!((4..=8).contains(&peak), "{peak} at a time");
    assert_eq!(limit.free(), 8);
    assert!(["a", "b", "c", "d"].iter().all(|name| stage.alive(name).is_empty()));
}

/// Lazy: nothing runs until it is called, and many first calls start one process.
pub(crate) async fn lazy(stage: &Stage) {
    let set = connect([stage.stub("a").start(Start::AtFirstCall), stage.stub("b")]).await;
    let mut seen = set.events();
    ask_pid(&handle(&set, "b")).await.expect("it serves");
    assert!(stage.pids("a").is_empty());
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let a = handle(&set, "a");
            tokio::spawn(async move { ask_pid(&a).await.expect("it comes up") })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic");
    }
    assert_eq!(stage.pids("a").len(), 1);
    assert!(matches!(seen.next().await, Some(Event::Started { name, .. }) if name == "a"));
    assert!(matches!(seen.next().await, Some(Event::Connected { name }) if name == "a"));
    assert_verified(&set.shutdown().await, 2);
}

/// A call in flight, or a lease, is use: what is used does not sleep, however long it takes.
pub(crate) async fn idle_only_when_unused(stage: &Stage) {
    let set = connect([stage.stub("a").idle_stop(IDLE)]).await;
    let a = handle(&set, "a");
    call_in_flight(&a, "wait", 600).await.await.expect("no panic").expect("it was answered");
    assert_eq!(stage.pids("a").len(), 1);
    let lease = a.lease().await.expect("it is up");
    let over = tokio::time::timeout(IDLE * 4, lease.over()).await;
    assert!(over.is_err(), "it slept although it was leased");
    drop(lease);
    stage.wait_until_alive("a", 0);
    ask_pid(&a).await.expect("it wakes");
    assert_eq!(stage.pids("a").len(), 2);
    let mut events = set.events();
    while !matches!(events.next().await, Some(Event::Ended { .. })) {}
    assert_verified(&set.shutdown().await, 0);
}

#[derive(Clone, Default)]
struct Listener(Arc<AtomicUsize>);

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The host's own handler hears each server.
pub(crate) async fn heard_by_the_host(stage: &Stage) {
    let listener = Listener::default();
    let heard = listener.0.clone();
    let options = SetOptions::default().handler(move |_| listener.clone());
    let set = ServerSet::connect([stage.stub("a"), stage.stub("b")], options).await.expect("names differ");
    for server in set.servers() {
        server.call_tool(CallToolRequestParams::new("notify")).await.expect("an answer");
    }
    blocking(|| {
        wait_until("both were heard", DEADLINE, || (heard.load(Ordering::Relaxed) == 2).then_some(()));
    });
}

/// A server that does not come up again, and is no longer wanted, does not hold up its replacement.
pub(crate) async fn replaced_while_starting_again(stage: &Stage) {
    // The second of its kind never answers.
    let sign = stage.sign("slow");
    let stub = stage.stub_program().display();
    let script = format!("test -e {sign} && exec sleep 600; touch {sign}; exec {stub}");
    let set = connect([ServerSpec::new("slow", "sh").args(["-c", &script])]).await;
    let mut events = set.events();
    let (restarted, replaced) = tokio::join!(set.restart("slow"), async {
        while !matches!(events.next().await, Some(Event::Started { .. })) {}
        tokio::time::timeout(DEADLINE, set.replace([stage.stub("other")])).await
    });
    assert!(restarted.is_err(), "it was replaced instead");
    assert_eq!(replaced.expect("in time").expect("it comes up").ended.len(), 1);
    ask_pid(&handle(&set, "other")).await.expect("it serves");
}
