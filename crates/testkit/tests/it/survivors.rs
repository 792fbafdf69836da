//! The mark sees all that a test started, and the guard ends all of it.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use moored_testkit::{Mark, MarkGuard, User, bin};

use crate::harness::{DEADLINE, Server};

#[test]
fn marks_differ() {
    let marks: std::collections::HashSet<_> = (0..1000).map(|_| Mark::fresh()).collect();
    assert_eq!(marks.len(), 1000);
    assert!(marks.iter().all(|mark| mark.value() < 1 << 62));
}

#[test]
fn nobody_carries_a_fresh_mark() {
    assert_eq!(Mark::fresh().alive_and_zombies(), []);
    assert!(Mark::fresh().wait_until_none(Duration::from_secs(10)).is_ok());
}

#[test]
fn the_guard_ends_every_kind_of_escape() {
    let everything = ["--grandchild", "--daemon", "--clean-daemon", "--own-group", "--own-session-child"];
    let stubborn =
        ["--stopped-child", "--tree", "30", "--tree-ignores-term", "--ignore-eof", "--ignore-term"];
    for user in User::available() {
        let server = Server::start_as(user, &[&everything[..], &stubborn].concat());
        let mark = *server.mark;
        assert_eq!(mark.alive().len(), 1 + 6 + 30);
        drop(server);
        assert_eq!(mark.alive(), []);
    }
}

#[test]
fn the_guard_ends_a_storm() {
    for user in User::available() {
        let server = Server::start_as(user, &["--storm", "4", "--ignore-term"]);
        let mark = *server.mark;
        drop(server);
        assert_eq!(mark.wait_until_none(Duration::from_secs(1)).map(drop), Ok(()));
    }
}

#[test]
fn a_storm_is_never_taken_for_nobody() {
    let mut server = Server::start(&["--storm", "2", "--exit-now", "0"]);
    server.wait_for_exit();
    let left = server.mark.wait_until_none(Duration::from_millis(500));
    assert!(left.is_err(), "{left:?}");
}

#[test]
fn wait_until_none_names_who_is_left_and_at_least_waits_for_them() {
    let server = Server::start(&["--chain", "3"]);
    assert_eq!(server.mark.wait_until_at_least(4, DEADLINE).expect("four").len(), 4);
    assert_eq!(server.mark.wait_until_at_least(5, Duration::ZERO).unwrap_err().len(), 4);
    let left = server.mark.wait_until_none(Duration::ZERO).unwrap_err();
    assert!(left.iter().any(|survivor| survivor.pid == server.pid() && survivor.comm == "misbehave"));
}

#[test]
fn a_zombie_is_not_alive() {
    let server = Server::start(&["--exit-now", "0"]);
    // Not reaped: nobody waits for the child before the harness is dropped.
    assert!(server.mark.wait_until_none(DEADLINE).is_ok());
    let zombies = server.mark.alive_and_zombies();
    assert_eq!(zombies.iter().map(|survivor| survivor.state).collect::<String>(), "Z");
}

#[test]
fn a_scan_over_hundreds_of_processes_is_quick() {
    let server = Server::start(&["--tree", "300"]);
    // CPU time, and the best of some: other tests run at the same time.
    let cpu_time = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let best = (0..20).map(|_| {
        let start = cpu_time();
        assert_eq!(server.mark.alive().len(), 301);
        Duration::try_from(cpu_time() - start).expect("a positive time")
    });
    let best = best.min().expect("some");
    // Some four times what a slow machine takes: a scan that looks at everybody more than once takes longer.
    assert!(best < Duration::from_millis(60), "{best:?}");
}

#[test]
fn limits_and_user_are_as_wrapped() {
    for user in User::available() {
        let mark = MarkGuard::fresh();
        let script = "id -u; id -G; ulimit -n; grep -c 'Max resident set  *'\"$0\" /proc/self/limits";
        let args = ["-c".to_owned(), script.to_owned(), mark.value().to_string()];
        let mut command = mark.wrapping().user(user).nofile(77).nproc(5000).command("/bin/sh", args);
        let output = command.stdin(Stdio::null()).output().expect("sh");
        let lines = String::from_utf8(output.stdout).expect("text");
        let lines: Vec<_> = lines.lines().collect();
        assert_eq!(lines[0], user.uid().to_string());
        if user != User::current() {
            assert_eq!(lines[1], user.gid().to_string(), "supplementary groups are gone");
        }
        assert_eq!(lines[2..], ["77", "1"]);
    }
}

#[test]
fn the_cgroup_is_entered_before_root_is_dropped() {
    let mounts = fs::read_to_string("/proc/mounts").expect("mounts");
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"));
    let mark = MarkGuard::fresh();
    let name = format!("testkit-{:x}", mark.value());
    let folder = mount.map(|line| Path::new(line.split(' ').nth(1).expect("a folder")).join(&name));
    // Only root, and only where the hierarchy can be written to.
    let Some(folder) = folder.filter(|folder| fs::create_dir(folder).is_ok()) else { return };
    let mut command = mark.wrapping().user(User::Plain).cgroup(&folder).command("cat", ["/proc/self/cgroup"]);
    let output = command.stdin(Stdio::null()).output().expect("cat");
    fs::remove_dir(&folder).expect("an empty cgroup");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.lines().any(|line| line.starts_with("0::") && line.ends_with(&name)), "{text}");
}

#[test]
fn marked_names_what_does_not_start() {
    let output = Mark::fresh().wrap("/no/such/program", [""; 0]).output().expect("marked");
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`/no/such/program` does not start"));
    assert!(bin("marked").exists());
}
