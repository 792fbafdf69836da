//! One stroke: a parent that would act on its child's death does not get to it.

use std::fs;
use std::process::Stdio;

use moored_testkit::wait::wait_for_file;
use moored_testkit::{MarkGuard, Scratch, Target, User, kill_at_once, wait_until};

use crate::harness::DEADLINE;

#[test]
fn no_one_acts_on_the_death_of_another() {
    for user in User::available() {
        for round in 0..5 {
            let (mark, scratch) = (MarkGuard::fresh(), Scratch::for_user(user));
            let script = r#"sleep 600 & echo $! >"$1/child"; touch "$1/ready"; wait; touch "$1/acted""#;
            let mut command = mark.wrapping().user(user).command("sh", ["-c", script, "sh"]);
            command.arg(scratch.path()).stdin(Stdio::null());
            let mut parent = command.spawn().expect("sh");
            wait_for_file(&scratch.join("ready"), DEADLINE);
            let child =
                fs::read_to_string(scratch.join("child")).expect("a pid").trim().parse().expect("a pid");
            let is_marked = |pid| mark.alive().iter().any(|one| one.pid == pid);
            let targets: Vec<_> = [child, parent.id()]
                .map(|pid| Target::hold(pid, || is_marked(pid)).expect("it lives"))
                .into_iter()
                .collect();
            kill_at_once(&targets);
            wait_until("the parent is reaped", DEADLINE, || parent.try_wait().expect("our child"));
            assert!(!scratch.join("acted").exists(), "{user:?}, round {round}: the parent saw its child die");
        }
    }
}
