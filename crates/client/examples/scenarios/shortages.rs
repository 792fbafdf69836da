//! A host that runs out of something: files, threads, or patience with two hundred servers.

use std::time::{Duration, Instant};

use moored_client::{ConnectError, Event, ServerSet, SetOptions, events};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{DEADLINE, Stage, ask_pid, assert_verified, blocking, connect, handle};

fn own_files() -> u64 {
    std::fs::read_dir("/proc/self/fd").expect("our files").count() as u64
}

/// No files are left in the middle of a start: what came up serves, what did not is reported and gone, and all of it ends.
pub(crate) async fn no_more_files(stage: &Stage) {
    let set = connect([stage.stub("early")]).await;
    let early = handle(&set, "early");
    let before = getrlimit(Resource::Nofile);
    // Every number of files that a start may be short of.
    for more in 0..24 {
        let few = Rlimit { current: Some(own_files() + more), maximum: before.maximum };
        setrlimit(Resource::Nofile, few).expect("less is allowed");
        let late = ServerSet::connect([stage.stub("late")], SetOptions::default()).await.expect("one name");
        let failures = late.failures();
        ask_pid(&early).await.expect("it needs no more files");
        if let Some(late) = late.server("late") {
            ask_pid(&late).await.expect("it came up");
        }
        blocking(|| drop(late));
        setrlimit(Resource::Nofile, before).expect("it was so before");
        for failed in failures {
            let is_told = matches!(*failed.error, ConnectError::Start(_) | ConnectError::Exited { .. });
            assert!(is_told, "{failed} with {more} files");
        }
        assert!(stage.alive("late").is_empty(), "with {more} files");
    }
    // A host without any files left can still end what it has.
    let few = Rlimit { current: Some(own_files().saturating_sub(1)), maximum: before.maximum };
    setrlimit(Resource::Nofile, few).expect("less is allowed");
    let reports = set.shutdown().await;
    setrlimit(Resource::Nofile, before).expect("it was so before");
    assert_verified(&reports, 1);
    assert!(stage.alive("early").is_empty());
}

/// Two hundred servers: all come up, and all are gone at once.
pub(crate) async fn two_hundred(stage: &Stage) {
    const MANY: usize = 200;
    let (sender, mut told) = events();
    let specs: Vec<_> = (0..MANY).map(|number| stage.stub_of("many", &format!("s{number}"))).collect();
    let set = ServerSet::connect(specs, SetOptions::default().events(sender)).await.expect("names differ");
    assert!(set.failures().is_empty(), "{:?}", set.failures().first());
    assert_eq!(stage.alive("many").len(), MANY);
    let began = Instant::now();
    blocking(|| drop(set));
    let took = began.elapsed();
    assert!(stage.alive("many").is_empty());
    assert!(took < DEADLINE, "{took:?}, one after the other?");
    let ended = std::iter::from_fn(|| told.try_next());
    let proven = |event: &Event| matches!(event, Event::Ended { outcome: Ok(report), .. } if report.verified);
    assert_eq!(ended.filter(proven).count(), MANY);
}

/// No thread is to be had for a plain user: the servers are gone at once all the same.
pub(crate) async fn no_more_threads(stage: &Stage) {
    let names = ["a", "b", "c", "d", "e", "f"];
    let set = connect(names.map(|name| stage.misbehave(name, &["--ignore-term"]))).await;
    let before = getrlimit(Resource::Nproc);
    let none = Rlimit { current: Some(0), maximum: before.maximum };
    setrlimit(Resource::Nproc, none).expect("less is allowed");
    let began = Instant::now();
    drop(set);
    let took = began.elapsed();
    setrlimit(Resource::Nproc, before).expect("it was so before");
    assert!(took < Duration::from_secs(2), "{took:?}, one after the other?");
    assert!(names.iter().all(|name| stage.alive(name).is_empty()));
}
