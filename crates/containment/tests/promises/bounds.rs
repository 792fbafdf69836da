//! The bounds of the default ladder: 2 s after EOF, 2 s more after SIGTERM, whoever is killed on the way.
//!
//! Every test here plays in real time, as each user at once; those that measure have the machine to themselves. The
//! server ignores EOF and SIGTERM and has a child that does so too, so that only the ladder's own SIGKILL ends them.

use std::thread;
use std::time::{Duration, Instant};

use moored_testkit::{User, wait_until};
use serde_json::Value;

use crate::endings::OwnerExits;
use crate::setting::{LOOP, SETTINGS, Setting};
use crate::stage::{Stage, Who, list};

const STUBBORN: [&str; 3] = ["--ignore-eof", "--ignore-term", "--grandchild"];
/// What a loaded machine may add. Less than a second, so that a ladder that starts over is told from one that goes on.
const TOLERANCE: Duration = Duration::from_millis(900);

#[test]
fn heavy_the_default_bound_holds_and_no_server_gets_less() {
    as_each_user(|user| {
        let (took, report) = in_time(4.0, || end(user, "end"));
        assert_lies_within(took, 4.0);
        assert!(
            step_of(&report, "close") >= Duration::from_secs(2),
            "less after EOF than it may take: {report}"
        );
        assert!(step_of(&report, "terminate") >= Duration::from_secs(2), "less after SIGTERM: {report}");
    });
    as_each_user(|user| {
        let (took, report) = in_time(2.0, || end(user, "terminate"));
        assert_lies_within(took, 2.0);
        assert!(step_of(&report, "terminate") >= Duration::from_secs(2), "less after SIGTERM: {report}");
    });
}

#[test]
fn heavy_the_default_bound_holds_whoever_is_killed_on_the_way() {
    as_each_user(|user| {
        thread::scope(|tests| {
            // Whoever is left goes on with the same ladder, and does not start over.
            tests.spawn(|| assert_lies_within(killed_on_the_way(user, Who::Owner, 1.0, 4.0), 4.0));
            tests.spawn(|| assert_lies_within(killed_on_the_way(user, Who::Owner, 3.0, 4.0), 4.0));
            tests.spawn(|| assert_lies_within(killed_on_the_way(user, Who::Inner, 3.0, 4.0), 4.0));
            tests.spawn(|| assert_lies_within(killed_on_the_way(user, Who::Outer, 3.0, 4.0), 4.0));
            // A guardian that sees the other one killed has no time to lose, and asks to terminate at once.
            tests.spawn(|| assert_lies_within(killed_on_the_way(user, Who::Inner, 1.0, 3.0), 3.0));
            tests.spawn(|| assert_lies_within(killed_on_the_way(user, Who::Outer, 1.0, 3.0), 3.0));
        });
    });
}

#[test]
fn owner_killed_while_a_forked_worker_holds_every_fd_ends_at_once() {
    for setting in SETTINGS.into_iter().filter(|setting| setting.unavailable().is_none()) {
        // Neither the server's EOF nor the guardians' comes while the worker lives; only the owner's death is seen.
        let stage = Stage::set(setting, &["--ending", "hold", "--forked-worker"], &[]);
        let owner = stage.pid(Who::Owner);
        let is_worker = |name: &str, pid| name == "promise_host" && pid != owner;
        let worker = stage.mark.alive().into_iter().find(|process| is_worker(&process.comm, process.pid));
        let worker = worker.expect("a worker");

        let began = stage.kill(&[Who::Owner]);
        let others = || stage.mark.alive().into_iter().filter(|process| process.pid != worker.pid);
        wait_until(&format!("{setting}: all but the worker are gone"), Duration::from_secs(1), || {
            others().next().is_none().then_some(())
        });
        // It may have hidden between two looks; not for that long.
        assert_eq!(
            list(&others().collect::<Vec<_>>()),
            "",
            "{setting}: {:?} after the kill",
            began.elapsed()
        );
        let still = stage.find(worker.pid).expect("the worker is a bystander");
        assert_eq!(still.start_ticks, worker.start_ticks, "{setting}: somebody else has its number");
        assert!(matches!(still.state, 'R' | 'S'), "{setting}: it is untouched, not {}", still.state);
    }
}

fn as_each_user(test: impl Fn(User) + Sync) {
    thread::scope(|users| {
        for user in User::available() {
            let test = &test;
            users.spawn(move || test(user));
        }
    });
}

/// A stubborn server's whole ending by the default ladder: how long it took, and the owner's report.
fn end(user: User, ending: &str) -> (Duration, Value) {
    let mut stage = Stage::set(Setting { user, layers: LOOP }, &["--ending", ending], &STUBBORN);
    let took = took(&stage, begin(&stage));
    stage.assert_owner_exits(OwnerExits::Code(0));
    (took, stage.report())
}

/// Asks for an end and kills one of ours some seconds later: how long all took from the asking.
fn killed_on_the_way(user: User, who: Who, after: f64, expected: f64) -> Duration {
    let play = || {
        let stage = Stage::set(Setting { user, layers: LOOP }, &["--ending", "end"], &STUBBORN);
        let began = begin(&stage);
        thread::sleep(Duration::from_secs_f64(after).saturating_sub(began.elapsed()));
        stage.kill(&[who]);
        (took(&stage, began), ())
    };
    in_time(expected, play).0
}

fn begin(stage: &Stage) -> Instant {
    let began = Instant::now();
    stage.go();
    began
}

fn took(stage: &Stage, began: Instant) -> Duration {
    let passed = began.elapsed();
    passed + stage.assert_nobody_is_left(Duration::from_secs(20))
}

/// A machine that is busy with something else is late once in a while, so what was late is played once more.
fn in_time<T>(seconds: f64, play: impl Fn() -> (Duration, T)) -> (Duration, T) {
    let first = play();
    if first.0 < Duration::from_secs_f64(seconds) + TOLERANCE { first } else { play() }
}

fn step_of(report: &Value, name: &str) -> Duration {
    let steps = report["steps"].as_array().into_iter().flatten();
    let step = steps.into_iter().find(|step| step["name"] == name);
    let millis = step.and_then(|step| step["took_ms"].as_f64());
    Duration::from_secs_f64(millis.unwrap_or_else(|| panic!("no step `{name}` in {report}")) / 1000.0)
}

/// Not sooner: a server must not get less time than it would without us. And not later.
#[track_caller]
fn assert_lies_within(took: Duration, seconds: f64) {
    let bound = Duration::from_secs_f64(seconds);
    assert!(took >= bound, "{took:?}: the server had less than the {bound:?} that it may take");
    assert!(took < bound + TOLERANCE, "{took:?}: that is more than {bound:?}");
}
