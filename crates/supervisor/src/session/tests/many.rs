//! Many sessions in one process: each has a registration of its own, and they limit each other as processes would.

use std::path::PathBuf;
use std::time::Duration;

use moored_containment::RuntimeDir;

use super::cast::Scene;
use super::script::echo;
use crate::event::{EndCause, RunId};
use moored_launch::{OverLimit, Rules};
use moored_registry::RegisteredRun;

fn folder() -> (PathBuf, RuntimeDir) {
    let path = std::env::temp_dir().join(format!("moored-many-{}", RunId::generate()));
    let folder = RuntimeDir::at(&path).expect("a folder");
    (path, folder)
}

#[tokio::test]
async fn each_of_64_sessions_at_once_gets_its_own_answers_and_leaves_no_file() {
    let (path, folder) = folder();
    let mut scenes: Vec<Scene> =
        (0..64).map(|_| Scene::within(Rules::default(), echo(), Some(&folder))).collect();
    for scene in &mut scenes {
        scene.initialize().await;
    }
    assert_eq!(RegisteredRun::all(&folder).expect("a folder").len(), 64);
    for scene in &scenes {
        scene.call(7, "same id");
    }
    for scene in &mut scenes {
        assert_eq!(scene.hear().await.message["result"]["echo"], "same id");
    }
    for scene in scenes {
        scene.close();
        let (outcome, rest, _) = scene.ended().await;
        assert_eq!((outcome.ended.why, rest), (EndCause::ClientEof, vec![]));
    }
    assert_eq!(RegisteredRun::all(&folder).expect("a folder").len(), 0);
    std::fs::remove_dir(path).expect("nothing is left in it");
}

#[tokio::test]
async fn one_too_many_puts_the_longest_idle_session_to_sleep() {
    let (path, folder) = folder();
    let limited = || Rules { max_instances: Some(1), ..Rules::default() };
    let mut first = Scene::within(limited(), echo(), Some(&folder));
    first.initialize().await;
    let mut second = Scene::within(limited(), echo(), Some(&folder));
    second.initialize().await;
    first.until("hibernated").await;
    // And back.
    first.ask(1, "ping").await;
    second.until("hibernated").await;
    for scene in [first, second] {
        scene.close();
        scene.ended().await;
    }
    removed(path).await;
}

#[tokio::test]
async fn a_refused_session_starts_nothing_and_a_session_in_the_queue_leaves_with_its_client() {
    let (path, folder) = folder();
    let limited = |over_limit| Rules { max_instances: Some(1), over_limit, ..Rules::default() };
    let mut first = Scene::within(limited(OverLimit::Refuse), echo(), Some(&folder));
    first.initialize().await;
    let refused = Scene::within(limited(OverLimit::Refuse), echo(), Some(&folder));
    assert!(refused.failed().await.contains("--max-instances"));
    // A call that is never answered keeps the first one busy.
    first.call(1, "ping");
    let queued = Scene::within(limited(OverLimit::StopOldest), echo(), Some(&folder));
    queued.die();
    let began = tokio::time::Instant::now();
    drop(queued);
    assert!(began.elapsed() < Duration::from_secs(5));
    first.hear().await;
    first.close();
    first.ended().await;
    removed(path).await;
}

/// Nothing is left in the folder, once the threads that make room for others have given back their turn.
async fn removed(path: PathBuf) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while std::fs::remove_dir(&path).is_err() {
        assert!(tokio::time::Instant::now() < deadline, "something is left in it");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A session that makes room for its wake is not awake: two of them do not wait for each other.
#[tokio::test]
async fn two_sessions_that_are_called_at_once_wake_one_after_the_other() {
    let (path, folder) = folder();
    let limited = || Rules { max_instances: Some(1), ..Rules::default() };
    let mut first = Scene::within(limited(), echo(), Some(&folder));
    first.initialize().await;
    let mut second = Scene::within(limited(), echo(), Some(&folder));
    second.initialize().await;
    let mut third = Scene::within(limited(), echo(), Some(&folder));
    third.initialize().await;
    third.close();
    third.ended().await;
    let began = tokio::time::Instant::now();
    first.call(1, "ping");
    second.call(1, "ping");
    first.hear().await;
    second.hear().await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    for scene in [first, second] {
        scene.close();
        scene.ended().await;
    }
    removed(path).await;
}
