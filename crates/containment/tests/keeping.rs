//! What is meant to live on lives on, with all below it, however the session ends; everything else goes.

#![expect(clippy::disallowed_methods, reason = "hosts under a mark, which ends what is left of them")]

#[allow(dead_code, reason = "each target uses its part of it")]
mod common;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use common::ending::Ending;
use common::hold::{Cell, Hold, cells, cells_with};
use common::host::{Host, Plan};
use common::traces::{assert_nothing_left, names, records, sweep_as, values};
use common::{DEADLINE, send};
use moored_containment::{Command, Layer, ProcessIdentity, Proof, StartError, Use};
use moored_testkit::{read_pids, wait_until};
use rustix::process::Signal;

/// The program that is kept.
const KEPT: &str = "kept-browser";

/// Everything but the kept ones takes SIGKILL to be gone …
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
/// … or goes when it is asked to.
const POLITE: [&str; 4] = ["--tree", "5", "--own-session-child", "--own-group"];

fn keeping_host(cell: Cell, ending: Ending, switches: &[&str]) -> Host {
    let plan = Plan::new(cell, ending).options(["--keep", KEPT]);
    let folder = plan.scratch().path().to_path_buf();
    let mut switches: Vec<_> = switches.iter().map(Into::into).collect();
    switches.extend(["--keep-alive-child".into(), KEPT.into(), "--keep-dir".into(), folder.into_os_string()]);
    plan.misbehave(switches).start()
}

fn identities(pids: &Path, count: usize) -> Vec<ProcessIdentity> {
    let pids =
        wait_until("those to be kept", DEADLINE, || Some(read_pids(pids)).filter(|p| p.len() == count));
    pids.into_iter().map(|pid| ProcessIdentity::of(pid).expect("it lives")).collect()
}

