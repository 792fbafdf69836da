//! A user's home of a test's own: runtime folder, state, settings, and moored started in it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use moored_testkit::{Scratch, User, wait_until};
use serde_json::Value;

pub(crate) struct Home {
    scratch: Scratch,
}

/// What moored said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { scratch: Scratch::for_user(User::current()) }
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// moored in this home, with nothing of ours in its environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_moored"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("MOORED_") || name == "NO_COLOR" || name == "CLICOLOR_FORCE"
            {
                command.env_remove(name);
            }
        }
        command
            .args(args)
            .current_dir(self.scratch.path())
            .env("MOORED_RUNTIME_DIR", self.join("run"))
            .env("MOORED_STATE_DIR", self.join("state"))
            .env("XDG_CONFIG_HOME", self.join("config"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn moored(&self, args: &[&str]) -> Said {
        said(&mut self.command(args))
    }

    /// What it said as JSON, of a form that we know.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let said = self.moored(args);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
        let value: Value = serde_json::from_str(&said.stdout).expect("JSON");
        assert_eq!(value["schema_version"], 1);
        value
    }

    /// A `run` whose client we are.
    pub(crate) fn run(&self, args: &[&str]) -> Running {
        self.start(&[&["run"], args].concat())
    }

    /// moored, going on.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running { child: command.spawn().expect("moored") }
    }

    /// Waits until `ps` shows so many servers with so many processes each.
    pub(crate) fn wait_for(&self, servers: usize, processes: usize) -> Value {
        let begun = Instant::now();
        wait_until("the servers are up", Duration::from_secs(60), || {
            let shown = self.json(&["ps", "--json"]);
            // What is there instead says more than that something is not.
            assert!(begun.elapsed() < Duration::from_secs(20), "not {servers} × {processes}: {shown}");
            let rows = shown["servers"].as_array().expect("a list");
            let up = |row: &Value| row["processes"].as_array().expect("a list").len() == processes;
            (rows.len() == servers && rows.iter().all(up)).then(|| shown["servers"].clone())
        })
    }
}

pub(crate) fn said(command: &mut Command) -> Said {
    let output = command.output().expect("moored");
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// A moored that ends with this value at the latest; if it is a `run`, its guardians end the tree.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The lines that it writes.
    pub(crate) fn lines(&mut self) -> impl Iterator<Item = String> + use<> {
        BufReader::new(self.child.stdout.take().expect("piped")).lines().map(|line| line.expect("text"))
    }

    /// Waits for its end, with our end of its input still open, and returns its code and its stderr.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let input = self.child.stdin.take();
        let status = self.child.wait().expect("its end");
        drop(input);
        let mut errors = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut errors).expect("text");
        (status.code(), errors)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
