//! What containment cannot do, and says; and what it may cost.
#![expect(clippy::disallowed_methods, reason = "an owner to be tested is started without containment")]

#[allow(dead_code, reason = "each target uses its own part of it")]
mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::ending::Ending;
use common::hold::{Hold, cells, cells_with};
use common::host::{Host, Plan};
use common::traces::{assert_nothing_left, wait_until_stopped};
use common::{DEADLINE, send};
use moored_containment::{EndReason, ProcessIdentity, SurvivorReason};
use moored_testkit::{MarkGuard, Scratch, User, wait_until};
use rustix::process::Signal;

/// A copy of `setpriv` that belongs to root and is setuid: with it a plain user's child becomes somebody else for good.
const BECOME_ROOT: &str = "become-root";

fn make_become_root(plan: &Plan) {
    let path = plan.scratch().join(BECOME_ROOT);
    fs::copy("/usr/bin/setpriv", &path).expect("util-linux has it");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).expect("our own file");
}

#[test]
fn needs_setpriv_a_child_that_became_root_is_reported_as_a_survivor() {
    if User::current() != User::Root {
        return;
    }
    let plan = Plan::new((User::Plain, Hold::Loop), Ending::End);
    make_become_root(&plan);
    let plan = plan.script(
        "$1/become-root --reuid 0 --clear-groups sleep 600 & echo $! > $1/pids; touch $1/ready; exec cat",
    );
    let host = plan.start();
    let child = host.pids()[0];
    wait_until("the child is root's", DEADLINE, || is_roots_sleep(child).then_some(()));
    let child = ProcessIdentity::of(child).expect("it lives");
    host.bring_end();
    let report = host.report().expect("a report");
    assert!(!report.verified, "{report:?}");
    let reasons: Vec<_> = report.survivors.iter().map(|s| (s.process, s.reason)).collect();
    assert_eq!(reasons, [(child, SurvivorReason::NotPermitted)], "{report:?}");
    assert!(report.took < Duration::from_secs(5), "nobody waits for what is hopeless: {report:?}");
}

fn is_roots_sleep(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let has = |line: &str| status.lines().any(|l| l.split_whitespace().eq(line.split_whitespace()));
    has("Uid: 0 0 0 0") && has("Name: sleep")
}

#[test]
fn needs_setpriv_a_sealed_tree_cannot_become_root() {
    if User::current() != User::Root {
        return;
    }
    for cell in cells_with(Hold::Sealed) {
        let plan = Plan::new(cell, Ending::End);
        make_become_root(&plan);
        let script = "if $1/become-root --reuid 0 --clear-groups true; then touch $1/root; fi; touch $1/ready; exec cat";
        let host = plan.script(script).start();
        assert!(!host.scratch.join("root").exists(), "no_new_privs voids setuid");
        host.bring_end();
        assert!(host.report().expect("a report").verified);
    }
}

/// Private memory of a process, in kB.
fn private_kb(process: &ProcessIdentity) -> u64 {
    let read = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", process.pid));
    // Only root may look into a guardian; anybody may know how much it wrote.
    let rollup =
        read("smaps_rollup").or_else(|_| read("status").map(|text| text.replace("RssAnon:", "Private_:")));
    let rollup = rollup.expect("it lives");
    let of = |line: &str| line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok());
    rollup.lines().filter(|line| line.starts_with("Private_")).filter_map(of).sum()
}

#[test]
fn two_guardians_have_less_than_200_kb_of_private_memory() {
    for hold in Hold::ALL {
        for cell in cells_with(hold) {
            let host = Plan::new(cell, Ending::End).misbehave(["--tree", "20"]).start();
            let who = host.who();
            let private = private_kb(&who.outer) + private_kb(&who.inner);
            assert!(private <= 200, "{cell:?}: {private} kB");
            host.bring_end();
            assert!(host.report().expect("a report").verified);
        }
    }
}

fn stop(process: &ProcessIdentity) {
    assert!(send(process, Signal::STOP));
}

fn assert_ends(mut host: Host) {
    host.bring_end();
    host.exit();
    host.mark.wait_until_none(DEADLINE).unwrap_or_else(|left| panic!("{:?}: {left:?}", host.ending));
}

#[test]
fn a_stopped_inner_guardian_is_set_going_again() {
    for ending in [Ending::End, Ending::HostKilled] {
        let host =
            Plan::new((User::current(), Hold::Loop), ending).misbehave(["--daemon", "--ignore-eof"]).start();
        // Stopped is what it never stays, so there is no state to wait for.
        stop(&host.who().inner);
        assert_ends(host);
    }
}

#[test]
fn a_stopped_outer_guardian_does_not_keep_the_tree_alive() {
    for ending in [Ending::End, Ending::HostKilled] {
        let host =
            Plan::new((User::current(), Hold::Loop), ending).misbehave(["--daemon", "--ignore-eof"]).start();
        stop(&host.who().outer);
        wait_until_stopped(host.who().outer);
        assert_ends(host);
    }
}

