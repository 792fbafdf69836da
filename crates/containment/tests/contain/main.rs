//! The example `contain`: what a command line gets of the library.
//!
//! - `codes`: every exit code, and what is said with it;
//! - `ends`: everything that ends it, and how long it waits;
//! - `pipes`: what goes through, and what its stdin may be.

#![expect(clippy::disallowed_methods, reason = "`contain` under a mark, which ends what is left of it")]

mod codes;
#[allow(dead_code, reason = "each target uses its part of it")]
#[path = "../common/mod.rs"]
mod common;
mod ends;
mod pipes;

use std::ffi::OsStr;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::DEADLINE;
use common::hold::{Cell, cells};
use common::part::Part;
use common::traces::names;
use moored_containment::{EndReport, ProcessIdentity};
use moored_testkit::wait::wait_for_file;
use moored_testkit::{User, bin, example, wait_until};
use rustix::process::Signal;

/// One `contain`, under a mark, with a folder of records and a group of its own.
struct Contain {
    part: Part,
    cell: Cell,
    options: Vec<&'static str>,
}

impl Contain {
    fn new(cell: Cell) -> Self {
        Self { part: Part::new("", cell.0), cell, options: Vec::new() }
    }

    /// One for each user, and one for each hold.
    fn all() -> impl Iterator<Item = Self> {
        cells().into_iter().map(Self::new)
    }

    fn options(mut self, options: impl IntoIterator<Item = &'static str>) -> Self {
        self.options.extend(options);
        self
    }

    fn command(&self, argv: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let wrap = self.part.wrap();
        let mut command =
            wrap.command(example("moored-containment", "contain"), self.cell.1.contain_options());
        command.args(&self.options).arg("--").args(argv);
        let mut command = self.part.set(command);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// `misbehave` with these switches, up and waiting for its input.
    fn serving(self, switches: &[&str]) -> Running {
        let mut command = self.command([bin("misbehave")]);
        command.args(switches).arg("--ready-file").arg(self.part.scratch.join("ready"));
        let child = command.stdin(Stdio::piped()).spawn().expect("contain");
        wait_for_file(&self.part.scratch.join("ready"), DEADLINE);
        Running { child, contain: self, began: Instant::now() }
    }

    /// Runs it to its end, with nothing to read.
    fn run(&self, argv: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
        let ran = self.command(argv).output().expect("contain");
        self.assert_clean();
        ran
    }

    #[track_caller]
    fn assert_clean(&self) {
        let left = self.part.mark.wait_until_none(DEADLINE);
        assert!(left.is_ok(), "{:?}: {left:?}", self.cell);
        let found = names(&self.part.scratch.join("run"));
        assert!(found.is_empty(), "{:?}: {found:?}", self.cell);
        let leaves = self.part.group.as_ref().map(|group| group.leaves()).unwrap_or_default();
        assert!(leaves.is_empty(), "{:?}: {leaves:?}", self.cell);
    }
}

/// A `contain` whose server is up.
struct Running {
    contain: Contain,
    child: Child,
    began: Instant,
}

impl Running {
    fn send(&mut self, signal: Signal) {
        self.began = Instant::now();
        let contain = ProcessIdentity::of(self.child.id()).expect("our child");
        assert!(common::send(&contain, signal));
    }

    /// For a signal that may come too late.
    fn send_if_alive(&self, signal: Signal) {
        if let Ok(contain) = ProcessIdentity::of(self.child.id()) {
            common::send(&contain, signal);
        }
    }

    fn close_stdin(&mut self) {
        self.began = Instant::now();
        self.child.stdin = None;
    }

    /// Its end, its report, and how long after the last thing that was done to it.
    #[track_caller]
    fn end(mut self) -> (Output, Duration) {
        wait_until("contain has ended", DEADLINE, || self.child.try_wait().expect("our child"));
        let took = self.began.elapsed();
        let output = self.child.wait_with_output().expect("our child");
        self.contain.assert_clean();
        (output, took)
    }
}

/// The one line on stderr.
#[track_caller]
fn report(output: &Output) -> EndReport {
    let words = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = words.lines().collect();
    let [line] = lines[..] else { panic!("more or less than one line: {output:?}") };
    assert!(words.ends_with('\n'));
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// The cells of one user, where the hold makes no difference.
fn one_cell(user: User) -> Cell {
    cells().into_iter().find(|cell| cell.0 == user).expect("the loop at least")
}
