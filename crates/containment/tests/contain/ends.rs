//! Everything that ends it, and how long it waits.

use std::process::Output;
use std::time::Duration;

use moored_containment::{EndReason, ServerExit, StepName};
use moored_testkit::User;
use rustix::process::Signal;

use crate::{Contain, one_cell, report};

const TREE: [&str; 4] = ["--tree", "5", "--own-session-child", "--own-group"];
const DEAF: [&str; 3] = ["--ignore-eof", "--tree", "3"];
const STUBBORN: [&str; 7] =
    ["--ignore-eof", "--ignore-term", "--tree", "3", "--tree-ignores-term", "--daemon", "--clean-daemon"];

fn steps(output: &Output) -> Vec<StepName> {
    let of_ladder = |name: &StepName| matches!(name, StepName::Close | StepName::Terminate | StepName::Kill);
    report(output).steps.into_iter().map(|step| step.name).filter(of_ladder).collect()
}

#[test]
fn the_end_of_stdin_ends_it() {
    for contain in Contain::all() {
        let mut running = contain.serving(&TREE);
        running.close_stdin();
        let (output, _) = running.end();
        // The command saw the end too, and may have been quicker.
        let report = report(&output);
        assert!(matches!(report.reason, EndReason::Requested | EndReason::ServerExited), "{report:?}");
        assert_eq!((output.status.code(), report.status), (Some(0), Some(ServerExit::Code(0))));
        assert!(report.verified);
    }
}

#[test]
fn each_polite_signal_ends_it() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        for contain in Contain::all() {
            let mut running = contain.serving(&DEAF);
            running.send(signal);
            let (output, took) = running.end();
            let report = report(&output);
            assert_eq!(report.reason, EndReason::Requested, "{signal:?}");
            assert_eq!(report.status, Some(ServerExit::Signal(15)), "{signal:?}: {report:?}");
            assert_eq!((output.status.code(), report.verified), (Some(128 + 15), true));
            assert_eq!(steps(&output), [StepName::Terminate], "{signal:?}");
            assert!(took < Duration::from_secs(2), "no grace for one who was told to go: {took:?}");
        }
    }
}

#[test]
fn the_commands_own_end_ends_the_rest() {
    for contain in Contain::all() {
        let running = contain
            .options(["--kill-after", "200ms"])
            .serving(&[&STUBBORN[..], &["--exit-now", "3"]].concat());
        let (output, _) = running.end();
        let report = report(&output);
        assert_eq!((report.reason, output.status.code()), (EndReason::ServerExited, Some(3)));
        assert!(report.verified && report.survivors.is_empty(), "{report:?}");
        assert_eq!(steps(&output), [StepName::Terminate, StepName::Kill]);
    }
}

#[test]
fn a_sigkill_ends_the_tree_too() {
    for contain in Contain::all() {
        let mut running = contain.options(["--grace", "100ms", "--kill-after", "200ms"]).serving(&STUBBORN);
        running.send(Signal::KILL);
        let (output, _) = running.end();
        assert_eq!(output.stderr, b"", "nobody is left to report");
    }
}

#[test]
fn grace_and_kill_after_are_kept() {
    for contain in Contain::all() {
        let mut running = contain.options(["--grace", "300ms", "--kill-after", "400ms"]).serving(&STUBBORN);
        running.close_stdin();
        let (output, took) = running.end();
        assert_eq!(steps(&output), [StepName::Close, StepName::Terminate, StepName::Kill]);
        let report = report(&output);
        let lasted =
            |name| report.steps.iter().find(|step| step.name == name).expect("taken").took.as_millis();
        assert!((300..1300).contains(&lasted(StepName::Close)), "{report:?}");
        assert!((400..1400).contains(&lasted(StepName::Terminate)), "{report:?}");
        assert!(took >= Duration::from_millis(700) && took < Duration::from_secs(5), "{took:?}");
        assert_eq!(output.status.code(), Some(128 + 9));
        assert!(report.ended.kill > 0 && report.verified, "{report:?}");
    }
}

#[test]
fn no_patience_at_all_is_a_patience_too() {
    for contain in Contain::all() {
        let mut running = contain.options(["--grace", "0", "--kill-after", "0ms"]).serving(&STUBBORN);
        running.close_stdin();
        let (output, took) = running.end();
        assert!(report(&output).verified);
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
}

/// As impatient people do it: ^C, and ^C again.
#[test]
fn a_second_signal_takes_it_further() {
    for user in User::available() {
        let contain = Contain::new(one_cell(user)).options(["--grace", "10m", "--kill-after", "10m"]);
        let mut running = contain.serving(&STUBBORN);
        running.close_stdin();
        running.send(Signal::INT);
        running.send(Signal::INT);
        // A signal that comes while the last one is taken in is the same signal.
        moored_testkit::wait_until("contain has ended", crate::common::DEADLINE, || {
            let ended = running.child.try_wait().expect("our child").is_some();
            if !ended {
                running.send_if_alive(Signal::INT);
            }
            ended.then_some(())
        });
        let (output, _) = running.end();
        assert_eq!(steps(&output).last(), Some(&StepName::Kill));
        assert!(report(&output).verified);
    }
}