#[test]
fn a_server_that_kills_its_guardian_dies_with_it_and_its_daemon_too() {
    let script = "setsid sleep 600 & touch $1/ready; until [ -e $1/go ]; do sleep 0.01; done; kill -9 $PPID; exec sleep 600";
    let mut host = Plan::new((User::current(), Hold::Loop), Ending::ServerExits).script(script).start();
    host.go();
    let report = host.report().expect("a report");
    assert_eq!((report.reason, report.verified), (EndReason::GuardianDied, true), "{report:?}");
    host.exit();
    host.mark.wait_until_none(DEADLINE).expect("nobody is left");
}

/// What is stated for an ending with two seconds after EOF and two after SIGTERM. These sessions have less of either.
const BOUND: Duration = Duration::from_secs(4);

/// Ends the session, and measures how long its owner, and all that is its own, take to be gone.
#[track_caller]
fn assert_ends_in_bound(mut host: Host) {
    let what = (host.cell, host.ending);
    let began = Instant::now();
    host.bring_end();
    host.exit();
    let took = began.elapsed();
    assert!(took < BOUND, "{what:?}: {took:?}");
    assert_nothing_left(&mut host);
    assert!(began.elapsed() < BOUND + BOUND, "{what:?}: {:?}", began.elapsed());
}

/// A machine with many processes, on which one is born every few milliseconds. `$1` has how many stand by, `$2` the seconds
/// between two births, `$3` the file that is made when they are all there.
const CROWD: &str = r#"my ($crowd, $between, $ready) = @ARGV;
    $SIG{CHLD} = "IGNORE";
    for (1 .. $crowd) { my $pid = fork // die "fork: $!"; if (!$pid) { sleep 600; exit } }
    open(my $file, ">", $ready) or die; close $file;
    while (1) { my $pid = fork // die "fork: $!"; if (!$pid) { select undef, undef, undef, 0.3; exit }
        select undef, undef, undef, $between }"#;

/// The owner looks for what is left by itself then, at every process of the machine, until two looks found none and had no
/// birth come between. It counts only births while it reads the list of processes, which is short; counted over the whole look,
/// as it once was, there is one in every look at this crowd, and eighty looks took 10 to 20 s.
#[test]
fn heavy_f13_an_owner_whose_server_kills_both_guardians_ends_within_the_bound_needs_perl() {
    let crowd = MarkGuard::fresh();
    let scratch = Scratch::for_user(User::current());
    let ready = scratch.join("crowd");
    let mut standing = crowd.wrap("perl", ["-e", CROWD, "1500", "0.05"]);
    let mut standing = standing.arg(&ready).stdin(Stdio::null()).spawn().expect("perl");
    wait_until("the crowd is there", DEADLINE, || ready.exists().then_some(()));
    for cell in cells_with(Hold::Loop) {
        let script = r#"setsid sleep 600 & outer="$(sed 's/.*) . //; s/ .*//' /proc/$PPID/stat)"
            touch "$1/ready"; until [ -e "$1/go" ]; do sleep 0.01; done; kill -9 "$outer" "$PPID"; exec sleep 600"#;
        assert_ends_in_bound(Plan::new(cell, Ending::ServerExits).script(script).start());
    }
    standing.kill().and_then(|()| standing.wait()).expect("our child");
}

/// No guardian can see that its server has ended then. The owner holds the server by pidfd, though it only waits: for the end of
/// the session, blocking or async.
#[test]
fn f13_an_owner_that_only_waits_sees_a_server_exit_that_has_stopped_both_guardians() {
    let script = r#"setsid sleep 600 & outer="$(sed 's/.*) . //; s/ .*//' /proc/$PPID/stat)"
        touch "$1/ready"; until [ -e "$1/go" ]; do sleep 0.01; done
        for guardian in "$outer" "$PPID"; do
            kill -STOP "$guardian"
            until grep -q ') T ' "/proc/$guardian/stat"; do sleep 0.01; done
        done; exit 3"#;
    for cell in cells().into_iter().filter(|cell| matches!(cell.1, Hold::Loop | Hold::Cgroup)) {
        for handle in [&[] as &[&str], &["--async"]] {
            let plan = Plan::new(cell, Ending::ServerExits).options(handle.iter().copied()).script(script);
            let mut host = plan.start();
            let began = Instant::now();
            host.bring_end();
            let report = host.report().expect("a report");
            let took = began.elapsed();
            assert!(took < BOUND, "{cell:?} {handle:?}: {took:?}");
            assert_eq!((report.reason, report.verified), (EndReason::ServerExited, true), "{report:?}");
            host.exit();
            assert_nothing_left(&mut host);
        }
    }
}

/// The kernel lets the other one go on when one of the two dies, and the outer one when the owner does.
#[test]
fn f13_stopped_guardians_of_whom_one_is_killed_end_the_session_within_the_bound() {
    for cell in cells() {
        for ending in [Ending::OuterKilled, Ending::InnerKilled, Ending::HostKilled] {
            let host = Plan::new(cell, ending).misbehave(["--daemon", "--ignore-eof"]).start();
            // The outer one first: it would set the inner one going.
            for guardian in [host.who().outer, host.who().inner] {
                stop(&guardian);
                wait_until_stopped(guardian);
            }
            assert_ends_in_bound(host);
        }
    }
}
