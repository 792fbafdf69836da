//! Servers of a set as `moored ps`, `inspect` and `stop` see them, as every user there is.

use serde_json::{Value, json};

use crate::host::{DEADLINE, Host, stub};
use moored_testkit::wait::wait_for_file;
use moored_testkit::{User, bin};
use rustix::process::{Pid, Signal, kill_process};

fn host(user: User, scenario: &str) -> Host {
    let args = [scenario.into(), stub().into(), bin("misbehave").into(), "{}".into()];
    Host::start(user, "scenario_host", &args)
}

/// Waits until the host says so.
fn wait_for(host: &Host, sign: &str) {
    wait_for_file(&host.scratch.join(format!("{sign}.sign")), DEADLINE);
}

#[track_caller]
fn ps(host: &Host) -> Vec<Value> {
    let output = host.moored(&["ps", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    rows["servers"].as_array().expect("a list").clone()
}

fn names(rows: &[Value]) -> Vec<&str> {
    let mut names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().expect("a name")).collect();
    names.sort_unstable();
    names
}

/// The pid that a stub wrote down.
fn pid_of(host: &Host, name: &str) -> u32 {
    let pids = moored_testkit::read_pids(host.scratch.join(format!("{name}.pids")));
    assert_eq!(pids.len(), 1, "{name}");
    pids[0]
}

#[test]
fn the_servers_of_a_set_are_listed_until_it_is_dropped() {
    for user in User::available() {
        let mut host = host(user, "listed");
        wait_for(&host, "up");
        let rows = ps(&host);
        assert_eq!(names(&rows), ["a", "b"]);
        for row in &rows {
            let name = row["name"].as_str().expect("a name");
            assert_eq!((&row["origin"], &row["state"]), (&json!("client"), &json!("running")), "{row}");
            assert_eq!((&row["pid"], &row["verdict"]), (&json!(pid_of(&host, name)), &json!("attached")));
            assert_eq!(row["reason"], json!(format!("stdin held by scenario_host ({})", host.pid())));
            assert_eq!(row["client"], json!({"pid": host.pid(), "name": "scenario_host"}));
            assert!(row["command"][0].as_str().is_some_and(|word| word.ends_with("stub_server")), "{row}");
            assert!(row["uptime_seconds"].as_f64().expect("a number") < DEADLINE.as_secs_f64());
        }
        let inspected = host.moored(&["inspect", "a", "--json"]);
        let inspected: Value = serde_json::from_slice(&inspected.stdout).expect("JSON");
        let inspected = &inspected["server"];
        assert_eq!(
            (&inspected["answers"], &inspected["in_flight"]),
            (&json!(true), &json!(0)),
            "{inspected}"
        );
        host.go_on();
        wait_for(&host, "dropped");
        assert_eq!(ps(&host), [] as [Value; 0], "its host is alive, and its set is not");
        host.go_on();
        host.assert_ends_with(0);
        host.assert_nothing_left();
    }
}

#[test]
fn the_servers_of_a_killed_host_are_listed_no_more_and_the_next_look_removes_their_files() {
    for user in User::available() {
        let mut host = host(user, "listed");
        wait_for(&host, "up");
        host.kill();
        host.wait();
        host.assert_nothing_left();
        assert_eq!(host.registrations().len(), 4, "two files and two sockets: {:?}", host.registrations());
        assert_eq!(ps(&host), [] as [Value; 0]);
        assert_eq!(host.registrations(), [] as [std::path::PathBuf; 0]);
    }
}

#[test]
fn an_operator_stops_one_server_of_a_set_for_good() {
    for user in User::available() {
        let mut host = host(user, "listed-and-stopped");
        wait_for(&host, "up");
        let stopped = host.moored(&["stop", "a", "--json"]);
        assert!(stopped.status.success(), "{stopped:?}");
        assert_eq!(names(&ps(&host)), ["b"]);
        host.go_on();
        host.assert_ends_with(0);
        host.assert_nothing_left();
    }
}

/// A host that is stopped, or whose runtime is busy, does not answer: its servers are told apart by their records.
#[test]
fn the_servers_of_a_host_that_does_not_answer_are_listed_with_what_is_on_record() {
    for user in User::available() {
        let mut host = host(user, "listed");
        wait_for(&host, "up");
        let pid = Pid::from_raw(host.pid().cast_signed()).expect("a pid");
        kill_process(pid, Signal::STOP).expect("our child");
        let rows = ps(&host);
        kill_process(pid, Signal::CONT).expect("our child");
        assert_eq!(names(&rows), ["a", "b"]);
        for row in &rows {
            let name = row["name"].as_str().expect("a name");
            assert_eq!(
                (&row["pid"], &row["state"]),
                (&json!(pid_of(&host, name)), &json!("running")),
                "{row}"
            );
            assert!(
                row["reason"].as_str().is_some_and(|reason| reason.ends_with("does not answer")),
                "{row}"
            );
        }
        host.close_stdin();
        host.assert_ends_with(0);
        host.assert_nothing_left();
    }
}

#[test]
fn a_set_whose_registration_is_off_is_not_listed() {
    for user in User::available() {
        let mut host = host(user, "not-listed");
        wait_for(&host, "up");
        assert_eq!(ps(&host), [] as [Value; 0]);
        host.go_on();
        host.assert_ends_with(0);
        host.assert_nothing_left();
    }
}
