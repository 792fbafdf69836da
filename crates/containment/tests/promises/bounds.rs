//! The bounds of the default ladder: 2 s after EOF, 2 s more after SIGTERM, whoever is killed on the way.
//!
//! Every test here plays in real time, as each user at once. The server ignores EOF and SIGTERM and has a child that
//! does so too, so that nothing but the ladder's own SIGKILL can end them.

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
fn end_gives_two_seconds_after_eof_and_two_after_term_and_no_more() {
    as_each_user(|user| {
        let mut stage = stage(user, &["--ending", "end"]);
        let took = took(&stage, begin(&stage));
        stage.assert_owner_exits(OwnerExits::Code(0));
        assert_lies_within(took, 4.0);
        let report = stage.report();
        for step in ["close", "terminate"] {
            assert_lies_within(step_of(&report, step), 2.0);
        }
    });
}

#[test]
fn an_end_that_begins_with_term_gives_two_seconds_and_no_more() {
    as_each_user(|user| {
        let mut stage = stage(user, &["--ending", "terminate"]);
        let took = took(&stage, begin(&stage));
        stage.assert_owner_exits(OwnerExits::Code(0));
        assert_lies_within(took, 2.0);
        assert_lies_within(step_of(&stage.report(), "terminate"), 2.0);
    });
}

#[test]
fn the_bound_of_an_end_holds_when_the_owner_is_killed_in_its_first_second() {
    killed_on_the_way(Who::Owner, 1.0, 4.0);
}

#[test]
fn the_bound_of_an_end_holds_when_the_owner_is_killed_in_its_third_second() {
    killed_on_the_way(Who::Owner, 3.0, 4.0);
}

#[test]
fn a_guardian_that_takes_over_an_end_gives_what_is_left_after_term() {
    killed_on_the_way(Who::Inner, 3.0, 4.0);
}

#[test]
fn a_guardian_that_sees_the_other_one_killed_asks_to_terminate_at_once() {
    thread::scope(|tests| {
        tests.spawn(|| killed_on_the_way(Who::Inner, 1.0, 3.0));
        tests.spawn(|| killed_on_the_way(Who::Outer, 1.0, 3.0));
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
        assert_eq!((still.start_ticks, still.state), (worker.start_ticks, 'S'), "{setting}: it is untouched");
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

fn stage(user: User, owner: &[&str]) -> Stage {
    Stage::set(Setting { user, layers: LOOP }, owner, &STUBBORN)
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

/// Asks for an end, kills one of ours some seconds later, and sees that all is over when it should be.
fn killed_on_the_way(who: Who, after: f64, over_after: f64) {
    as_each_user(|user| {
        let stage = stage(user, &["--ending", "end"]);
        let began = begin(&stage);
        thread::sleep(Duration::from_secs_f64(after).saturating_sub(began.elapsed()));
        stage.kill(&[who]);
        assert_lies_within(took(&stage, began), over_after);
    });
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
