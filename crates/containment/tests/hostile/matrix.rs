//! The matrix of escapes: each kind of `kinds` × each ending × root and plain × with and without a cgroup leaf.
//!
//! By default each kind is tried once, with an ending and a user that are other ones each time; `MOORED_HOSTILE_SEED` makes
//! the same choices again. `MOORED_TEST_FULL=1` tries all of them.

use std::fs;
use std::panic::catch_unwind;
use std::process::Command;
use std::time::{Duration, Instant};

use moored_containment::{EndReason, EndReport};
use moored_testkit::{Dice, Scratch, User, dice, in_time};

use crate::common::ending::Ending;
use crate::common::hold::{Cell, cells};
use crate::common::host::{Host, Plan};
use crate::common::traces::{assert_nothing_left, names, sweep_as};
use crate::kinds::{Against, Family, KINDS, Kind};

const SCRIPT: &str = include_str!("escapes.pl");
const SEED: &str = "MOORED_HOSTILE_SEED";

const ENDINGS: [Ending; 7] = [
    Ending::End,
    Ending::Terminate,
    Ending::InputCloses,
    Ending::Exit,
    Ending::HostKilled,
    Ending::HostAndOuterKilled,
    Ending::HostAndInnerKilled,
];

/// Both steps of the ladder take 100 ms here; the rest is what a loaded machine may add.
const BOUND: Duration = Duration::from_millis(200 + 1500);
/// A guardian that is stopped, or that finds the other one so, is waited for.
const BOUND_WITH_ONE_GUARDIAN: Duration = Duration::from_secs(5);
/// No bound is promised for what the owner sweeps by itself: this one only passes when something is wrong.
const BOUND_WITHOUT_GUARDIANS: Duration = Duration::from_secs(60);
/// Who is still there after this was not late, but left behind.
const PATIENCE: Duration = Duration::from_secs(15);
/// How many starts may come before the last of a storm is caught.
const SWEEPS: usize = 3;

#[test]
fn what_escapes_by_clone_flags_is_ended_needs_perl() {
    try_all(Family::Clone);
}

#[test]
fn what_escapes_by_threads_is_ended_needs_perl() {
    try_all(Family::Threads);
}

#[test]
fn what_escapes_by_namespaces_is_ended_needs_perl() {
    try_all(Family::Namespaces);
}

#[test]
fn what_escapes_by_its_parents_is_ended_needs_perl() {
    try_all(Family::Parents);
}

#[test]
fn what_escapes_by_never_being_the_same_is_ended_needs_perl() {
    try_all(Family::Change);
}

#[test]
fn what_escapes_by_signals_and_debuggers_is_ended_needs_perl() {
    try_all(Family::Signals);
}

#[test]
fn what_escapes_by_what_it_is_is_ended_needs_perl() {
    try_all(Family::Attributes);
}

#[test]
fn what_escapes_by_cgroups_is_ended_needs_perl() {
    try_all(Family::Cgroups);
}

#[test]
fn what_turns_against_its_guardians_is_ended_needs_perl() {
    try_all(Family::Guardians);
}

#[test]
fn the_script_has_each_kind_of_the_table_and_no_other_needs_perl() {
    let folder = Scratch::for_user(User::current());
    fs::write(folder.join("escapes.pl"), SCRIPT).expect("our folder");
    let listed = Command::new("perl").arg(folder.join("escapes.pl")).arg("--list").output().expect("perl");
    let listed = String::from_utf8(listed.stdout).expect("text");
    let mut known = KINDS.map(|kind| kind.name);
    known.sort_unstable();
    assert_eq!(listed.lines().collect::<Vec<_>>(), known);
}

/// Tries each kind of a family, whatever became of the others, and tells of all that broke.
fn try_all(family: Family) {
    let seed = dice::seed(SEED);
    let kinds: Vec<&'static Kind> = KINDS.iter().filter(|kind| kind.family == family).collect();
    let trials: Vec<Trial> = kinds.iter().flat_map(|kind| trials(kind, seed)).collect();
    let broken: Vec<String> = trials.iter().filter_map(|trial| trial.fault()).collect();
    let what = (broken.len(), trials.len());
    assert!(broken.is_empty(), "{SEED}={seed}: {what:?} broken:\n\n{}", broken.join("\n\n"));
}

