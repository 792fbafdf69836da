//! Hosts that are careless with their runtimes: short ones, ones that nobody runs any more, and code of their own that
//! panics on them.

use std::time::{Duration, Instant};

use moored_client::{CallError, ConnectError, EndedWhy, Event, ServerSet, ServerSpec, SetOptions, events};
use moored_containment::{EndReason, Ladder};
use rmcp::model::{ClientConfig, Implementation};
use rmcp::{ClientHandler, ServiceExt as _};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::{DEADLINE, Stage, ask_pid, assert_verified, blocking, call_in_flight, connect, handle};

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Every refresh has a runtime of its own, as in a host that is not async itself. The task that served the generation
/// before is gone with its runtime, and could not end anybody.
pub(crate) fn a_runtime_per_refresh(stage: &Stage) {
    let names = ["a", "b"];
    // Those that end with their input would be gone with their runtime.
    let spec = |name: &str| stage.misbehave(name, &["--ignore-eof"]);
    let generation = |number: usize| names.map(|name| spec(name).env("GENERATION", number.to_string()));
    let set = one_thread().block_on(connect(generation(0)));
    for number in 1..=5 {
        let old = handle(&set, "a");
        let refused = one_thread().block_on(ask_pid(&old)).expect_err("nobody serves it");
        assert!(matches!(refused, CallError::Ended { why: EndedWhy::Unattended, .. }), "{refused}");
        let replaced = one_thread().block_on(set.replace(generation(number))).expect("all come up");
        assert_eq!(replaced.ended.len(), 2, "{replaced:?}");
        for server in &replaced.ended {
            assert!(matches!(&server.outcome, Some(Ok(report)) if report.verified), "{server:?}");
        }
        for name in names {
            assert_eq!((stage.alive(name).len(), stage.pids(name).len()), (1, number + 1), "{name}");
        }
    }
    assert_verified(&one_thread().block_on(set.shutdown()), 2);
    assert!(names.iter().all(|name| stage.alive(name).is_empty()));
}

/// The servers' tasks are on a runtime that exists, but which nobody runs: they will never answer.
pub(crate) fn a_runtime_that_nobody_runs(stage: &Stage) {
    let mut ladder =
        Ladder::default().grace(Duration::from_millis(200)).kill_after(Duration::from_millis(200));
    ladder.verify = Duration::from_millis(300);
    let spec = |name: &str| stage.misbehave(name, &["--ignore-eof"]).ladder(ladder);
    let stopped = one_thread();
    let options = SetOptions::default().drain(Duration::from_millis(100));
    let set = stopped.block_on(ServerSet::connect([spec("a"), spec("b")], options)).expect("names differ");
    let other = one_thread();
    let replaced = other.block_on(async { timeout(DEADLINE, set.replace([spec("b")])).await });
    let replaced = replaced.expect("in time").expect("nothing new is to come up");
    assert_eq!((&*replaced.kept, replaced.ended.len()), (&["b".to_owned()][..], 1));
    assert!(matches!(&replaced.ended[0].outcome, Some(Ok(report)) if report.verified), "{replaced:?}");
    assert!(stage.alive("a").is_empty());
    let reports = other.block_on(async { timeout(DEADLINE, set.shutdown()).await });
    assert_verified(&reports.expect("in time"), 1);
    assert!(stage.alive("b").is_empty());
    drop(stopped);
}

/// A replacement waits for a server that never answers, on a runtime that nobody runs any more, and has the turn.
pub(crate) fn a_turn_that_nobody_gives_back(stage: &Stage) {
    let stopped = one_thread();
    let mut ladder =
        Ladder::default().grace(Duration::from_millis(200)).kill_after(Duration::from_millis(200));
    ladder.verify = Duration::from_millis(300);
    let set = stopped.block_on(connect([stage.stub("a").ladder(ladder)]));
    let mute = stage.misbehave("mute", &["--slow-start", "600000"]).ladder(ladder);
    let given_up = stopped.block_on(async { timeout(Duration::from_millis(300), set.replace([mute])).await });
    assert!(given_up.is_err(), "it never answers");
    let other = one_thread();
    let reports = other.block_on(async { timeout(DEADLINE, set.shutdown()).await });
    assert!(!reports.expect("in time").is_empty());
    assert!(stage.alive("a").is_empty() && stage.alive("mute").is_empty());
}

/// What a dropped set did is told, also without a runtime.
pub(crate) fn drop_is_reported(stage: &Stage, runtime: Runtime) {
    let (sender, mut events) = events();
    let specs = [stage.stub("a"), stage.misbehave("b", &["--ignore-eof", "--ignore-term"]), stage.stub("c")];
    let options = SetOptions::default().events(sender);
    let set = runtime.block_on(ServerSet::connect(specs, options)).expect("names differ");
    drop(runtime);
    drop(set);
    let mut ended = Vec::new();
    while let Some(event) = events.try_next() {
        if let Event::Ended { name, outcome } = event {
            let report = outcome.expect("a report");
            assert!(report.verified && report.survivors.is_empty(), "{report:?}");
            // The others saw the end of their input when the runtime went.
            assert!(name != "b" || report.reason == EndReason::Dropped, "{report:?}");
            ended.push(name);
        }
    }
    ended.sort();
    assert_eq!(ended, ["a", "b", "c"]);
}

#[derive(Clone)]
enum Host {
    Sound,
    PanicsWhenAsked,
}

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        match self {
            Self::Sound => ClientConfig::new(Default::default(), Implementation::new("host", "1")),
            Self::PanicsWhenAsked => panic!("as asked for"),
        }
    }
}

