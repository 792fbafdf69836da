//! Where numbers are given out again within milliseconds, no signal goes astray.
//!
//! A PID namespace of a thousand numbers is filled by a server with hundreds of children, some of which come and go, and by
//! an unrelated program of the same user that forks pairs of processes all the time (`bystander.pl`). Whoever signals by a
//! number that it read a moment ago hits one of those: they write down every signal that they get. With the guardians
//! of moored 0.1 each session of this test reached some of them.

#![expect(clippy::disallowed_methods, reason = "parts under a mark, which ends what is left of them")]

#[allow(dead_code, reason = "each target uses its part of it")]
#[path = "../common/mod.rs"]
mod common;

use std::fs;
use std::path::Path;
use std::process::{self, Child, Stdio};
use std::time::Duration;

use common::DEADLINE;
use common::part::{Part, stage};
use moored_containment::{Command, Ladder, Layer, Use};
use moored_testkit::{User, wait_until};

/// Of a thousand numbers. The rest is for the pairs, the churn, and the test itself.
const CHILDREN: &str = "830";
const CHURN: &str = "40";
const PAIRS: &str = "40";
const SESSIONS: &str = "MOORED_TEST_SESSIONS";

/// Sessions of one test: those that were promised, or a few. With the guardians of moored 0.1 every session reached a bystander on
/// a machine with nothing else to do, and every second one on a busy machine: eight in a row do not miss it.
fn sessions() -> u32 {
    if std::env::var_os("MOORED_TEST_FULL").is_some() { 100 } else { 8 }
}

/// The namespace's first process: it sets how many numbers there are, and before each session that the next one is low, for
/// numbers below 300 are given out only until all have been given out once.
const INIT: &str = r#"echo 1000 > /proc/sys/kernel/pid_max || exit 77
    for session in $(seq "$MOORED_TEST_SESSIONS"); do
        echo 20 > /proc/sys/kernel/ns_last_pid || exit 78
        MOORED_TEST_SESSION=$session "$@" || exit 1
    done"#;

/// As root a plain user is played inside the namespace. A plain user alone may set up a namespace of its own.
fn nobody_else_is_signalled_as(user: User) {
    let part = Part::new("part_in_a_small_namespace", user);
    let how: &[&str] = if User::current() == User::Root { &["-pf"] } else { &["-Ucpf", "--keep-caps"] };
    let player = part.wrap().command(&part.argv()[0], &part.argv()[1..]);
    let mut command = process::Command::new("unshare");
    command.args(how).args(["--kill-child", "--mount-proc", "sh", "-c", INIT, "sh"]);
    command.arg(player.get_program()).args(player.get_args()).env(SESSIONS, sessions().to_string());
    let played = part.set(command).output().expect("unshare");
    if matches!(played.status.code(), Some(77 | 78)) {
        // Before Linux 6.14 there is one limit for all namespaces.
        return;
    }
    let words = String::from_utf8_lossy(&played.stdout);
    let passed = words.matches("1 passed").count();
    assert!(played.status.success() && passed == sessions() as usize, "{user:?}: {played:?}");
}

#[test]
fn heavy_f1_nobody_else_is_signalled_when_numbers_are_reused_as_root_needs_unshare() {
    if User::current() == User::Root {
        nobody_else_is_signalled_as(User::Root);
    }
}

#[test]
fn heavy_f1_nobody_else_is_signalled_when_numbers_are_reused_as_a_plain_user_needs_unshare() {
    nobody_else_is_signalled_as(User::Plain);
}

fn perl(name: &str, text: &str, stage: &Path) -> process::Command {
    let script = stage.join(name);
    fs::write(&script, text).expect("our stage");
    let mut command = process::Command::new("perl");
    command.arg(script);
    command
}

#[test]
#[ignore = "a part that another test plays in a PID namespace"]
fn part_in_a_small_namespace() {
    let Some(stage) = stage() else { return };
    let session: u32 = std::env::var("MOORED_TEST_SESSION").expect("set").parse().expect("a number");
    let (log, ready) = (stage.join("log"), stage.join("ready"));
    for file in [&log, &ready, &stage.join("log.stop")] {
        let _ = fs::remove_file(file);
    }
    let mut bystander = perl("bystander.pl", include_str!("bystander.pl"), &stage);
    let bystander = bystander.arg(&log).arg(PAIRS).stdin(Stdio::null()).spawn().expect("perl");
    fs::write(stage.join("server.pl"), include_str!("server.pl")).expect("our stage");

    // Every other server has to be killed, so that both kinds of walk are seen.
    let stubborn = if session.is_multiple_of(2) { "1" } else { "0" };
    let mut command = Command::new("perl");
    command.arg(stage.join("server.pl")).args([CHILDREN, CHURN]).arg(&ready).arg(stubborn);
    command.stdin(moored_containment::Stdio::Pipe).layer(Layer::Cgroup, Use::Off);
    let mut server = command.spawn().expect("perl");
    wait_until("the server has its children", DEADLINE, || {
        fs::exists(&ready).expect("a stage").then_some(())
    });
    let children: u32 = fs::read_to_string(&ready).expect("a file").parse().expect("a number");
    let ladder = Ladder::terminate().kill_after(Duration::from_millis(150));
    let report = server.end(ladder).expect("a report");
    let heard = stop(bystander, &stage, &log);

    assert!(report.verified && report.survivors.is_empty(), "{report:?}");
    assert!(children > 600, "{children} children are too few to fill the table");
    let (pairs, signals): (Vec<_>, Vec<_>) = heard.lines().partition(|line| line.starts_with("pairs "));
    assert_eq!(signals, [] as [&str; 0], "session {session}: {report:?}");
    let pairs: u32 = pairs.first().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a count");
    assert!(pairs > 50, "{pairs} pairs are too few to be hit");
}

/// What the bystanders heard, once they are all gone.
fn stop(mut bystander: Child, stage: &Path, log: &Path) -> String {
    fs::write(stage.join("log.stop"), "").expect("our stage");
    let ended = bystander.wait().expect("our child");
    assert!(ended.success(), "the bystander itself: {ended}");
    fs::read_to_string(log).expect("a file")
}
