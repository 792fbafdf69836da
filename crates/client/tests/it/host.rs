//! Hosts in processes of their own, as root and as a plain user, and what is left of them.

#![expect(
    clippy::disallowed_methods,
    reason = "a host that leaks is what is looked for; the mark finds what is left"
)]

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use moored_testkit::bins::bin_of;
use moored_testkit::{MarkGuard, Scratch, User, example, wait_until};

/// For what should take seconds at most, on a machine that is busy with other things.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);
/// By when all is gone after a host's end, however it came: D of the scenarios.
pub(crate) const GONE: Duration = Duration::from_secs(5);

/// A running host. Whatever it started is ended with this value.
pub(crate) struct Host {
    child: Child,
    pub(crate) mark: MarkGuard,
    pub(crate) scratch: Scratch,
    user: User,
}

impl Host {
    /// Starts an example of this crate as that user. It gets its scratch folder's path in each `{}`.
    pub(crate) fn start(user: User, name: &str, args: &[OsString]) -> Self {
        let (mark, scratch) = (MarkGuard::fresh(), Scratch::for_user(user));
        let folder = scratch.path().to_str().expect("a plain path");
        let args = args.iter().map(|arg| arg.to_str().expect("plain").replace("{}", folder));
        let mut command = mark.wrapping().user(user).command(example("moored-client", name), args);
        let file = |name| File::create(scratch.join(name)).expect("a file");
        command.env("MOORED_RUNTIME_DIR", scratch.join("run")).env("RUST_BACKTRACE", "0");
        command.stdin(Stdio::piped()).stdout(file("out")).stderr(file("err")).current_dir(scratch.path());
        Self { child: command.spawn().expect("the host"), mark, scratch, user }
    }

    pub(crate) fn out(&self) -> String {
        std::fs::read_to_string(self.scratch.join("out")).expect("its output")
    }

    fn err(&self) -> String {
        std::fs::read_to_string(self.scratch.join("err")).expect("its errors")
    }

    /// What is left in the runtime folder of registrations and control sockets.
    pub(crate) fn registrations(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.scratch.join("run")).into_iter().flatten().flatten();
        let is_registration = |path: &PathBuf| path.extension().is_some_and(|e| e == "run" || e == "sock");
        entries.map(|entry| entry.path()).filter(is_registration).collect()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends one byte to a host that reads its stdin.
    pub(crate) fn go_on(&mut self) {
        let stdin = self.child.stdin.as_mut().expect("its stdin");
        stdin.write_all(b"!").expect("it reads");
    }

    /// What a verb of `moored` says, as the user of this host and in its folders.
    pub(crate) fn moored(&self, args: &[&str]) -> Output {
        let moored = self.mark.wrapping().user(self.user).command(bin_of("moored", "moored"), args);
        self.in_folders(moored).output().expect("moored")
    }

    fn in_folders(&self, mut command: Command) -> Command {
        command.env("MOORED_RUNTIME_DIR", self.scratch.join("run"));
        command.env("MOORED_STATE_DIR", self.scratch.join("state")).current_dir(self.scratch.path());
        command
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("our child");
    }

    /// Lets a host go that waits for it.
    pub(crate) fn close_stdin(&mut self) {
        self.child.stdin = None;
    }

    /// Waits for its own end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let child = &mut self.child;
        wait_until("the host has ended", DEADLINE, || child.try_wait().expect("our child"))
    }

    /// Whoever is left is nobody.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        if let Err(left) = self.mark.wait_until_none(GONE) {
            panic!("left: {left:#?}\n{}", self.err());
        }
    }

    /// Waits for its own end, which must have that code.
    #[track_caller]
    pub(crate) fn assert_ends_with(&mut self, code: i32) {
        let status = self.wait();
        assert_eq!(status.code(), Some(code), "{}\n{}", self.out(), self.err());
    }
}

/// The stub server, where any user can run it.
pub(crate) fn stub() -> String {
    example("moored-client", "stub_server").to_str().expect("a plain path").to_owned()
}
