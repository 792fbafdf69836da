//! Debuggers. Whoever traces a process can stop it for good, and keeps its dead body from its parent.

use std::fs;
use std::thread;

use moored_containment::EndReason;

use crate::common::ending::Ending;
use crate::common::hold::{Cell, Hold, cells_with};
use crate::common::host::{Host, Plan};
use crate::common::traces::assert_nothing_left;

/// A server whose daemon stops the inner guardian by ptrace, and neither waits for it nor lets it go.
const TRACER: &str = r#"use POSIX; my $inner = getppid;
    if (!fork) { POSIX::setsid(); exit if fork; $SIG{TERM} = "IGNORE";
        syscall(101, 0x4206, $inner, 0, 0); syscall(101, 0x4207, $inner, 0, 0);
        open my $f, ">", "$ARGV[0]/ready"; close $f; sleep 600; exit }
    sleep 600"#;

/// At once: each waits for seconds on end.
fn in_each_cell(test: impl Fn(Cell) + Sync) {
    thread::scope(|cells| {
        for cell in cells_with(Hold::Loop) {
            let test = &test;
            cells.spawn(move || test(cell));
        }
    });
}

fn traced(cell: Cell, ending: Ending) -> Host {
    let plan = Plan::new(cell, ending);
    fs::write(plan.scratch().join("tracer.pl"), TRACER).expect("a script");
    plan.script(r#"exec perl "$1/tracer.pl" "$1""#).start()
}

/// The outer guardian's patience with the inner one is counted from the owner's death, once.
#[test]
fn a_traced_guardian_does_not_outlive_its_owner_needs_perl() {
    in_each_cell(|cell| {
        let mut host = traced(cell, Ending::HostKilled);
        host.bring_end();
        assert_nothing_left(&mut host);
    });
}

/// The tracer keeps the killed guardian's body; the other guardian goes on all the same.
#[test]
fn a_traced_guardian_does_not_keep_an_owner_from_ending_its_session_needs_perl() {
    in_each_cell(|cell| {
        let mut host = traced(cell, Ending::End);
        host.bring_end();
        let report = host.report().expect("a report");
        assert!(report.verified && report.survivors.is_empty(), "{cell:?}: {report:?}");
        assert!(
            matches!(report.reason, EndReason::Requested | EndReason::GuardianDied),
            "{cell:?}: {report:?}"
        );
        assert_nothing_left(&mut host);
    });
}