/// The host's own code panics while a server is started: no process is left that nobody looks after.
pub(crate) async fn a_handler_that_panics(stage: &Stage) {
    let make = |name: &str| match name {
        "never-made" => panic!("as asked for"),
        "never-asked" => Host::PanicsWhenAsked,
        _ => Host::Sound,
    };
    let specs = ["good", "never-made", "never-asked"].map(|name| stage.stub(name));
    let set = ServerSet::connect(specs, SetOptions::default().handler(make)).await.expect("names differ");
    let failures = set.failures();
    let failed: Vec<_> = failures.iter().map(|failed| &*failed.name).collect();
    assert_eq!(failed, ["never-made", "never-asked"]);
    assert!(failures.iter().all(|failed| matches!(*failed.error, ConnectError::Unattended)), "{failures:?}");
    assert!(stage.pids("never-made").is_empty(), "there was no process yet");
    assert!(stage.alive("never-asked").is_empty());
    ask_pid(&handle(&set, "good")).await.expect("the other one serves");
    assert_verified(&set.shutdown().await, 1);
}

/// A shutdown is given up in the middle; the next one has the reports.
pub(crate) async fn shutdown_is_given_up(stage: &Stage) {
    let patience = Duration::from_millis(300);
    let ladder = Ladder::default().grace(patience).kill_after(patience);
    let stubborn = |name: &str| stage.misbehave(name, &["--ignore-eof", "--ignore-term"]).ladder(ladder);
    let set = connect([stubborn("a"), stubborn("b")]).await;
    let call = call_in_flight(&handle(&connect([stage.stub("c")]).await, "c"), "hang", 0).await;
    assert!(call.await.expect("no panic").is_err(), "its set is gone");
    for millis in [0, 1, 5, 20] {
        let shutdown = timeout(Duration::from_millis(millis), set.shutdown()).await;
        assert!(shutdown.is_err(), "they are stubborn");
    }
    let reports = set.shutdown().await;
    assert_verified(&reports, 2);
    assert!(reports.iter().all(|report| report.reason == EndReason::Requested), "{reports:?}");
    assert!(stage.alive("a").is_empty() && stage.alive("b").is_empty());

    // Given up, and then dropped.
    let set = connect([stubborn("a"), stubborn("b")]).await;
    assert!(timeout(Duration::from_millis(20), set.shutdown()).await.is_err());
    blocking(|| drop(set));
    assert!(stage.alive("a").is_empty() && stage.alive("b").is_empty());
}

/// A transport that is dropped tells how its server ended.
pub(crate) fn transport_drop_is_reported(stage: &Stage, runtime: Runtime) {
    let (client, ended) = runtime.block_on(async {
        let mut command = moored_containment::Command::new(stage.stub_program());
        let mut transport = moored_client::ContainedTransport::spawn(&mut command).expect("it starts");
        let ended = transport.ended();
        (().serve(transport).await.expect("it answers"), ended)
    });
    drop(runtime);
    drop(client);
    let report = one_thread().block_on(ended.report()).expect("a report");
    assert!(report.verified && report.reason == EndReason::Dropped, "{report:?}");
}

/// Spec and options as large as they can be.
pub(crate) async fn values_without_bound(stage: &Stage) {
    use moored_client::{BackOff, Restart, ServerLimit, Start};
    let forever = Duration::MAX;
    let never = BackOff { first: forever, most: forever, steady: forever };
    let options = || {
        let limit = ServerLimit::new(usize::MAX);
        SetOptions::default().limit(limit).starts_at_once(usize::MAX).drain(forever).wait_for_room(forever)
    };
    let patient = |spec: ServerSpec| {
        spec.idle_stop(forever).connect_timeout(forever).restart(Restart::AfterCrash(never.clone()))
    };
    let specs = [
        patient(stage.stub("a")),
        patient(stage.misbehave("frail", &["--crash-after", "1"])),
        patient(stage.misbehave("broken", &["--exit-now", "1"])).start(Start::AtFirstCall),
    ];
    let set = ServerSet::connect(specs, options()).await.expect("names differ");
    assert!(set.failures().is_empty(), "{:?}", set.failures());
    ask_pid(&handle(&set, "a")).await.expect("it serves");
    for name in ["frail", "broken"] {
        let server = handle(&set, name);
        let down = async {
            loop {
                match server.call_tool(rmcp::model::CallToolRequestParams::new("echo")).await {
                    Err(CallError::Down { retry_in, .. }) => break retry_in,
                    Ok(_) | Err(CallError::Lost { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        };
        let retry_in = timeout(DEADLINE, down).await.expect("it is down");
        assert!(retry_in > Duration::from_secs(1 << 40), "{retry_in:?}");
    }
    let replaced = set.replace([stage.stub("a")]).await.expect("it comes up");
    assert_eq!(replaced.ended.len(), 3);
    assert_verified(&set.shutdown().await, 1);
}

/// More servers at once than the limit allows at all are refused at once.
pub(crate) async fn more_than_the_limit(stage: &Stage) {
    let options = SetOptions::default().limit(moored_client::ServerLimit::new(2));
    let specs = ["a", "b", "c"].map(|name| stage.stub(name));
    let began = Instant::now();
    let set = ServerSet::connect(specs, options).await.expect("names differ");
    assert!(began.elapsed() < DEADLINE, "nobody waits for what cannot be");
    let failures = set.failures();
    assert_eq!(failures.len(), 3);
    assert!(matches!(*failures[0].error, ConnectError::OverLimit { wanted: 3, most: 2 }), "{}", failures[0]);
    set.replace(["a", "b"].map(|name| stage.stub(name))).await.expect("these fit");
    assert_verified(&set.shutdown().await, 2);
}
