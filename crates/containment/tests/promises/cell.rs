//! One escape in one ending in one setting, and everything that must be true afterwards.

use std::fmt;
use std::time::{Duration, Instant};

use moored_testkit::Mark;
use serde_json::{Value, json};

use crate::endings::{Cause, Ending, Expected, SHORT_LADDER};
use crate::escapes::Escape;
use crate::setting::Setting;
use crate::stage::Stage;

/// How much later than its bound an ending may be over: what a loaded machine of two cores takes to start, signal and
/// reap some dozens of processes.
const SLACK: Duration = Duration::from_millis(1500);
/// Who is still there after this was not late, but left behind.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many starts may come before the last of a storm is caught.
const SWEEPS: usize = 3;

/// A cell of the matrix.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) setting: Setting,
    pub(crate) escape: &'static Escape,
    pub(crate) ending: &'static Ending,
}

/// A cell that kept the promise.
pub(crate) struct Kept {
    /// From the beginning of the end until nobody was left.
    pub(crate) took: Duration,
    /// By which the dead can be found until somebody reaps them.
    pub(crate) mark: Mark,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} as {}", self.escape.name, self.ending.name, self.setting)
    }
}

impl Cell {
    /// Within which all must be over.
    pub(crate) fn bound(&self) -> Duration {
        if self.ending.leaves_nobody() && self.setting.layers.has("pidns") {
            // The kernel does it, and has no patience.
            return SLACK;
        }
        self.ending.bound + SLACK
    }

    /// Plays it. Panics with what was broken.
    pub(crate) fn play(&self) -> Kept {
        let owner = [&SHORT_LADDER, self.escape.owner, self.ending.owner].concat();
        let server = [self.escape.switches, self.ending.server].concat();
        let mut stage = Stage::set(self.setting, &owner, &server);
        self.assert_strength_is_what_was_asked_for(&stage.session["strength"]);
        if self.escape.stops && self.ending.cause != Cause::Server {
            stage.wait_for_a_stopped_one();
        }

        let began = self.ending.bring_about(&stage);
        let took = if self.ending.leaves_nobody() {
            self.end_by_sweep(&stage, began)
        } else if self.ending.leaves_the_owner_alone() {
            self.end_by_owner(&mut stage, began)
        } else {
            wait_until_nobody_is_left(&stage, began)
        };
        self.assert_the_owner_tells_the_truth(&mut stage);
        // The guardians carry the mark too: when it is empty, they have done all that they will do.
        if self.ending.may_leave_a_record() && stage.is_on_record() {
            self.sweep_until_forgotten(&stage);
        }
        assert!(!stage.is_on_record(), "the session is still on record\n{}", stage.story());
        assert_eq!(stage.leaf(), None, "the session's leaf is still there\n{}", stage.story());
        Kept { took, mark: *stage.mark }
    }

    /// Nobody of ours is left: the kernel ends the tree if it is asked to, and else the next start does.
    fn end_by_sweep(&self, stage: &Stage, began: Instant) -> Duration {
        if self.setting.layers.has("pidns") {
            let took = wait_until_nobody_is_left(stage, began);
            self.sweep_until_forgotten(stage);
            return took;
        }
        let began = Instant::now();
        self.sweep_until_forgotten(stage);
        wait_until_nobody_is_left(stage, began)
    }

    /// The owner has nobody to help it, and sweeps its own session. What it could not end it says, and leaves on record.
    fn end_by_owner(&self, stage: &mut Stage, began: Instant) -> Duration {
        stage.assert_owner_exits(self.ending.owner_exits);
        let could_not = stage.report()["survivors"] != json!([]);
        assert_eq!(
            stage.is_on_record(),
            could_not,
            "survivors are on record, or nobody is\n{}",
            stage.story()
        );
        if could_not {
            self.sweep_until_forgotten(stage);
        }
        wait_until_nobody_is_left(stage, began)
    }

    fn assert_strength_is_what_was_asked_for(&self, strength: &Value) {
        assert_eq!(strength["layers"], json!(self.setting.layers.held_by), "held otherwise");
        assert_eq!(strength["strength"], self.setting.layers.level(), "held otherwise");
        assert_eq!(strength["findable"], "by-cookie", "a sweep could not find it");
    }

    fn assert_the_owner_tells_the_truth(&self, stage: &mut Stage) {
        stage.assert_owner_exits(self.ending.owner_exits);
        let Some(Expected { reason, verified }) = self.ending.report else { return };
        let report = stage.report();
        assert_eq!(report["reason"], reason, "another reason\n{}", stage.story());
        assert_eq!(report["verified"], verified, "another proof\n{}", stage.story());
        let may_survive = self.ending.leaves_the_owner_alone();
        assert!(may_survive || report["survivors"] == json!([]), "survivors\n{}", stage.story());
        assert_eq!(report["session"], stage.session["id"], "another session\n{}", stage.story());
        self.assert_strength_is_what_was_asked_for(&report);
    }

    /// The session is on record, and a sweep forgets it when it has ended all of it; one that could not leaves it to the
    /// next.
    fn sweep_until_forgotten(&self, stage: &Stage) {
        assert!(stage.is_on_record(), "nobody ended the session, but its record is gone\n{}", stage.story());
        for _ in 0..SWEEPS {
            let swept = stage.sweep();
            assert_eq!(swept["errors"], json!([]), "{swept}\n{}", stage.story());
            assert_eq!(swept["sessions"].as_array().map(Vec::len), Some(1), "{swept}\n{}", stage.story());
            assert_eq!(swept["sessions"][0]["session"], stage.session["id"], "{swept}\n{}", stage.story());
            let could_not = swept["sessions"][0]["survivors"] != json!([]);
            assert_eq!(stage.is_on_record(), could_not, "{swept}\n{}", stage.story());
            if !could_not {
                return;
            }
        }
        panic!("{SWEEPS} sweeps could not end it\n{}", stage.story());
    }
}

fn wait_until_nobody_is_left(stage: &Stage, began: Instant) -> Duration {
    let passed = began.elapsed();
    passed + stage.assert_nobody_is_left(PATIENCE)
}