/// Waits until exactly these are left of all that was started.
#[track_caller]
fn wait_until_only(host: &Host, kept: &[ProcessIdentity]) {
    let what = (host.cell, host.ending);
    let expected: BTreeSet<_> = kept.iter().map(|kept| (kept.pid, kept.start_ticks)).collect();
    let began = Instant::now();
    loop {
        let left = host.mark.alive();
        let alive: BTreeSet<_> = left.iter().map(|s| (s.pid, s.start_ticks)).collect();
        assert!(alive.is_superset(&expected), "{what:?}: a kept one is gone: {left:?}");
        if alive == expected {
            return;
        }
        assert!(began.elapsed() < DEADLINE, "{what:?}: more are left than are kept: {left:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// From the beginning of the end to the moment at which the record is forgotten.
fn end_and_look(mut host: Host, kept: &[ProcessIdentity]) {
    let what = format!("{:?} {:?}", host.cell, host.ending);
    host.bring_end();
    wait_until_only(&host, kept);
    host.exit();

    if let Some(report) = host.report() {
        let told: BTreeSet<_> = report.kept.iter().copied().collect();
        assert_eq!(told, kept.iter().copied().collect(), "{what}");
        assert_eq!(report.survivors, [], "{what}");
        assert!(report.verified && report.proof.contains(&Proof::OnlyKeptLeft), "{what}: {report:?}");
    }
    let [record] = &records(&host.runtime())[..] else { panic!("{what}: {:?}", names(&host.runtime())) };
    let written: BTreeSet<_> = values(record, "kept").into_iter().collect();
    let lines = kept.iter().map(|kept| format!("{} {}", kept.pid, kept.start_ticks));
    assert_eq!(written, lines.collect(), "{what}");
    assert_eq!(values(record, "ended").len(), 1, "{what}");
    if let Some(group) = &host.group {
        assert!(group.leaves().is_empty(), "{what}: the leaf is removed");
        let outside: BTreeSet<_> = group.members().into_iter().collect();
        assert_eq!(outside, kept.iter().map(|kept| kept.pid).collect(), "{what}: around the leaf");
    }

    let swept = sweep_as(host.user(), &host.runtime());
    assert!(!String::from_utf8_lossy(&swept.stderr).contains("swept"), "{what}: {swept:?}");
    wait_until_only(&host, kept);
    assert!(record.exists(), "{what}: still needed");

    // The parent first: the record is needed for as long as anybody is left.
    for (i, one) in kept.iter().enumerate() {
        assert!(send(one, Signal::KILL), "{what}");
        wait_until("it is gone", DEADLINE, || (!one.is_alive().expect("/proc")).then_some(()));
        sweep_as(host.user(), &host.runtime());
        assert_eq!(
            record.exists(),
            i + 1 < kept.len(),
            "{what}: forgotten with the last kept one, not before"
        );
    }
    assert_nothing_left(&mut host);
}

fn every_ending_spares_what_is_kept(hold: Hold, switches: &[&str]) {
    for cell in cells_with(hold) {
        for ending in Ending::ALL {
            let host = keeping_host(cell, ending, switches);
            let kept = identities(&host.scratch.join(format!("{KEPT}.pids")), 2);
            end_and_look(host, &kept);
        }
    }
}

#[test]
fn every_ending_of_a_stubborn_tree_in_the_loop_spares_what_is_kept() {
    every_ending_spares_what_is_kept(Hold::Loop, &STUBBORN);
}

#[test]
fn every_ending_of_a_polite_tree_in_the_loop_spares_what_is_kept() {
    every_ending_spares_what_is_kept(Hold::Loop, &POLITE);
}

#[test]
fn every_ending_of_a_stubborn_tree_in_a_leaf_spares_what_is_kept() {
    every_ending_spares_what_is_kept(Hold::Cgroup, &STUBBORN);
}

#[test]
fn every_ending_of_a_polite_tree_in_a_leaf_spares_what_is_kept() {
    every_ending_spares_what_is_kept(Hold::Cgroup, &POLITE);
}

/// All three of ours are killed at once, so nobody could write down who was kept: the rules must be on record.
#[test]
fn a_sweep_spares_what_the_dead_session_meant_to_keep() {
    for cell in cells().into_iter().filter(|cell| cell.1.can_keep()) {
        let mut host = keeping_host(cell, Ending::HostKilled, &STUBBORN);
        let kept = identities(&host.scratch.join(format!("{KEPT}.pids")), 2);
        host.kill_all_of_ours();
        host.exit();
        for _ in 0..2 {
            sweep_as(host.user(), &host.runtime());
            wait_until_only(&host, &kept);
        }
        kept.iter().for_each(|kept| assert!(send(kept, Signal::KILL)));
        host.mark.wait_until_none(DEADLINE).expect("nobody");
        sweep_as(host.user(), &host.runtime());
        assert_nothing_left(&mut host);
    }
}

/// Both guardians are killed at once, and the owner does by itself what they would have done.
#[test]
fn an_owner_without_guardians_spares_what_is_kept() {
    for cell in cells().into_iter().filter(|cell| cell.1.can_keep()) {
        let mut host = keeping_host(cell, Ending::OuterKilled, &STUBBORN);
        let kept = identities(&host.scratch.join(format!("{KEPT}.pids")), 2);
        host.kill_both_guardians();
        host.go();
        host.exit();
        wait_until_only(&host, &kept);
        let report = host.report().expect("a report");
        let told: BTreeSet<_> = report.kept.iter().copied().collect();
        assert_eq!(told, kept.iter().copied().collect(), "{cell:?}: {report:?}");
    }
}

/// To the kernel such a script is `/bin/sh`, as xdg-open is; its children are whatever it opens.
#[test]
fn a_script_is_kept_by_its_own_name_with_what_it_started() {
    for cell in cells().into_iter().filter(|cell| cell.1.can_keep()) {
        for ending in [Ending::End, Ending::Kill, Ending::Drop, Ending::HostKilled, Ending::InnerKilled] {
            let plan = Plan::new(cell, ending).options(["--keep", "xdg-open"]);
            let opener = plan.scratch().join("xdg-open");
            let body = "#!/bin/sh\necho $$ >>\"$1\"; sleep 1000 & echo $! >>\"$1\"; wait\n";
            fs::write(&opener, body).expect("a script");
            fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).expect("ours");
            let host = plan
                .script(
                    r#"setsid "$1/xdg-open" "$1/kept.pids" </dev/null &
                    sleep 2000 & setsid sleep 2000 &
                    while test "$(wc -l <"$1/kept.pids" || echo 0)" -lt 2; do sleep 0.01; done 2>/dev/null
                    touch "$1/ready"; cat; exec sleep 2000"#,
                )
                .start();
            let kept = identities(&host.scratch.join("kept.pids"), 2);
            end_and_look(host, &kept);
        }
    }
}

#[test]
fn a_path_keeps_that_program_only() {
    for cell in cells_with(Hold::Loop) {
        for (rule, is_kept) in [("/nowhere/kept-browser", false), ("kept", false), ("KEPT-BROWSER", false)] {
            let plan = Plan::new(cell, Ending::End).options(["--keep", rule]);
            let folder = plan.scratch().path().display().to_string();
            let mut host = plan.misbehave(["--keep-alive-child", KEPT, "--keep-dir", &folder]).start();
            host.bring_end();
            assert!(!is_kept);
            assert_nothing_left(&mut host);
        }
        let plan = Plan::new(cell, Ending::End);
        let folder = plan.scratch().path().display().to_string();
        let host = plan
            .options(["--keep".to_owned(), format!("{folder}/{KEPT}")])
            .misbehave(["--keep-alive-child", KEPT, "--keep-dir", &folder])
            .start();
        let kept = identities(&host.scratch.join(format!("{KEPT}.pids")), 2);
        end_and_look(host, &kept);
    }
}

#[test]
fn sealed_and_strict_refuse_to_keep() {
    for layer in [Layer::Landlock, Layer::Pidns] {
        let mut command = Command::new("true");
        let refused = command.layer(layer, Use::Required).keep("tmux").spawn().expect_err("it cannot spare");
        let is_ours = matches!(&refused, StartError::KeepImpossible { layer: l, .. } if *l == layer);
        assert!(is_ours, "{refused:?}");
        assert_eq!(refused.exit_code(), 125);
        assert!(refused.to_string().contains(&layer.to_string()), "{refused}");
    }
}

#[test]
fn a_layer_that_cannot_spare_is_left_out_if_it_is_only_wanted() {
    for layer in [Layer::Landlock, Layer::Pidns] {
        let mut command = Command::new("true");
        command.layer(layer, Use::IfAvailable).keep("tmux").recording(moored_containment::Recording::Off);
        let mut server = command.spawn().expect("weaker, but started");
        assert!(!server.strength().has(layer), "and it says so");
        server.wait_ended().expect("a report");
    }
}