fn trials(kind: &'static Kind, seed: u64) -> Vec<Trial> {
    let cells: Vec<Cell> = cells().into_iter().filter(|cell| kind.can_be_tried_in(*cell)).collect();
    let endings: Vec<Ending> = ENDINGS.into_iter().filter(|ending| kind.can_end_by(*ending)).collect();
    let trials: Vec<Trial> = endings
        .iter()
        .flat_map(|ending| cells.iter().map(|cell| Trial { kind, ending: *ending, cell: *cell }))
        .collect();
    if trials.is_empty() || std::env::var("MOORED_TEST_FULL").is_ok_and(|value| value == "1") {
        return trials;
    }
    let name = kind.name.bytes().fold(seed, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    vec![Dice::new(name).pick(&trials)]
}

/// One kind in one ending, as one user.
#[derive(Clone, Copy, Debug)]
struct Trial {
    kind: &'static Kind,
    ending: Ending,
    cell: Cell,
}

impl Trial {
    /// What went wrong, if anything did: late twice, or left behind once.
    fn fault(&self) -> Option<String> {
        let bound = match self.kind.against {
            Against::Nobody => BOUND,
            Against::OneGuardian => BOUND_WITH_ONE_GUARDIAN,
            Against::BothGuardians => BOUND_WITHOUT_GUARDIANS,
        };
        let panic = catch_unwind(|| in_time(bound, |took| *took, || self.play())).err()?;
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|&said| said.to_owned()));
        let words = words.unwrap_or_default();
        Some(format!("{} by {:?} as {:?}: {words}", self.kind.name, self.ending, self.cell))
    }

    /// Plays it, and tells how long its end took. Panics with what was broken.
    fn play(&self) -> Duration {
        let plan = Plan::new(self.cell, self.ending);
        fs::write(plan.scratch().join("escapes.pl"), SCRIPT).expect("our folder");
        let script = format!(r#"exec perl "$1/escapes.pl" {} "$1""#, self.kind.name);
        let mut host = plan.script(&script).start();
        let said = fs::read_to_string(host.scratch.join("ready")).expect("it is ready");
        assert_eq!(said, "yes", "the escape could not be set up");
        let began = Instant::now();
        host.bring_end();
        if let Some(report) = host.report() {
            self.assert_true(&report, &host);
        }
        let took = began.elapsed() + self.wait_until_nobody_is_left(&host);
        if self.may_need_a_sweep() {
            for _ in 0..SWEEPS {
                if !names(&host.runtime()).is_empty() {
                    sweep_as(self.cell.0, &host.runtime());
                }
            }
        }
        assert_nothing_left(&mut host);
        took
    }

    /// Whether all of ours may be dead or stopped, so that only the next start can end what is left.
    fn may_leave_nobody_of_ours(&self) -> bool {
        let owner_goes = !self.ending.has_report();
        match self.kind.against {
            Against::Nobody => false,
            Against::OneGuardian => self.ending.leaves_one_guardian(),
            Against::BothGuardians => owner_goes,
        }
    }

    fn may_need_a_sweep(&self) -> bool {
        self.kind.against != Against::Nobody || self.ending.leaves_one_guardian()
    }

    fn wait_until_nobody_is_left(&self, host: &Host) -> Duration {
        let patience = if self.may_leave_nobody_of_ours() { BOUND } else { PATIENCE };
        let left = match host.mark.wait_until_none(patience) {
            Ok(took) => return took,
            Err(left) => left,
        };
        assert!(self.may_leave_nobody_of_ours(), "left behind: {left:#?}");
        sweep_as(self.cell.0, &host.runtime());
        // No bound is promised for what is left to a sweep.
        host.mark.wait_until_none(PATIENCE).unwrap_or_else(|left| panic!("after a sweep: {left:#?}"));
        Duration::ZERO
    }

    /// A report says what happened, and calls nothing proven that is not.
    fn assert_true(&self, report: &EndReport, host: &Host) {
        let who = host.who();
        let ours = [who.host.pid, who.outer.pid, who.inner.pid];
        let alive: Vec<_> = host.mark.alive().into_iter().filter(|one| !ours.contains(&one.pid)).collect();
        assert!(!report.verified || alive.is_empty(), "verified, while {alive:#?}: {report:?}");
        assert!(!report.verified || report.survivors.is_empty(), "{report:?}");
        let expected = match self.ending {
            Ending::InputCloses => EndReason::ServerExited,
            _ => EndReason::Requested,
        };
        match self.kind.against {
            Against::Nobody => assert_eq!((report.reason, report.verified), (expected, true), "{report:?}"),
            Against::OneGuardian => {
                let is_known = [expected, EndReason::GuardianDied].contains(&report.reason);
                assert!(is_known && report.verified, "{report:?}");
            }
            // Who could have proven it may be dead.
            Against::BothGuardians => {}
        }
    }
}
