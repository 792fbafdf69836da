//! Sessions all of whose keepers were killed at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use moored_containment::{EndReason, RuntimeDir, SweepReport, SweptSession, sweep};
use moored_testkit::{Scratch, User};
use rustix::process::Signal;

use crate::common::ending::Ending;
use crate::common::hold::{Cell, Hold, cells};
use crate::common::host::{Host, Plan};
use crate::common::part::{Part, stage};
use crate::common::traces::{assert_nothing_left, names, records, wait_until_stopped};
use crate::common::{DEADLINE, send};
use crate::on_end::{COUNT_THE_LIVING, on_end};

const STUBBORN: [&str; 8] = [
    "--ignore-eof",
    "--ignore-term",
    "--tree-ignores-term",
    "--tree",
    "5",
    "--daemon",
    "--clean-daemon",
    "--stopped-child",
];

/// Sweeps as that user, in a process of its own.
pub(crate) fn sweep_report(user: User, folder: &Path) -> SweepReport {
    let part = Part::new("swept::part_that_sweeps", user);
    let mut command = part.command(part.wrap());
    let swept = command.env("MOORED_RUNTIME_DIR", folder).output().expect("this program");
    assert!(swept.status.success(), "{swept:?}");
    let report = fs::read(part.scratch.join("swept")).expect("a report");
    serde_json::from_slice(&report).expect("a report")
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_that_sweeps() {
    let Some(stage) = stage() else { return };
    let report = sweep(&RuntimeDir::of_user().expect("a folder")).expect("a sweep");
    fs::write(stage.join("swept"), serde_json::to_vec(&report).expect("JSON")).expect("a file");
}

/// A session that nobody keeps any more; in a PID namespace the kernel has ended all of it.
fn abandoned(cell: Cell, runtime: Option<&Path>) -> Host {
    let plan = on_end(Plan::new(cell, Ending::HostKilled), COUNT_THE_LIVING).misbehave(STUBBORN);
    let plan = match runtime {
        Some(folder) => plan.runtime(folder.to_path_buf()),
        None => plan,
    };
    let mut host = plan.start();
    host.kill_all_of_ours();
    host.exit();
    if cell.1 == Hold::Strict {
        host.mark.wait_until_none(DEADLINE).expect("the kernel ends a namespace with its first process");
    } else {
        // The server itself dies with its guardian.
        host.mark.wait_until_at_least(8, DEADLINE).expect("orphans");
    }
    host
}

fn assert_swept(host: &mut Host, swept: &SweptSession) {
    let cell = host.cell;
    assert_eq!(swept.survivors, [], "{cell:?}");
    assert_eq!(swept.ended.is_empty(), cell.1 == Hold::Strict, "{cell:?}: {swept:?}");
    assert_eq!(swept.on_end.map(|exit| exit.exit_code()), Some(5), "{cell:?}");
    assert_eq!(fs::read_to_string(host.scratch.join("on_end")).unwrap_or_default(), "0\n", "{cell:?}");
    assert_nothing_left(host);
}

#[test]
fn what_is_left_of_a_dead_session_is_ended_and_forgotten() {
    for cell in cells() {
        let mut host = abandoned(cell, None);
        assert_eq!(records(&host.runtime()).len(), 1);
        let report = sweep_report(cell.0, &host.runtime());
        let [swept] = &report.sessions[..] else { panic!("{cell:?}: {report:?}") };
        assert_eq!(report.errors, [] as [String; 0]);
        assert_eq!(swept.label, "misbehave");
        assert_swept(&mut host, swept);
        let again = sweep_report(cell.0, &host.runtime());
        assert_eq!(again, SweepReport::default(), "{cell:?}: a second sweep finds nothing");
    }
}

#[test]
fn two_sweeps_at_once_do_not_disturb_each_other() {
    for cell in cells().into_iter().filter(|cell| matches!(cell.1, Hold::Loop | Hold::Cgroup)) {
        let folder = Scratch::for_user(cell.0);
        let runtime = folder.join("run");
        let mut hosts: Vec<_> = (0..3).map(|_| abandoned(cell, Some(&runtime))).collect();
        let reports = std::thread::scope(|scope| {
            let sweeps = [(); 3].map(|()| scope.spawn(|| sweep_report(cell.0, &runtime)));
            sweeps.map(|sweep| sweep.join().expect("a report"))
        });
        let swept: Vec<_> = reports.iter().flat_map(|report| &report.sessions).collect();
        assert!(reports.iter().all(|report| report.errors.is_empty()), "{cell:?}: {reports:?}");
        assert_eq!(swept.len(), 3, "{cell:?}: each session is one sweep's: {reports:?}");
        for host in &mut hosts {
            let id = host.id();
            let own = swept.iter().find(|swept| swept.session.to_string() == id).expect("swept");
            assert_swept(host, own);
        }
    }
}

#[test]
fn a_live_session_is_never_swept() {
    for cell in cells() {
        let mut host = Plan::new(cell, Ending::End).misbehave(STUBBORN).start();
        let mut dead = abandoned(cell, Some(&host.runtime()));
        let before = host.mark.alive().len();
        let report = sweep_report(cell.0, &host.runtime());
        assert_eq!(report.sessions.len(), 1, "{cell:?}: the dead one: {report:?}");
        assert_eq!(report.sessions[0].session.to_string(), dead.id());
        assert_eq!(host.mark.alive().len(), before, "{cell:?}");
        host.bring_end();
        assert_nothing_left(&mut host);
        assert_nothing_left(&mut dead);
    }
}

/// The owner is dead, but the guardians have the session in hand: it is theirs to end.
#[test]
fn a_session_that_is_being_ended_is_left_to_its_guardians() {
    for cell in cells() {
        let patient = ["--grace", "600000"];
        let plan = Plan::new(cell, Ending::HostKilled).options(patient);
        let mut host = plan.misbehave(["--ignore-eof", "--tree", "3"]).start();
        host.bring_end();
        host.exit();
        let report = sweep_report(cell.0, &host.runtime());
        assert_eq!(report, SweepReport::default(), "{cell:?}");
        assert_eq!(
            host.mark.alive().len(),
            2 + 4,
            "{cell:?}: two guardians, and the tree in its time of grace"
        );
        assert_eq!(records(&host.runtime()).len(), 1);
        host.mark.end_all().expect("all of it");
        sweep_report(cell.0, &host.runtime());
        assert_nothing_left(&mut host);
    }
}

/// Both guardians are dead and the owner is stopped: it cleans up itself when it goes on.
#[test]
fn a_session_whose_owner_lives_is_left_to_its_owner() {
    for cell in cells() {
        let mut host = Plan::new(cell, Ending::OuterKilled).misbehave(STUBBORN).start();
        let who = host.who();
        assert!(send(&who.host, Signal::STOP));
        wait_until_stopped(who.host);
        host.kill_both_guardians();
        let report = sweep_report(cell.0, &host.runtime());
        assert_eq!(report, SweepReport::default(), "{cell:?}");
        assert_eq!(records(&host.runtime()).len(), 1, "{cell:?}");
        host.go();
        assert!(send(&who.host, Signal::CONT));
        let report = host.report().expect("a report");
        assert_eq!((report.reason, &report.survivors[..]), (EndReason::GuardiansDied, &[][..]), "{cell:?}");
        assert_nothing_left(&mut host);
    }
}

/// Killed while its server is still starting others: all the same to a sweep.
#[test]
fn a_session_is_swept_while_its_tree_still_grows() {
    for cell in cells().into_iter().filter(|cell| matches!(cell.1, Hold::Loop | Hold::Cgroup)) {
        let folder = Scratch::for_user(cell.0);
        for _ in 0..3 {
            let mut host = Plan::new(cell, Ending::HostKilled)
                .runtime(folder.join("run"))
                .misbehave(["--tree", "30", "--daemon", "--clean-daemon"])
                .without_ready_file()
                .start();
            host.kill_all_of_ours();
            host.exit();
            sweep_report(cell.0, &folder.join("run"));
            assert_nothing_left(&mut host);
        }
        assert_eq!(names(&folder.join("run")), [] as [PathBuf; 0], "{cell:?}");
    }
}

/// A lineage that replaces itself all the time is seen by few looks. A sweep need not win; it must not say that it has.
#[test]
fn a_storm_is_swept_or_stays_on_record() {
    for cell in cells().into_iter().filter(|cell| cell.1 != Hold::Strict) {
        for round in 0..3 {
            let storm = ["--storm", "2", "--ignore-term", "--ignore-eof"];
            let mut host = Plan::new(cell, Ending::HostKilled).misbehave(storm).start();
            host.kill_all_of_ours();
            host.exit();
            let report = sweep_report(cell.0, &host.runtime());
            let [swept] = &report.sessions[..] else { panic!("{cell:?}: {report:?}") };
            let left = host.mark.wait_until_none(Duration::from_secs(2));
            let is_honest = !swept.survivors.is_empty() && !records(&host.runtime()).is_empty();
            assert!(left.is_ok() || is_honest, "{cell:?} {round}: {left:?} {report:?}");
            host.mark.end_all().expect("all of it");
            sweep_report(cell.0, &host.runtime());
            assert_nothing_left(&mut host);
        }
    }
}

/// From there nobody of the session can be seen, dead or alive: could not look is not nothing found.
#[test]
fn a_sweep_in_another_pid_namespace_forgets_nothing_needs_unshare() {
    for cell in cells().into_iter().filter(|cell| cell.1 == Hold::Loop) {
        let mut host = abandoned(cell, None);
        let part = Part::new("swept::part_that_sweeps", cell.0);
        let how = if cell.0 == User::Root { "-pf" } else { "-Ucpf" };
        let argv = [vec![how.to_owned(), "--mount-proc".into()], part.argv()].concat();
        let mut command = part.set(part.wrap().command("unshare", argv));
        let swept = command.env("MOORED_RUNTIME_DIR", host.runtime()).output().expect("unshare");
        assert!(swept.status.success(), "{swept:?}");
        assert_eq!(records(&host.runtime()).len(), 1, "{cell:?}: somebody who can see them needs it");
        assert!(!host.scratch.join("on_end").exists(), "{cell:?}: the tree is not gone");
        let report = sweep_report(cell.0, &host.runtime());
        let [swept] = &report.sessions[..] else { panic!("{cell:?}: {report:?}") };
        assert_swept(&mut host, swept);
    }
}
