//! A kill at every system call: owner, outer or inner guardian is SIGKILLed at the entry to its N-th system call, alone or with
//! another of them, from the start of a session to its end. One of the three is left, and ends the tree.
//!
//! The testkit's `killer` counts and kills. By default some calls of each row are tried, others each time
//! (`MOORED_HOSTILE_SEED` makes the same choices again), with `MOORED_TEST_FULL=1` every call; `MOORED_MATRIX_LOG` names a file
//! that gets the counts, a line of JSON for each row.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use moored_testkit::{Dice, MarkGuard, Scratch, User, bin, dice, example};
use serde_json::json;

use crate::common::group::Group;
use crate::common::hold::{Cell, Hold, cells};
use crate::common::traces::{names, sweep_as};

/// How many calls of a row are tried by default, for each user.
const SAMPLE: usize = 6;
/// A session takes fewer calls of the counted one at one time than at another: so many in a row that were never reached are the
/// end of a row.
const NEVER_REACHED: usize = 5;
/// Who is there after this was left behind. Long: an owner whose guardians are both gone, one of them done and the other killed,
/// looks by itself for what is left, and no bound is promised for that.
const PATIENCE: Duration = Duration::from_secs(60);
const SEED: &str = "MOORED_HOSTILE_SEED";

/// Ignores EOF and SIGTERM, and leaves a child, a session of its own and a daemon that do so too.
const SERVER: &str = r#"trap '' TERM; stays='trap "" TERM; sleep 600; :'
    sh -c "$stays" & setsid sh -c "$stays" & (setsid sh -c "$stays" &); sleep 600; :"#;

#[test]
fn owner_killed_at_every_call_leaves_nobody() {
    Row { counted: "owner", also: "nobody" }.play();
}

#[test]
fn owner_and_outer_guardian_killed_at_every_call_of_the_owner_leave_nobody() {
    Row { counted: "owner", also: "outer" }.play();
}

#[test]
fn owner_and_inner_guardian_killed_at_every_call_of_the_owner_leave_nobody() {
    Row { counted: "owner", also: "inner" }.play();
}

#[test]
fn outer_guardian_killed_at_every_call_leaves_nobody() {
    Row { counted: "outer", also: "nobody" }.play();
}

#[test]
fn outer_guardian_and_owner_killed_at_every_call_of_the_guardian_leave_nobody() {
    Row { counted: "outer", also: "owner" }.play();
}

#[test]
fn inner_guardian_killed_at_every_call_leaves_nobody() {
    Row { counted: "inner", also: "nobody" }.play();
}

#[test]
fn inner_guardian_and_owner_killed_at_every_call_of_the_guardian_leave_nobody() {
    Row { counted: "inner", also: "owner" }.play();
}

/// Whose calls are counted, and who is killed with it.
#[derive(Clone, Copy, Debug)]
struct Row {
    counted: &'static str,
    also: &'static str,
}

/// What became of one session.
struct Played {
    calls: usize,
    was_killed: bool,
    took: Duration,
}

impl Row {
    fn play(self) {
        if std::env::var("MOORED_TEST_FULL").is_ok_and(|value| value == "1") {
            for cell in cells().into_iter().filter(|cell| matches!(cell.1, Hold::Loop | Hold::Cgroup)) {
                self.play_every_call(cell);
            }
            return;
        }
        let seed = dice::seed(SEED);
        let mut dice = Dice::new(seed);
        for user in User::available() {
            let holds: Vec<Cell> = cells()
                .into_iter()
                .filter(|cell| cell.0 == user && matches!(cell.1, Hold::Loop | Hold::Cgroup))
                .collect();
            let cell = dice.pick(&holds);
            let calls = self.session(cell, usize::MAX).calls;
            assert!(calls > SAMPLE, "{self:?}: {calls} calls are no session");
            let step = calls / SAMPLE;
            for at in (0..SAMPLE).map(|index| 1 + index * step + dice.below(step)) {
                let played = std::panic::catch_unwind(|| self.session(cell, at));
                assert!(played.is_ok(), "{self:?} as {cell:?} at call {at} of {calls}: {SEED}={seed}");
            }
        }
    }

    fn play_every_call(self, cell: Cell) {
        let (mut at, mut reached, mut never) = (0, 0, 0);
        let mut slowest = Duration::ZERO;
        while never < NEVER_REACHED {
            at += 1;
            let played = self.session(cell, at);
            slowest = slowest.max(played.took);
            reached += usize::from(played.was_killed);
            never = if played.was_killed { 0 } else { never + 1 };
        }
        self.tell(cell, reached, slowest);
    }

    /// One session with a kill at that call of its own. Panics unless nobody is left, and after the next start no file and no
    /// leaf.
    fn session(self, cell: Cell, at: usize) -> Played {
        let (user, hold) = cell;
        let (mark, scratch) = (MarkGuard::fresh(), Scratch::for_user(user));
        let group = if hold == Hold::Cgroup { Group::for_user(user) } else { None };
        let mut wrap = mark.wrapping().user(user);
        if let Some(group) = &group {
            wrap = wrap.cgroup(group.path());
        }
        let (told, runtime) = (scratch.join("told"), scratch.join("run"));
        let mut args: Vec<OsString> = vec![self.counted.into(), at.to_string().into(), self.also.into()];
        args.extend([told.clone().into(), example("moored-containment", "promise_host").into()]);
        args.extend(["--grace", "60", "--kill-after", "30", "--ending", "end", "--runtime"].map(Into::into));
        args.push(runtime.clone().into());
        args.extend(hold.host_options().into_iter().map(Into::into));
        args.extend(["--", "sh", "-c", SERVER].map(Into::into));
        let mut command = wrap.command(bin("killer"), args);
        command.current_dir(scratch.path()).stdin(Stdio::null()).stdout(Stdio::null());
        let errors = File::create(scratch.join("errors")).expect("our folder");
        let began = Instant::now();
        let mut killer = command.stderr(errors).spawn().expect("killer");
        let left = mark.wait_until_none(PATIENCE);
        let took = began.elapsed();
        let what = format!("{self:?} as {cell:?} at call {at}");
        let errors = || fs::read_to_string(scratch.join("errors")).unwrap_or_default();
        assert!(left.is_ok(), "{what}: left behind: {left:#?}\n{}", errors());
        assert!(killer.wait().expect("our child").success(), "{what}: {}", errors());

        if !names(&runtime).is_empty() {
            sweep_as(user, &runtime);
        }
        assert_eq!(names(&runtime), [] as [PathBuf; 0], "{what}: after the next start");
        if let Some(group) = &group {
            assert_eq!(group.leaves(), [] as [PathBuf; 0], "{what}: after the next start");
        }
        let told = fs::read_to_string(told).expect("killer has told");
        let (calls, fate) = told.trim().split_once(' ').expect("two words");
        Played { calls: calls.parse().expect("a number"), was_killed: fate == "killed", took }
    }

    fn tell(self, cell: Cell, reached: usize, slowest: Duration) {
        let line = json!({
            "killed at every call": self.counted, "with": self.also, "cell": format!("{cell:?}"), "calls": reached,
            "slowest_ms": slowest.as_millis(),
        });
        let Some(path) = std::env::var_os("MOORED_MATRIX_LOG") else { return };
        let log = File::options().append(true).create(true).open(path);
        log.and_then(|mut log| log.write_all(format!("{line}\n").as_bytes())).expect("MOORED_MATRIX_LOG");
    }
}
