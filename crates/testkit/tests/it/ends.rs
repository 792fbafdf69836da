//! How the server answers, and how it ends or does not.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;

use moored_testkit::{User, wait_until};
use rustix::process::Signal;
use serde_json::json;

use crate::harness::{DEADLINE, Server, catches_polite_signals, parent, stat_field};

#[test]
fn a_good_server_answers_and_exits_0_at_eof() {
    for user in User::available() {
        let mut server = Server::start_as(user, &[]);
        server.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "initialize", "params": { "protocolVersion": "X" } }));
        assert_eq!(server.receive()["result"]["protocolVersion"], "X");
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!(server.echo("hello"), "hello");
        server.close_stdin();
        assert_eq!(server.wait_for_exit().code(), Some(0));
    }
}

#[test]
fn exit_code_is_what_eof_gives() {
    let mut server = Server::start(&["--exit-code", "42"]);
    server.close_stdin();
    assert_eq!(server.wait_for_exit().code(), Some(42));
}

#[test]
fn ignore_eof_stays_asleep_but_dies_by_term() {
    let mut server = Server::start(&["--ignore-eof"]);
    server.close_stdin();
    wait_until_eof_is_read(&server);
    server.signal(server.pid(), Signal::TERM);
    assert_eq!(server.wait_for_exit().signal(), Some(15));
}

/// The server sleeps in `nanosleep` then, and no longer in `read`.
fn wait_until_eof_is_read(server: &Server) {
    wait_until("the server has read EOF", DEADLINE, || {
        let wchan = fs::read_to_string(format!("/proc/{}/syscall", server.pid())).ok()?;
        let number = wchan.split_whitespace().next()?.to_owned();
        (number != "0" && number != "running" && server.find(server.pid())?.state == 'S').then_some(())
    });
}

#[test]
fn ignore_term_survives_the_polite_signals() {
    let mut server = Server::start(&["--ignore-term"]);
    assert!(catches_polite_signals(server.pid()));
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        server.signal(server.pid(), signal);
    }
    assert_eq!(server.echo("still here"), "still here");
    server.close_stdin();
    assert_eq!(server.wait_for_exit().code(), Some(0));
}

#[test]
fn spin_after_eof_burns_cpu() {
    let mut server = Server::start(&["--spin-after-eof"]);
    server.close_stdin();
    wait_until("20 ticks of CPU are burnt", DEADLINE, || (stat_field(server.pid(), 11) > 20).then_some(()));
}

#[test]
fn die_on_eof_after_takes_its_time() {
    let mut server = Server::start(&["--die-on-eof-after", "300", "--exit-code", "5"]);
    let start = std::time::Instant::now();
    server.close_stdin();
    assert_eq!(server.wait_for_exit().code(), Some(5));
    assert!(start.elapsed().as_millis() >= 300);
}

#[test]
fn exit_now_and_die_by_do_not_wait_for_eof() {
    assert_eq!(Server::start(&["--exit-now", "9"]).wait_for_exit().code(), Some(9));
    for signal in [9, 6, 11, 13, 15] {
        let status = Server::start(&["--die-by", &signal.to_string()]).wait_for_exit();
        assert_eq!(status.signal(), Some(signal));
    }
}

#[test]
fn crash_after_answers_the_last_call_first() {
    let mut server = Server::start(&["--crash-after", "2"]);
    assert_eq!(server.echo("one"), "one");
    assert_eq!(server.echo("two"), "two");
    assert_eq!(server.wait_for_exit().code(), Some(3));
}

#[test]
fn stop_self_stops_and_answers_when_continued() {
    let mut server = Server::start(&["--stop-self"]);
    server.wait_for_state(server.pid(), "T");
    server.signal(server.pid(), Signal::CONT);
    assert_eq!(server.echo("awake"), "awake");
}

#[test]
fn block_stdout_blocks_in_write_and_ignores_eof() {
    let mut server = Server::start(&["--block-stdout"]);
    server.close_stdin();
    wait_until("the server is blocked in write", DEADLINE, || {
        let syscall = fs::read_to_string(format!("/proc/{}/syscall", server.pid())).ok()?;
        // On x86-64 and aarch64: write(1, …).
        (syscall.starts_with("1 0x1 ") || syscall.starts_with("64 0x1 ")).then_some(())
    });
    assert_eq!(server.receive()["method"], "notifications/message");
}

#[test]
fn block_stderr_writes_that_much_before_it_answers() {
    let mut server = Server::start(&["--block-stderr", "100000"]);
    assert_eq!(server.echo("after the noise"), "after the noise");
}

#[test]
fn slow_start_delays_the_first_answer() {
    let start = std::time::Instant::now();
    let mut server = Server::start(&["--slow-start", "300"]);
    assert_eq!(server.echo("late"), "late");
    assert!(start.elapsed().as_millis() >= 300);
}

#[test]
fn allocate_is_resident() {
    let server = Server::start(&["--allocate", "64"]);
    let pages = stat_field(server.pid(), 21);
    assert!(pages * 4096 >= 64 << 20, "{pages} pages");
}

#[test]
fn wrap_shell_makes_a_chain_of_two_shells_that_passes_the_exit_code() {
    let mut server = Server::start(&["--wrap-shell", "--exit-code", "4"]);
    let started = server.started();
    let [inner, wrapped] = started[..] else { panic!("{started:?}") };
    assert_eq!((parent(wrapped), parent(inner)), (inner, server.pid()));
    assert_eq!(server.find(wrapped).expect("alive").comm, "misbehave");
    assert_eq!(server.echo("through two shells"), "through two shells");
    server.close_stdin();
    assert_eq!(server.wait_for_exit().code(), Some(4));
}
