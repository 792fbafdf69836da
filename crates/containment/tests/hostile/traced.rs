//! Debuggers. Whoever traces a process can stop it for good, and keeps its dead body from its parent.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use moored_containment::{EndReason, Proof, ServerExit};
use moored_testkit::MarkGuard;

use crate::common::DEADLINE;
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

/// A bystander's debugger keeps the dead server: it is dead all the same, and `/proc` tells of what.
#[test]
fn a_server_whose_body_is_held_by_a_debugger_is_gone_needs_perl() {
    in_each_cell(|cell| {
        let host = Plan::new(cell, Ending::Terminate).script(r#"touch "$1/ready"; exec sleep 600"#).start();
        let seize = "syscall(101, 0x4206, $ARGV[0] + 0, 0, 0) == 0 or die; $| = 1; print 1; sleep 600";
        let debugger = MarkGuard::fresh();
        let mut perl = debugger.wrapping().user(cell.0).command("perl", ["-e", seize]);
        let mut perl = perl.arg(host.who().server.to_string()).stdout(Stdio::piped()).spawn().expect("perl");
        let mut said = [0];
        perl.stdout.take().expect("a pipe").read_exact(&mut said).expect("it holds the server");
        host.bring_end();
        let report = host.report().expect("a report");
        assert!(report.verified && report.survivors.is_empty(), "{cell:?}: {report:?}");
        assert_eq!(report.proof, [Proof::OnlyDeadLeft], "{cell:?}: {report:?}");
        // SIGTERM it does not even get: its debugger is asked first, and does not answer.
        assert_eq!(report.status, Some(ServerExit::Signal(9)), "{cell:?}: {report:?}");
        assert!(report.took < Duration::from_secs(2), "{cell:?}: {report:?}");
        perl.kill().and_then(|()| perl.wait()).expect("our child");
        debugger.wait_until_none(DEADLINE).expect("it is dead");
    });
}

/// The tracer is the server's own child, and keeps the body of the server: no SIGCHLD tells the guardian that it has exited.
#[test]
fn a_server_that_exits_while_its_own_child_traces_it_ends_its_session_needs_perl() {
    const TRACED: &str = r#"my $server = $$; $SIG{TERM} = "IGNORE"; syscall(157, 0x59616d61, -1, 0, 0, 0);
        if (!fork) { syscall(101, 0x4206, $server, 0, 0) == 0 or die;
            open my $f, ">", "$ARGV[0]/ready"; close $f; sleep 600; exit }
        1 while sysread STDIN, my $read, 100; exit 3"#;
    in_each_cell(|cell| {
        let plan = Plan::new(cell, Ending::InputCloses);
        fs::write(plan.scratch().join("traced.pl"), TRACED).expect("a script");
        let mut host = plan.script(r#"exec perl "$1/traced.pl" "$1""#).start();
        host.bring_end();
        let report = host.report().expect("a report");
        assert_eq!((report.reason, report.verified), (EndReason::ServerExited, true), "{cell:?}: {report:?}");
        assert_eq!(report.status, Some(ServerExit::Code(3)), "{cell:?}: {report:?}");
        assert_nothing_left(&mut host);
    });
}
