//! Guardians killed under load.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use moored_containment::{Command, Contained, EndReason, EndReport, Layer, ProcessIdentity, Stdio};
use moored_testkit::{read_pids, wait_until};
use rustix::process::Signal;

use crate::common::hold::cells;
use crate::common::part::{Part, hold, stage};
use crate::common::traces::names;
use crate::common::{DEADLINE, kill_at_once, send, short};

const TREE: [&str; 6] = ["--ignore-eof", "--ignore-term", "--tree", "5", "--daemon", "--clean-daemon"];

/// A session, and everybody in its tree.
fn tree(stage: &Path, round: usize) -> (Contained, Vec<ProcessIdentity>) {
    let (pids, ready) = (stage.join(format!("pids-{round}")), stage.join(format!("ready-{round}")));
    let mut command = Command::new(stage.join("misbehave"));
    command.args(TREE).arg("--pid-file").arg(&pids).arg("--ready-file").arg(&ready);
    command.stdin(Stdio::Pipe).stdout(Stdio::Null).stderr(Stdio::Null).ladder(short());
    hold().apply(&mut command);
    let server = command.spawn().expect("a server");
    wait_until("a ready server", DEADLINE, || ready.exists().then_some(()));
    // In a PID namespace they know themselves by other numbers.
    let strict = server.strength().has(Layer::Pidns);
    let tree = if strict { vec![server.identity()] } else { identities(&pids) };
    (server, tree)
}

fn identities(pids: &Path) -> Vec<ProcessIdentity> {
    let pids = read_pids(pids);
    assert_eq!(pids.len(), 8);
    pids.into_iter().map(|pid| ProcessIdentity::of(pid).expect("it lives")).collect()
}

fn assert_gone(report: &EndReport, tree: &[ProcessIdentity]) {
    assert_eq!(report.survivors, [], "{report:?}");
    let alive: Vec<_> = tree.iter().filter(|process| process.is_alive().expect("/proc")).collect();
    assert!(alive.is_empty(), "{alive:?} of {report:?}");
}

/// Runs `test` with every core busy twice over.
fn under_load(test: impl FnOnce()) {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 * cores {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let _stop = Stop(&over);
        test();
    });
}

#[test]
fn heavy_a_killed_guardian_is_noticed_every_time() {
    for cell in cells() {
        let part = Part::of("guardians::part_whose_guardians_are_killed_one_at_a_time", cell);
        part.play();
        assert_eq!(part.mark.alive(), []);
    }
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_whose_guardians_are_killed_one_at_a_time() {
    let Some(stage) = stage() else { return };
    under_load(|| {
        for round in 0..40 {
            let (mut server, tree) = tree(&stage, round);
            assert!(send(&server.guardians()[round % 2], Signal::KILL));
            let report = server.wait_ended().expect("a report");
            assert_eq!(report.reason, EndReason::GuardianDied, "{round}: {report:?}");
            assert!(report.verified, "{round}: {report:?}");
            assert_gone(&report, &tree);
        }
    });
    assert_eq!(names(&stage.join("run")), [] as [std::path::PathBuf; 0]);
}

#[test]
fn heavy_an_owner_whose_guardians_are_both_killed_cleans_up_itself() {
    for cell in cells() {
        let part = Part::of("guardians::part_whose_guardians_are_both_killed", cell);
        part.play();
        assert_eq!(part.mark.alive(), []);
        assert!(part.group.as_ref().is_none_or(|group| group.leaves().is_empty()));
    }
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_whose_guardians_are_both_killed() {
    let Some(stage) = stage() else { return };
    let rounds = if std::env::var_os("MOORED_TEST_FULL").is_some() { 10 } else { 4 };
    for round in 0..rounds {
        let (mut server, tree) = tree(&stage, round);
        kill_at_once(&server.guardians());
        let report = server.wait_ended().expect("a report");
        assert_eq!(report.reason, EndReason::GuardiansDied, "{report:?}");
        assert_gone(&report, &tree);
    }
    assert_eq!(names(&stage.join("run")), [] as [std::path::PathBuf; 0]);
}
