//! The test that the leak report asked for: a daemon that refreshes its servers over and over, with calls in flight on
//! clones that it keeps, and whose earlier generations must be gone each time, whatever ends them.

use std::ffi::OsString;
use std::fs;

use crate::host::{DEADLINE, Host, stub};
use moored_testkit::{User, read_pids, wait_until};
use serde_json::Value;

const SERVERS: usize = 4;

/// A daemon with four stubs, each of which writes down its pid at start.
fn daemon(user: User, refreshes: u64, more: &[&str]) -> Host {
    let mut args: Vec<OsString> =
        ["--in-flight", "--stats", "{}/stats", "--refreshes"].map(Into::into).into();
    args.push(refreshes.to_string().into());
    args.extend(more.iter().map(Into::into));
    for _ in 0..SERVERS {
        args.extend(["--server".into(), format!("{} --pid-file {{}}/pids", stub()).into()]);
    }
    Host::start(user, "refresh_daemon", &args)
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// After each refresh there is this generation and no other.
#[track_caller]
fn assert_clean_refreshes(host: &Host, refreshes: u64) {
    let out = host.out();
    assert_eq!(out.lines().count() as u64, refreshes, "{out}");
    for (line, refresh) in out.lines().zip(1..) {
        let expected = format!(r#"{{"refresh":{refresh},"alive":4,"expected":4,"ended":4,"survivors":0}}"#);
        assert_eq!(line, expected);
    }
    // Every server that ever was has written down its own pid.
    let pids = read_pids(host.scratch.join("pids"));
    assert_eq!(pids.len() as u64, (refreshes + 1) * SERVERS as u64);
}

/// Nothing grows with the refreshes: the least that was seen in the last third is no more than the most in the first one.
/// At a single look, files and threads of the generation before may still be on their way out.
#[track_caller]
fn assert_flat(host: &Host) {
    let stats = lines(&fs::read_to_string(host.scratch.join("stats")).expect("stats"));
    let numbers = |stats: &[Value], key: &str| -> Vec<u64> {
        stats.iter().map(|stat| stat[key].as_u64().expect("a number")).collect()
    };
    let third = stats.len() / 3;
    // The clones that the daemon keeps are its own, and cost a little memory each.
    for (key, slack) in [("fds", 0), ("threads", 0), ("rss_kb", 4096)] {
        let most = numbers(&stats[..third], key).into_iter().max().expect("some lines");
        let least = numbers(&stats[stats.len() - third..], key).into_iter().min().expect("some lines");
        assert!(least <= most + slack, "{key} grew from {most} to {least}: {stats:?}");
    }
}

#[track_caller]
fn refresh(user: User, refreshes: u64, more: &[&str], code: i32) -> Host {
    let mut host = daemon(user, refreshes, more);
    host.assert_ends_with(code);
    host.assert_nothing_left();
    assert_clean_refreshes(&host, refreshes);
    host
}

#[test]
fn heavy_s13_s42_two_hundred_refreshes_leave_nothing_and_cost_nothing() {
    for user in User::available() {
        let host = refresh(user, 200, &["--call", r#"wait {"ms":30}"#], 0);
        assert_flat(&host);
        let stats = lines(&fs::read_to_string(host.scratch.join("stats")).expect("stats"));
        let last = stats.last().expect("a line");
        assert_eq!(
            (last["answered"].as_u64(), last["cut"].as_u64()),
            (Some(800), Some(0)),
            "no call is lost"
        );
    }
}

#[test]
fn heavy_two_hundred_generations_that_are_dropped_leave_nothing() {
    let user = User::current();
    let host = refresh(user, 200, &["--by", "drop", "--call", "hang", "--end", "drop"], 0);
    assert_flat(&host);
}

#[test]
fn generations_that_end_in_a_panic_leave_nothing() {
    for user in User::available() {
        assert_flat(&refresh(user, 25, &["--by", "panic", "--call", "hang", "--end", "panic"], 101));
    }
}

#[test]
fn generations_whose_runtime_goes_first_leave_nothing() {
    for user in User::available() {
        assert_flat(&refresh(user, 25, &["--by", "runtime", "--call", "hang", "--end", "runtime"], 0));
    }
}

#[test]
fn a_call_that_is_never_answered_holds_up_a_refresh_no_longer_than_the_bound() {
    let host = refresh(User::current(), 3, &["--call", "hang", "--drain", "100"], 0);
    let stats = lines(&fs::read_to_string(host.scratch.join("stats")).expect("stats"));
    assert_eq!(stats.last().expect("a line")["answered"], 0);
}

#[test]
fn a_daemon_that_exits_leaves_nothing() {
    for user in User::available() {
        refresh(user, 10, &["--call", "hang", "--drain", "50", "--end", "exit"], 0);
    }
}

#[test]
fn a_daemon_that_is_killed_leaves_nothing() {
    for user in User::available() {
        let mut host = daemon(user, 10, &["--call", r#"wait {"ms":20}"#, "--end", "hold"]);
        wait_until("ten refreshes", DEADLINE, || (host.out().lines().count() == 10).then_some(()));
        host.kill();
        host.wait();
        host.assert_nothing_left();
        assert_clean_refreshes(&host, 10);
    }
}

#[test]
fn a_daemon_that_is_killed_in_the_middle_of_a_refresh_leaves_nothing() {
    for user in User::available() {
        let mut host = daemon(user, 1000, &["--call", r#"wait {"ms":20}"#]);
        wait_until("a refresh", DEADLINE, || (host.out().lines().count() >= 3).then_some(()));
        host.kill();
        host.wait();
        host.assert_nothing_left();
    }
}
