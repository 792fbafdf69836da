//! What the server starts is what the switch says, and outlives the server as it should.

use std::fs;

use moored_testkit::{Survivor, User, read_pids, wait_until};
use rustix::process::Signal;

use crate::harness::{DEADLINE, Server, catches_polite_signals, fds, group, parent, session};

#[test]
fn grandchild_outlives_eof_and_term() {
    let mut server = Server::start(&["--grandchild"]);
    let pid = server.only_started();
    assert_eq!(parent(pid), server.pid());
    assert!(catches_polite_signals(pid));
    server.close_stdin();
    server.wait_for_exit();
    server.signal(pid, Signal::TERM);
    server.wait_for_state(pid, "S");
}

#[test]
fn a_sleeper_holds_stdout_but_not_stdin() {
    let server = Server::start(&["--grandchild"]);
    let own = fs::read_link(format!("/proc/{}/fd/1", server.pid())).expect("a pipe");
    let pid = server.only_started();
    assert_eq!(fs::read_link(format!("/proc/{pid}/fd/1")).expect("a pipe"), own);
    assert_eq!(fs::read_link(format!("/proc/{pid}/fd/0")).expect("null").to_str(), Some("/dev/null"));
}

#[test]
fn daemon_has_left_session_group_and_parent() {
    for user in User::available() {
        let server = Server::start_as(user, &["--daemon"]);
        let pid = server.only_started();
        assert_ne!(parent(pid), server.pid());
        assert_ne!(session(pid), session(server.pid()));
        assert_ne!(session(pid), u64::from(pid), "no leader, as after a real double fork");
        assert!(catches_polite_signals(pid));
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("alive");
        assert!(status.contains(&format!("\nUid:\t{0}\t{0}\t{0}\t{0}\n", user.uid())), "{status}");
    }
}

#[test]
fn clean_daemon_has_neither_environment_nor_fds_and_is_found() {
    for user in User::available() {
        let mut server = Server::start_as(user, &["--clean-daemon", "--exit-now", "0"]);
        server.wait_for_exit();
        let pid = server.only_started();
        assert_eq!(fs::read(format!("/proc/{pid}/environ")).expect("readable"), b"");
        assert_eq!(fds(pid), Vec::<std::path::PathBuf>::new());
        let alive = server.mark.alive();
        assert_eq!(alive.iter().map(|survivor| survivor.pid).collect::<Vec<_>>(), [pid]);
    }
}

#[test]
fn own_group_and_own_session_are_leaders_and_still_children() {
    let server = Server::start(&["--own-group"]);
    let pid = server.only_started();
    assert_eq!((parent(pid), group(pid)), (server.pid(), u64::from(pid)));
    assert_eq!(session(pid), session(server.pid()));
    let server = Server::start(&["--own-session-child"]);
    let pid = server.only_started();
    assert_eq!((parent(pid), session(pid)), (server.pid(), u64::from(pid)));
}

#[test]
fn stopped_child_is_stopped() {
    let server = Server::start(&["--stopped-child"]);
    server.wait_for_state(server.only_started(), "T");
}

#[test]
fn tree_and_chain_have_their_number_when_ready() {
    let mut server = Server::start(&["--tree", "50", "--chain", "10", "--tree-ignores-term"]);
    let started = server.started();
    assert_eq!(started.len(), 60);
    assert_eq!(server.mark.alive().len(), 61);
    assert!(started.iter().all(|pid| catches_polite_signals(*pid)));
    let children = started.iter().filter(|pid| parent(**pid) == server.pid()).count();
    assert_eq!(children, 8 + 1);
    server.close_stdin();
    server.wait_for_exit();
    assert_eq!(server.mark.alive().len(), 60);
}

#[test]
fn chain_is_a_line() {
    let server = Server::start(&["--chain", "5"]);
    let started = server.started();
    assert_eq!(started.len(), 5);
    assert!(started.iter().all(|pid| started.iter().filter(|other| parent(**other) == *pid).count() <= 1));
    // Without `--tree-ignores-term` they are polite.
    server.signal(started[0], Signal::TERM);
    server.wait_until_gone(started[0]);
}

#[test]
fn storm_hops_on_after_the_server_and_changes_its_pid() {
    let mut server = Server::start(&["--storm", "3", "--exit-now", "0"]);
    server.wait_for_exit();
    let first = wait_until("a generation is seen", DEADLINE, || server.mark.alive().first().cloned());
    wait_until("a later generation is seen", DEADLINE, || {
        server.mark.alive().into_iter().find(|survivor| survivor.pid != first.pid)
    });
    wait_until("a generation in a session of its own is seen", DEADLINE, || {
        // Between exec and exit only it has arguments.
        let is_hop = |survivor: &Survivor| survivor.cmdline.iter().any(|word| word == "__hop");
        let survivor = server.mark.alive().into_iter().find(is_hop)?;
        let text = fs::read_to_string(format!("/proc/{}/stat", survivor.pid)).ok()?;
        let session: u32 = text.rsplit_once(')')?.1.split_whitespace().nth(3)?.parse().ok()?;
        (session == survivor.pid).then_some(())
    });
}

#[test]
fn a_storm_of_a_server_that_ignores_term_ignores_it_too() {
    let server = Server::start(&["--storm", "1", "--storm-period", "200000", "--ignore-term"]);
    wait_until("a generation with TERM ignored is seen", DEADLINE, || {
        let hopper = server.mark.alive().into_iter().find(|survivor| survivor.pid != server.pid())?;
        let status = fs::read_to_string(format!("/proc/{}/status", hopper.pid)).ok()?;
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        (u64::from_str_radix(mask.trim(), 16).ok()? & 1 << 14 != 0).then_some(())
    });
}

#[test]
fn keep_alive_child_has_its_name_and_a_child() {
    for user in User::available() {
        let scratch = moored_testkit::Scratch::for_user(user);
        let dir = scratch.path().to_str().expect("ASCII");
        let mut server =
            Server::start_as(user, &["--keep-alive-child", "browser", "--keep-dir", dir, "--exit-now", "0"]);
        server.wait_for_exit();
        let pids = read_pids(scratch.join("browser.pids"));
        let [keeper, below] = pids[..] else { panic!("{pids:?}") };
        assert_eq!(parent(below), keeper);
        assert_eq!(session(keeper), u64::from(keeper));
        for pid in [keeper, below] {
            assert_eq!(server.find(pid).expect("alive").comm, "browser");
            assert!(!catches_polite_signals(pid), "it must be seen when somebody ends it");
        }
    }
}
