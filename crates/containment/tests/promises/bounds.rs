//! The bounds of the default ladder: 2 s after EOF, 2 s more after SIGTERM, whoever is killed on the way.
//!
//! Every test here plays in real time, as each user at once; those that measure have the machine to themselves. The
//! server ignores EOF and SIGTERM and has a child that does so too, so that only the ladder's own SIGKILL ends them.

use std::thread;
use std::time::{Duration, Instant};

use moored_testkit::{User, in_time, wait_until};
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
        let report = assert_takes(4.0, &Course { user, ending: "end", killed: None }).expect("a report");
        assert_took_two_seconds(&report, "close");
        assert_took_two_seconds(&report, "terminate");
    });
    as_each_user(|user| {
        let report =
            assert_takes(2.0, &Course { user, ending: "terminate", killed: None }).expect("a report");
        assert_took_two_seconds(&report, "terminate");
    });
}

#[test]
fn heavy_the_default_bound_holds_whoever_is_killed_on_the_way() {
    as_each_user(|user| {
        let killed = |who, after| Course { user, ending: "end", killed: Some((who, after)) };
        thread::scope(|tests| {
            // Whoever is left goes on with the same ladder, and does not start over.
            tests.spawn(|| assert_takes(4.0, &killed(Who::Owner, 1.0)));
            tests.spawn(|| assert_takes(4.0, &killed(Who::Owner, 3.0)));
            tests.spawn(|| assert_takes(4.0, &killed(Who::Inner, 3.0)));
            tests.spawn(|| assert_takes(4.0, &killed(Who::Outer, 3.0)));
            // A guardian that sees the other one killed has no time to lose, and asks to terminate at once.
            tests.spawn(|| assert_takes(3.0, &killed(Who::Inner, 1.0)));
            tests.spawn(|| assert_takes(3.0, &killed(Who::Outer, 1.0)));
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

/// A stubborn server's ending by the default ladder, and who is killed how many seconds after it has begun.
#[derive(Debug)]
struct Course {
    user: User,
    ending: &'static str,
    killed: Option<(Who, f64)>,
}

impl Course {
    /// How long it takes, and what the owner reports if it lives. Nobody looks before it is about to be over: looking
    /// is work, and all courses are on at once.
    fn run(&self, look_after: Duration) -> (Duration, Option<Value>) {
        let setting = Setting { user: self.user, layers: LOOP };
        let mut stage = Stage::set(setting, &["--ending", self.ending], &STUBBORN);
        let began = Instant::now();
        stage.go();
        if let Some((who, after)) = self.killed {
            thread::sleep(Duration::from_secs_f64(after).saturating_sub(began.elapsed()));
            stage.kill(&[who]);
        }
        thread::sleep(look_after.saturating_sub(began.elapsed()));
        let looked = began.elapsed();
        let took = looked + stage.assert_nobody_is_left(Duration::from_secs(20));
        if matches!(self.killed, Some((Who::Owner, _))) {
            return (took, None);
        }
        stage.assert_owner_exits(OwnerExits::Code(0));
        (took, Some(stage.report()))
    }
}

/// Not sooner: a server must not get less time than it would without us. And not later.
fn assert_takes(seconds: f64, course: &Course) -> Option<Value> {
    let bound = Duration::from_secs_f64(seconds);
    let look_after = bound - Duration::from_millis(100);
    let (took, report) = in_time(bound + TOLERANCE, |(took, _)| *took, || course.run(look_after));
    assert!(took >= bound, "{course:?}: over after {took:?}, but the server may take {bound:?}");
    report
}

fn assert_took_two_seconds(report: &Value, name: &str) {
    let steps = report["steps"].as_array().into_iter().flatten();
    let step = steps.into_iter().find(|step| step["name"] == name);
    let millis = step.and_then(|step| step["took_ms"].as_f64()).unwrap_or(0.0);
    assert!((2000.0..2900.0).contains(&millis), "the step `{name}` took {millis} ms: {report}");
}
