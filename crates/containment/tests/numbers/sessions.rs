//! One host with very many sessions: nothing of them stays in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;

use moored_containment::{Command, Contained, EndReport, Stdio};
use moored_testkit::wait_until;
use rustix::process::Signal;

use crate::common::belongings::Belongings;
use crate::common::hold::{Hold, cells};
use crate::common::part::{Part, hold, stage};
use crate::common::{DEADLINE, send, short};

fn resident_kilobytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn server(stage: &Path) -> Command {
    let mut command = Command::new(stage.join("misbehave"));
    command.stdin(Stdio::Pipe).stdout(Stdio::Pipe).stderr(Stdio::Null).ladder(short());
    hold().apply(&mut command);
    command
}

fn check(report: &EndReport) {
    assert!(report.verified && report.survivors.is_empty(), "{report:?}");
}

/// Ends it in one of many ways.
fn end(mut server: Contained, way: usize) {
    match way % 6 {
        0 => check(&server.end(short()).expect("a report")),
        1 => check(&server.end(moored_containment::Ladder::kill()).expect("a report")),
        2 => drop(server),
        3 => {
            server.stdin = None;
            check(&server.wait_ended().expect("a report"));
        }
        n => {
            // One that is gone already has been noticed.
            send(&server.guardians()[n - 4], Signal::KILL);
            check(&server.wait_ended().expect("a report"));
        }
    }
}

#[test]
fn heavy_a_thousand_sessions_leave_nothing_in_their_host() {
    for cell in cells() {
        let part = Part::of("sessions::part_with_a_thousand_sessions", cell);
        part.play();
        assert_clean(&part);
    }
}

#[test]
fn heavy_two_hundred_sessions_at_once_leave_nothing_in_their_host() {
    for cell in cells() {
        let part = Part::of("sessions::part_with_two_hundred_sessions_at_once", cell);
        part.play();
        assert_clean(&part);
    }
}

fn assert_clean(part: &Part) {
    // Not the zombies: an inner guardian whose outer one was killed is init's to collect, and some take their time.
    assert_eq!(part.mark.alive(), []);
    let leaves = part.group.as_ref().map(|group| group.leaves()).unwrap_or_default();
    assert_eq!(leaves, [] as [PathBuf; 0]);
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_with_a_thousand_sessions() {
    let Some(stage) = stage() else { return };
    // The loop has them all; what the other holds add to a session shows in fewer.
    let sessions = if hold() == Hold::Loop { 1000 } else { 300 };
    let mut before = None;
    for n in 0..sessions {
        end(server(&stage).spawn().expect("a server"), n);
        if n == 99 {
            // What is there once and for all is there by now.
            before = Some((Belongings::now(), resident_kilobytes()));
        }
    }
    let (belongings, resident) = before.expect("a hundred sessions");
    assert_eq!(Belongings::now(), belongings);
    belongings.assert_nothing_of_sessions();
    let grown = resident_kilobytes().saturating_sub(resident);
    assert!(grown < 1024, "{grown} kB more after {sessions} sessions");
}

#[test]
#[ignore = "a part that another test plays in a process of its own"]
fn part_with_two_hundred_sessions_at_once() {
    const SESSIONS: usize = 200;
    let Some(stage) = stage() else { return };
    end(server(&stage).spawn().expect("a server"), 0);
    let before = Belongings::now();
    let all_up = Barrier::new(SESSIONS);
    std::thread::scope(|scope| {
        for n in 0..SESSIONS {
            let (stage, all_up) = (&stage, &all_up);
            scope.spawn(move || {
                let ready = stage.join(format!("ready-{n}"));
                let mut tree = server(stage);
                tree.args(["--tree", "2", "--daemon", "--ready-file"]).arg(&ready);
                let server = tree.spawn().expect("a server");
                wait_until("a ready server", DEADLINE, || ready.exists().then_some(()));
                all_up.wait();
                end(server, n);
            });
        }
    });
    // A thread is joined before the kernel has forgotten it.
    wait_until("the same belongings", DEADLINE, || {
        (Belongings::now().threads == before.threads).then_some(())
    });
    assert_eq!(Belongings::now(), before);
}
