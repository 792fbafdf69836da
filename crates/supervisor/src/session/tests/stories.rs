use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::cast::Scene;
use super::script::{Act, Script, answered, echo};
use crate::event::{EndCause, What};
use crate::session::life::Signal;
use moored_launch::{Idle, Restart, Rules};

fn sleeping_after(seconds: u64) -> Rules {
    Rules { idle: Idle::After(Duration::from_secs(seconds)), ..Rules::default() }
}

fn restarting() -> Rules {
    Rules { restart: Restart::OnCrash, ..Rules::default() }
}

/// Exits at this method, and is ordinary otherwise.
fn exits_at(method: &'static str) -> Script {
    Arc::new(move |_, message| if message["method"] == method { Act::Exit(3) } else { answered(message) })
}

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_and_eof_ends_the_session() {
    let mut scene = Scene::new(Rules::default(), echo());
    scene.initialize().await;
    assert_eq!(scene.ask(1, "tools/list").await["result"], json!({"echo": "tools/list"}));
    scene.close();
    let (outcome, rest, events) = scene.ended().await;
    assert_eq!((outcome.exit_code, outcome.ended.why), (0, EndCause::ClientEof));
    assert_eq!(rest, []);
    assert!(matches!(
        events.as_slice(),
        [What::Begun(_), What::Warned { .. }, What::Started(_), .., What::Ended(_)]
    ));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sleeps_is_woken_by_a_call_and_told_what_it_had_been_told() {
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&told);
    let script: Script = Arc::new(move |number, message| {
        seen.lock().expect("seen").push((number, message["method"].as_str().unwrap_or_default().to_owned()));
        answered(message)
    });
    let mut scene = Scene::new(sleeping_after(60), script);
    scene.initialize().await;
    scene.until("hibernated").await;
    assert_eq!(scene.ask(1, "ping").await["result"], json!({"echo": "ping"}));
    scene.close();
    let (outcome, rest, _) = scene.ended().await;
    assert_eq!((outcome.ended.counters.wakes, rest), (1, vec![]));
    let of = |number| {
        let told = told.lock().expect("told");
        told.iter()
            .filter(|(server, _)| *server == number)
            .map(|(_, method)| method.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of(0), ["initialize", "notifications/initialized"]);
    assert_eq!(of(1), ["initialize", "notifications/initialized", "ping"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_in_flight_keeps_a_server_awake() {
    let script: Script = Arc::new(|_, message| match message["method"].as_str() {
        Some("slow") => Act::AnswerLater(Duration::from_secs(300), json!("late")),
        _ => answered(message),
    });
    let mut scene = Scene::new(sleeping_after(60), script);
    scene.initialize().await;
    assert_eq!(scene.ask(1, "slow").await["result"], "late");
    assert_eq!(scene.starts(), 1);
    scene.until("hibernated").await;
    scene.close();
    scene.ended().await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_fails_the_calls_in_flight_and_the_server_is_started_again_after_a_pause() {
    let mut scene = Scene::new(restarting(), exits_at("boom"));
    scene.initialize().await;
    let error = scene.ask(1, "boom").await;
    assert!(error["error"]["message"].as_str().is_some_and(|why| why.contains("exit code 3")), "{error}");
    let began = Instant::now();
    assert_eq!(scene.ask(2, "ping").await["result"], json!({"echo": "ping"}));
    assert!(began.elapsed() >= Duration::from_millis(400), "{:?}", began.elapsed());
    scene.close();
    let (outcome, ..) = scene.ended().await;
    assert_eq!(outcome.ended.counters.restarts, 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_crashes_too_often_is_not_started_for_a_minute_and_then_it_is() {
    let script: Script = Arc::new(|number, message| match message["method"].as_str() {
        Some("boom") if number < 5 => Act::Exit(1),
        _ => answered(message),
    });
    let mut scene = Scene::new(restarting(), script);
    scene.initialize().await;
    for id in 1..=5 {
        assert!(scene.ask(id, "boom").await["error"].is_object());
    }
    let refused = scene.ask(6, "ping").await;
    assert!(
        refused["error"]["message"].as_str().is_some_and(|why| why.contains("again and again")),
        "{refused}"
    );
    assert_eq!(scene.starts(), 5);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(scene.ask(7, "ping").await["result"], json!({"echo": "ping"}));
    scene.close();
    scene.ended().await;
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_at_eof_are_answered_within_the_bound() {
    let script: Script = Arc::new(|_, message| match message["method"].as_str() {
        Some("slow") => Act::AnswerLater(Duration::from_secs(1), json!("in time")),
        Some("never") => Act::AnswerLater(Duration::from_secs(600), json!("too late")),
        _ => answered(message),
    });
    for (method, answers, most) in [("slow", 1, 2), ("never", 0, 4)] {
        let mut scene = Scene::new(Rules::default(), Arc::clone(&script));
        scene.initialize().await;
        scene.call(1, method);
        scene.close();
        let began = Instant::now();
        let (outcome, rest, _) = scene.ended().await;
        assert_eq!((outcome.ended.why, rest.len()), (EndCause::ClientEof, answers), "{method}: {rest:?}");
        assert!(began.elapsed() <= Duration::from_secs(most), "{method}: {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn f05_a_call_right_before_eof_wakes_a_server_that_sleeps() {
    let mut scene = Scene::new(sleeping_after(60), echo());
    scene.initialize().await;
    scene.until("hibernated").await;
    scene.call(1, "ping");
    scene.close();
    let (outcome, rest, _) = scene.ended().await;
    assert_eq!(outcome.ended.why, EndCause::ClientEof);
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(rest[0].message["result"], json!({"echo": "ping"}));
}

#[tokio::test(start_paused = true)]
async fn f05_a_call_right_before_eof_does_not_wait_for_the_pause_after_a_crash() {
    let mut scene = Scene::new(restarting(), exits_at("boom"));
    scene.initialize().await;
    for id in 1..=4 {
        // The fourth pause is longer than the bound.
        assert!(scene.ask(id, "boom").await["error"].is_object());
    }
    scene.call(5, "ping");
    scene.close();
    let began = Instant::now();
    let (_, rest, _) = scene.ended().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(rest[0].message["result"], json!({"echo": "ping"}));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_dies_and_a_signal_end_the_session() {
    for (cause, code) in [(EndCause::ClientGone, 0), (EndCause::Signal(15), 0)] {
        let mut scene = Scene::new(Rules::default(), echo());
        scene.initialize().await;
        match cause {
            EndCause::ClientGone => scene.die(),
            _ => scene.signal(Signal::End(15)),
        }
        let (outcome, ..) = scene.ended().await;
        assert_eq!((outcome.ended.why, outcome.exit_code), (cause, code));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_initialize_is_asked_of_the_next_server() {
    let script: Script =
        Arc::new(|number, message| if number == 0 { Act::Nothing } else { answered(message) });
    let mut scene = Scene::new(sleeping_after(180), script);
    scene.call(0, "initialize");
    scene.until("hibernated").await;
    scene.call(1, "ping");
    assert_eq!(scene.hear().await.answers, Some(json!(0)));
    assert_eq!(scene.hear().await.answers, Some(json!(1)));
    scene.close();
    scene.ended().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_server_asks_reaches_the_client_and_its_answer_the_server() {
    let script: Script = Arc::new(|_, message| {
        if message["method"] == "ask me" {
            Act::Say(json!({"jsonrpc": "2.0", "id": "s1", "method": "roots/list"}))
        } else if message["id"] == "s1" {
            Act::Say(json!({"jsonrpc": "2.0", "method": "notifications/thanks", "params": message["result"]}))
        } else {
            answered(message)
        }
    });
    let mut scene = Scene::new(Rules::default(), script);
    scene.initialize().await;
    scene.say(&json!({"jsonrpc": "2.0", "method": "ask me"}));
    let asked = scene.hear().await;
    assert_eq!((&asked.message["method"], asked.answers), (&json!("roots/list"), None));
    scene.say(&json!({"jsonrpc": "2.0", "id": "s1", "result": {"roots": []}}));
    assert_eq!(scene.hear().await.message["params"], json!({"roots": []}));
    scene.close();
    scene.ended().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_dies_while_its_last_call_is_answered_is_not_waited_for() {
    let script: Script = Arc::new(|_, message| match message["method"].as_str() {
        Some("slow") => Act::AnswerLater(Duration::from_secs(600), json!("too late")),
        _ => answered(message),
    });
    let mut scene = Scene::new(Rules::default(), script);
    scene.initialize().await;
    scene.call(1, "slow");
    scene.close();
    tokio::time::sleep(Duration::from_millis(500)).await;
    scene.die();
    let began = Instant::now();
    scene.ended().await;
    // The ladder begins at once, and is cut to what is left of the bound.
    assert!(began.elapsed() <= Duration::from_millis(3500), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_a_client_said_to_a_sleeping_server_before_it_died_reaches_the_server() {
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&told);
    let script: Script = Arc::new(move |number, message| {
        seen.lock().expect("seen").push((number, message["method"].as_str().unwrap_or_default().to_owned()));
        answered(message)
    });
    let mut scene = Scene::new(sleeping_after(60), script);
    scene.initialize().await;
    scene.until("hibernated").await;
    scene.say(&json!({"jsonrpc": "2.0", "method": "notifications/last"}));
    scene.die();
    scene.ended().await;
    assert!(told.lock().expect("told").contains(&(1, "notifications/last".to_owned())), "{told:?}");
}
