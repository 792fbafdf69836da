//! Whatever happens, in whatever order: every request gets exactly one answer while the client is there, nothing is sent after
//! the end, and the session ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::cast::Scene;
use super::script::{Act, Script, answered};
use moored_launch::{Idle, Restart, Rules};

#[derive(Clone, Copy, Debug)]
enum Move {
    Call,
    SlowCall,
    CrashingCall,
    Notify,
    Wait(u64),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        4 => Just(Move::Call),
        2 => Just(Move::SlowCall),
        1 => Just(Move::CrashingCall),
        1 => Just(Move::Notify),
        3 => (0_u64..90_000).prop_map(Move::Wait),
    ];
    prop::collection::vec(one, 1..25)
}

fn script() -> Script {
    Arc::new(|_, message| match message["method"].as_str() {
        Some("slow") => Act::AnswerLater(Duration::from_secs(5), json!("late")),
        Some("boom") => Act::Exit(9),
        _ => answered(message),
    })
}

async fn play(moves: Vec<Move>, restart: Restart) -> Result<(), TestCaseError> {
    let rules = Rules { idle: Idle::After(Duration::from_secs(30)), restart, ..Rules::default() };
    let mut scene = Scene::new(rules, script());
    scene.initialize().await;
    let mut answers: BTreeMap<u64, usize> = BTreeMap::new();
    for (id, next) in (1..).zip(moves) {
        let method = match next {
            Move::Call => "ping",
            Move::SlowCall => "slow",
            Move::CrashingCall => "boom",
            Move::Notify => {
                scene.say(&json!({"jsonrpc": "2.0", "method": "notifications/x"}));
                continue;
            }
            Move::Wait(ms) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                continue;
            }
        };
        scene.call(id, method);
        answers.insert(id, 0);
    }
    // All that can be answered is.
    tokio::time::sleep(Duration::from_secs(120)).await;
    scene.close();
    let (outcome, rest, events) = scene.ended().await;
    for got in &rest {
        let Some(id) = got.answers.as_ref().and_then(Value::as_u64) else { continue };
        prop_assert_eq!(got.message["id"].as_u64(), Some(id));
        *answers.get_mut(&id).expect("one of its calls") += 1;
    }
    // Without a restart the session ends with its server, and calls that came after it are not seen by anything.
    let most = answers.values().all(|count| *count <= 1);
    prop_assert!(most, "{answers:?}");
    if restart == Restart::OnCrash {
        prop_assert!(answers.values().all(|count| *count == 1), "{answers:?}, {:?}", outcome.ended.why);
    }
    let ends = events.iter().filter(|what| matches!(what, crate::event::What::Ended(_))).count();
    prop_assert_eq!(ends, 1);
    prop_assert!(matches!(events.last(), Some(crate::event::What::Ended(_))));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_request_gets_exactly_one_answer_and_the_session_ends(moves in moves(), restarts: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let restart = if restarts { Restart::OnCrash } else { Restart::Never };
        runtime.expect("a runtime").block_on(play(moves, restart))?;
    }
}
