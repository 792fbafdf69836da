//! One marked `misbehave` per test, and what the tests ask about processes.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, ExitStatus, Stdio};
use std::time::Duration;

use moored_testkit::wait::wait_for_file;
use moored_testkit::{MarkGuard, Scratch, Survivor, User, bin, read_pids, wait_until};
use serde_json::{Value, json};

/// Generous: it only passes when something is wrong.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A misbehaving server under a mark. Whatever it started is ended with this value.
pub(crate) struct Server {
    pub(crate) mark: MarkGuard,
    pub(crate) child: Child,
    pub(crate) scratch: Scratch,
    stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Starts one as the current user, and waits for its ready file.
    pub(crate) fn start(switches: &[&str]) -> Self {
        Self::start_as(User::current(), switches)
    }

    pub(crate) fn start_as(user: User, switches: &[&str]) -> Self {
        let mark = MarkGuard::fresh();
        let scratch = Scratch::for_user(user);
        let mut command = mark.wrapping().user(user).command(bin("misbehave"), switches);
        command.arg("--ready-file").arg(scratch.join("ready")).arg("--pid-file").arg(scratch.join("pids"));
        let mut child = command
            .current_dir(scratch.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("marked");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let server = Self { mark, child, scratch, stdout };
        wait_for_file(&server.scratch.join("ready"), DEADLINE);
        server
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The recorded pids apart from the server's own.
    pub(crate) fn started(&self) -> Vec<u32> {
        let pids = read_pids(self.scratch.join("pids"));
        pids.into_iter().filter(|pid| *pid != self.pid()).collect()
    }

    pub(crate) fn only_started(&self) -> u32 {
        let started = self.started();
        assert_eq!(started.len(), 1, "{started:?}");
        started[0]
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let stdin = self.child.stdin.as_mut().expect("stdin still open");
        stdin.write_all(format!("{message}\n").as_bytes()).expect("a reading server");
    }

    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub(crate) fn echo(&mut self, text: &str) -> Value {
        let params = json!({ "name": "echo", "arguments": { "text": text } });
        self.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
        self.receive()["result"]["content"][0]["text"].clone()
    }

    pub(crate) fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    pub(crate) fn wait_for_exit(&mut self) -> ExitStatus {
        wait_until("the server exits", DEADLINE, || self.child.try_wait().expect("our child"))
    }

    /// The survivor with this pid, if it is alive.
    pub(crate) fn find(&self, pid: u32) -> Option<Survivor> {
        self.mark.alive().into_iter().find(|survivor| survivor.pid == pid)
    }

    pub(crate) fn wait_for_state(&self, pid: u32, states: &str) {
        wait_until(&format!("{pid} is in one of the states {states}"), DEADLINE, || {
            self.find(pid).filter(|survivor| states.contains(survivor.state))
        });
    }

    pub(crate) fn wait_until_gone(&self, pid: u32) {
        wait_until(&format!("{pid} is gone"), DEADLINE, || self.find(pid).is_none().then_some(()));
    }

    /// Signals a process that this test has started, after another look at its mark.
    pub(crate) fn signal(&self, pid: u32, signal: rustix::process::Signal) {
        let target = rustix::process::Pid::from_raw(pid.cast_signed()).expect("a pid");
        let pidfd = rustix::process::pidfd_open(target, rustix::process::PidfdFlags::empty()).expect("alive");
        assert!(self.find(pid).is_some(), "{pid} is not ours, or gone");
        rustix::process::pidfd_send_signal(pidfd, signal).expect("alive");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.mark.end_all();
        let _ = self.child.wait();
    }
}

/// A field of `/proc/PID/stat` after the comm: 1 parent, 2 group, 3 session, 11 and 12 CPU ticks.
pub(crate) fn stat_field(pid: u32, index: usize) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a live process");
    let tail = text.rsplit_once(')').expect("a comm").1;
    tail.split_whitespace().nth(index).expect("the field").parse().expect("a number")
}

pub(crate) fn parent(pid: u32) -> u32 {
    u32::try_from(stat_field(pid, 1)).expect("a pid")
}

pub(crate) fn group(pid: u32) -> u64 {
    stat_field(pid, 2)
}

pub(crate) fn session(pid: u32) -> u64 {
    stat_field(pid, 3)
}

pub(crate) fn fds(pid: u32) -> Vec<PathBuf> {
    let folder = fs::read_dir(format!("/proc/{pid}/fd")).expect("a live process of ours");
    folder.flatten().filter_map(|entry| fs::read_link(entry.path()).ok()).collect()
}

/// Whether it catches TERM, INT and HUP, as a mask in `/proc/PID/status` tells.
pub(crate) fn catches_polite_signals(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a live process");
    let mask_of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the mask");
        u64::from_str_radix(line.trim(), 16).expect("hex")
    };
    let handled = mask_of("SigCgt:") | mask_of("SigIgn:");
    [15, 2, 1].iter().all(|signal| handled & 1 << (signal - 1) != 0)
}
