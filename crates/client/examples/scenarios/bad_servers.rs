//! Servers that never answer, crash, do not go, or leave others behind: S17, S19 and more.

use std::time::{Duration, Instant};

use moored_client::{BackOff, CallError, ConnectError, Restart, ServerSet, SetOptions, Start};
use moored_containment::Ladder;
use rmcp::model::CallToolRequestParams;

use super::{Stage, ask_pid, assert_ended, assert_verified, connect, handle};

fn echo() -> CallToolRequestParams {
    CallToolRequestParams::new("echo")
}

/// S17: `initialize` is never answered. Each attempt is gone before the next, and the others serve.
pub(crate) async fn never_answers(stage: &Stage) {
    let mute = stage.misbehave("mute", &["--slow-start", "600000", "--ignore-eof"]);
    let mute = mute.connect_timeout(Duration::from_millis(300));
    let specs = [mute.clone(), stage.stub("good")];
    let set = ServerSet::connect(specs, SetOptions::default()).await.expect("names differ");
    let failures = set.failures();
    assert_eq!((failures.len(), &*failures[0].name), (1, "mute"));
    assert!(matches!(*failures[0].error, ConnectError::Timeout { .. }), "{}", failures[0].error);
    assert!(failures[0].outcome.as_ref().is_some_and(|o| o.as_ref().is_ok_and(|report| report.verified)));
    assert!(stage.alive("mute").is_empty());
    ask_pid(&handle(&set, "good")).await.expect("the other one serves");
    drop(set);

    let quick = BackOff { first: Duration::from_millis(10), ..BackOff::default() };
    let lazy = mute.start(Start::AtFirstCall).restart(Restart::AfterCrash(quick));
    let set = connect([lazy]).await;
    let mute = handle(&set, "mute");
    while stage.pids("mute").len() < 4 {
        assert!(matches!(mute.call_tool(echo()).await, Err(CallError::Down { .. })));
        assert!(stage.alive("mute").is_empty(), "the attempt is gone before the call is told");
        tokio::task::yield_now().await;
    }
}

/// S19: it exits at once, and is asked for as fast as can be.
pub(crate) async fn crashes_at_start(stage: &Stage) {
    let back_off = BackOff { first: Duration::from_millis(100), ..BackOff::default() };
    let spec = stage.misbehave("broken", &["--exit-now", "1"]);
    let set = connect([spec.start(Start::AtFirstCall).restart(Restart::AfterCrash(back_off))]).await;
    let broken = handle(&set, "broken");
    let (began, mut refused) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_millis(1500) {
        let Err(CallError::Down { cause, .. }) = broken.call_tool(echo()).await else { panic!("it is down") };
        assert!(matches!(*cause, ConnectError::Exited { .. }), "{cause}");
        refused += 1;
        tokio::task::yield_now().await;
    }
    // 0, 100, 300, 700 ms; the next would be at 1500.
    let started = stage.pids("broken").len();
    assert!((2..=5).contains(&started), "{started} starts");
    assert!(refused > 50, "calls are refused at once, {refused} times");
}

/// It crashes after each call: it is restarted with back-off, and calls tell.
pub(crate) async fn crashes_after_each_call(stage: &Stage) {
    let back_off = BackOff { first: Duration::from_millis(50), ..BackOff::default() };
    let spec = stage.misbehave("frail", &["--crash-after", "1"]).restart(Restart::AfterCrash(back_off));
    let set = connect([spec]).await;
    let frail = handle(&set, "frail");
    let (mut answered, mut refused) = (0, 0);
    while answered < 4 {
        match frail.call_tool(echo()).await {
            Ok(_) => answered += 1,
            Err(CallError::Down { .. } | CallError::Lost { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(stage.alive("frail").len() <= 1);
        tokio::task::yield_now().await;
    }
    assert!(refused > 0);
    assert!((4..=5).contains(&stage.pids("frail").len()), "{:?}", stage.pids("frail"));
}

/// It ends by itself, and its spec says that it stays so; a replacement with the same spec starts it again.
pub(crate) async fn exits_for_good(stage: &Stage) {
    let spec = stage.misbehave("once", &["--crash-after", "1"]).restart(Restart::Never);
    let set = connect([spec.clone()]).await;
    let once = handle(&set, "once");
    once.call_tool(echo()).await.expect("its one answer");
    while !once.is_ended() {
        tokio::task::yield_now().await;
    }
    assert_ended(&once.call_tool(echo()).await);
    let replaced = set.replace([spec]).await.expect("it comes up");
    assert_eq!(replaced.started, ["once"]);
    handle(&set, "once").call_tool(echo()).await.expect("a new one");
}

/// Servers that ignore the end of input and SIGTERM: killed, all at once, within the bound of one.
pub(crate) async fn stubborn(stage: &Stage) {
    let patience = Duration::from_millis(300);
    let ladder = Ladder::default().grace(patience).kill_after(patience);
    let specs = || {
        ["a", "b", "c", "d"].map(|name| {
            stage.misbehave(name, &["--ignore-eof", "--ignore-term", "--grandchild"]).ladder(ladder)
        })
    };
    let set = connect(specs()).await;
    let began = Instant::now();
    let reports = set.shutdown().await;
    let took = began.elapsed();
    assert_verified(&reports, 4);
    assert!(reports.iter().all(|report| report.ended.kill > 0), "{reports:?}");
    assert!(took >= patience * 2 && took < patience * 2 + Duration::from_secs(2), "{took:?}");

    let set = connect(specs()).await;
    let began = Instant::now();
    drop(set);
    let took = began.elapsed();
    assert!(
        took < Duration::from_millis(500) + Duration::from_millis(1400),
        "{took:?}, one after the other?"
    );
    for name in ["a", "b", "c", "d"] {
        assert!(stage.alive(name).is_empty());
    }
}

/// Servers that leave daemons behind, in every way there is.
pub(crate) async fn forks_daemons(stage: &Stage) {
    let habits = ["--daemon", "--clean-daemon", "--grandchild", "--own-session-child", "--wrap-shell"];
    let ladder = Ladder::default().kill_after(Duration::from_millis(300));
    let specs = |generation: &'static str| {
        habits
            .map(|habit| stage.misbehave(&habit[2..], &[habit]).env("GENERATION", generation).ladder(ladder))
    };
    let set = connect(specs("1")).await;
    let replaced = set.replace(specs("2")).await.expect("all come up");
    assert_eq!(replaced.ended.len(), habits.len());
    for server in &replaced.ended {
        assert!(matches!(&server.outcome, Some(Ok(report)) if report.verified), "{server:?}");
    }
    assert_verified(&set.shutdown().await, habits.len());
    for habit in habits {
        assert!(stage.pids(&habit[2..]).len() >= 2, "{habit} started somebody");
        assert!(stage.alive(&habit[2..]).is_empty(), "{habit}");
    }
}
