//! Every exit code, and what is said with it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use moored_containment::{EndReason, EndReport, Findable, ServerExit, StrengthLevel};
use moored_testkit::{User, bin};
use serde_json::Value;

use crate::common::hold::Hold;
use crate::{Contain, one_cell, report};

#[test]
fn the_code_is_the_commands_own() {
    for contain in Contain::all() {
        for code in [0, 1, 3, 125, 126, 127, 255] {
            let ran = contain.run(["sh".to_owned(), "-c".into(), format!("exit {code}")]);
            assert_eq!(ran.status.code(), Some(code), "{ran:?}");
            let report = report(&ran);
            assert_eq!(
                (report.reason, report.status),
                (EndReason::ServerExited, Some(ServerExit::Code(code)))
            );
            assert!(report.verified);
        }
    }
}

#[test]
fn death_by_a_signal_is_128_and_its_number() {
    for contain in Contain::all() {
        for signal in [1, 2, 6, 9, 11, 13, 15] {
            let ran =
                contain.run([bin("misbehave").display().to_string(), "--die-by".into(), signal.to_string()]);
            assert_eq!(ran.status.code(), Some(128 + signal), "{:?}: {ran:?}", contain.cell);
            assert_eq!(report(&ran).status, Some(ServerExit::Signal(signal)));
        }
    }
}

#[test]
fn what_cannot_be_started_is_127_or_126_and_named() {
    for contain in Contain::all() {
        let file = contain.part.scratch.join("plain-file");
        fs::write(&file, "x").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("ours");
        let file = file.display().to_string();
        for (program, code) in [("/no/such/program", 127), (&*file, 126), ("/etc", 126)] {
            let ran = contain.run([program]);
            let words = String::from_utf8_lossy(&ran.stderr);
            assert_eq!(ran.status.code(), Some(code), "{words}");
            assert!(words.starts_with("contain: failed to") && words.contains(program), "{words}");
            assert_eq!(words.lines().count(), 1, "{words}");
            assert!(ran.stdout.is_empty());
        }
    }
}

#[test]
fn what_cannot_be_contained_is_125() {
    for user in User::available() {
        let contain = Contain::new(one_cell(user)).options(["--strict", "--keep", "tmux"]);
        let ran = contain.run(["true"]);
        assert_eq!(ran.status.code(), Some(125));
        assert!(String::from_utf8_lossy(&ran.stderr).contains("nothing can be kept"), "{ran:?}");
        if user == User::Root {
            let ran = Contain::new(one_cell(user)).options(["--sealed"]).run(["true"]);
            assert_eq!(ran.status.code(), Some(125));
            assert!(String::from_utf8_lossy(&ran.stderr).contains("landlock"), "{ran:?}");
        }
    }
}

#[test]
fn a_command_line_that_makes_no_sense_is_2() {
    let contain = Contain::new(one_cell(User::current()));
    let lines: [&[&str]; 7] = [
        &[],
        &["true"],
        &["--"],
        &["--no-such-option", "--", "true"],
        &["--keep", "--", "true"],
        &["--grace", "soon", "--", "true"],
        &["--kill-after", "-1s", "--", "true"],
    ];
    for line in lines {
        let program = moored_testkit::example("moored-containment", "contain");
        let mut command = contain.part.set(contain.part.wrap().command(program, line));
        let ran = command.stdin(Stdio::null()).output().expect("contain");
        assert_eq!(ran.status.code(), Some(2), "{line:?}: {ran:?}");
        let words = String::from_utf8_lossy(&ran.stderr);
        assert!(words.starts_with("contain: ") && words.contains("hint: usage: contain"), "{words}");
    }
}

/// What other programs read: the names are part of the promise.
#[test]
fn the_report_is_one_line_of_json_with_all_its_fields() {
    for contain in Contain::all() {
        let hold = contain.cell.1;
        let ran = contain.run(["sh", "-c", "exit 3"]);
        let fields: Value = serde_json::from_slice(&ran.stderr).expect("JSON");
        assert_eq!(fields["reason"], "server-exited");
        assert_eq!(fields["status"], serde_json::json!({ "code": 3 }));
        assert!(
            fields["steps"].as_array().is_some_and(|steps| steps.iter().all(|s| s["took_ms"].is_number()))
        );
        assert!(["eof", "term", "kill"].iter().all(|by| fields["ended"][by].is_u64()), "{fields}");
        for list in ["kept", "survivors"] {
            assert_eq!(fields[list], serde_json::json!([]), "{list}");
        }
        let (strength, layers) = match hold {
            Hold::Loop => ("loop", vec!["guardian"]),
            Hold::Cgroup => ("kernel", vec!["guardian", "cgroup"]),
            Hold::Sealed => ("kernel", vec!["guardian", "landlock"]),
            Hold::Strict => ("kernel", vec!["guardian", "pidns"]),
        };
        assert_eq!(fields["strength"], strength, "{fields}");
        assert_eq!(fields["layers"], serde_json::json!(layers), "{fields}");
        assert_eq!(fields["findable"], "by-cookie");
        assert_eq!(fields["verified"], true);
        assert!(fields["took_ms"].as_f64().is_some_and(|took| (0.0..10_000.0).contains(&took)), "{fields}");

        let report = report(&ran);
        assert_eq!(report.session.to_string(), fields["session"]);
        assert_eq!(report.strength.level == StrengthLevel::Loop, hold == Hold::Loop);
        assert_eq!(report.strength.findable, Findable::ByCookie);
        let again = serde_json::to_string(&report).expect("JSON");
        assert_eq!(serde_json::from_str::<EndReport>(&again).expect("a report"), report);
    }
}
