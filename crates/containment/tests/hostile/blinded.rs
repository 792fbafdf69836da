//! A guardian that cannot open a file can still tell its children by number, and ends them.

use std::process::Stdio;
use std::time::Duration;

use moored_containment::EndReport;
use moored_testkit::{MarkGuard, Scratch, User, example};

use crate::common::DEADLINE;
use crate::common::ending::Ending;
use crate::common::hold::{Hold, cells};
use crate::common::host::Plan;
use crate::common::traces::assert_nothing_left;

#[test]
fn guardians_that_may_open_no_file_end_the_tree_all_the_same_needs_prlimit() {
    for cell in cells().into_iter().filter(|cell| matches!(cell.1, Hold::Loop | Hold::Cgroup)) {
        for ending in [Ending::End, Ending::Exit, Ending::HostKilled] {
            let script = r#"outer="$(sed 's/.*) . //; s/ .*//' /proc/$PPID/stat)"
                prlimit --pid "$outer" --nofile=0 && prlimit --pid "$PPID" --nofile=0 && touch "$1/blind"
                for i in 1 2 3; do setsid sh -c "trap '' TERM; sleep 600; :" & done; touch "$1/ready"; exec cat"#;
            let mut host = Plan::new(cell, ending).script(script).start();
            assert!(host.scratch.join("blind").exists(), "{cell:?}: prlimit");
            host.bring_end();
            if let Some(report) = host.report() {
                assert!(report.verified && report.survivors.is_empty(), "{cell:?}: {report:?}");
                assert!(report.took < Duration::from_secs(8), "{cell:?}: {report:?}");
            }
            assert_nothing_left(&mut host);
        }
    }
}

#[test]
fn a_tree_is_ended_though_its_server_hides_proc_needs_unshare() {
    if User::current() != User::Root {
        return;
    }
    let (mark, scratch) = (MarkGuard::fresh(), Scratch::for_user(User::Root));
    let contain = example("moored-containment", "contain");
    let mut command = mark.wrapping().command("unshare", ["-m"]);
    command.arg(contain).args(["--no-cgroup", "--kill-after", "300ms", "--", "sh", "-c"]);
    command.arg(
        "for i in 1 2; do setsid sh -c \"trap '' TERM; sleep 600; :\" & done; mount -t tmpfs none /proc",
    );
    command.env("MOORED_RUNTIME_DIR", scratch.join("run")).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.output().expect("unshare");
    mark.wait_until_none(DEADLINE).expect("nobody is left");
    let report: EndReport =
        serde_json::from_slice(&output.stderr).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    assert!(report.verified && report.survivors.is_empty(), "{report:?}");
}
