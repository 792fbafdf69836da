//! The example `history`, as a process of its own.
#![expect(
    clippy::disallowed_methods,
    reason = "no server: a program of ours that starts nothing, and is waited for"
)]

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use moored_supervisor::event::RunId;
use moored_testkit::User;
use serde::Deserialize;

pub(crate) struct History {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub(crate) run: RunId,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) spooled: usize,
    pub(crate) warning: Option<String>,
}

#[derive(Deserialize)]
struct Hello {
    run: RunId,
}

pub(crate) fn example() -> std::path::PathBuf {
    moored_testkit::example("moored-supervisor", "history")
}

impl History {
    /// Begins a history; with "hold" among the words it ends only when it is dropped or killed.
    pub(crate) fn begin(user: User, state: &Path, spool: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(example());
        command.arg(state).arg(spool).args(words);
        if user != User::current() {
            command.uid(user.uid()).gid(user.gid());
        }
        Self::of(&mut command)
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the example can be started");
        let input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let hello: Hello = serde_json::from_str(&line).expect("its id");
        Self { child, input, output, run: hello.run }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets one that holds go on; it is not waited for.
    pub(crate) fn release(&mut self) {
        self.input = None;
    }

    pub(crate) fn end(mut self) -> Outcome {
        self.release();
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        assert!(self.child.wait().expect("a child").success());
        serde_json::from_str(&line).expect("its outcome")
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("a child");
        self.child.wait().expect("a child");
    }
}
