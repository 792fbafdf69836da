//! One user, with folders and a mark of its own, and the command lines of `moored` in them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use moored_testkit::{MarkGuard, Scratch, User, bin, bins::bin_of, wait_until};
use serde_json::Value;

use super::DEADLINE;

/// Where a test plays. Whatever was started in it is ended with this value.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) mark: MarkGuard,
    pub(crate) scratch: Scratch,
    pub(crate) user: User,
    options: Vec<OsString>,
    server: Vec<OsString>,
}

impl Scene {
    /// The server is a `misbehave` that behaves, until told otherwise.
    pub(crate) fn new(user: User) -> Self {
        let scratch = Scratch::for_user(user);
        let (options, server) = (Vec::new(), vec![bin("misbehave").into()]);
        Self { mark: MarkGuard::fresh(), scratch, user, options, server }
    }

    /// One for each user that the tests can act as.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        User::available().into_iter().map(Self::new)
    }

    /// Options of `moored run`.
    pub(crate) fn options<T: Into<OsString>>(mut self, options: impl IntoIterator<Item = T>) -> Self {
        self.options.extend(options.into_iter().map(Into::into));
        self
    }

    /// Little patience with a server that does not end, where the patience is not what is tested.
    pub(crate) fn hasty(self) -> Self {
        self.options(["--grace", "200ms", "--kill-after", "200ms"])
    }

    /// `misbehave` with these switches. It says when all that it starts is up.
    pub(crate) fn misbehave<T: Into<OsString>>(mut self, switches: impl IntoIterator<Item = T>) -> Self {
        self.server.extend(switches.into_iter().map(Into::into));
        self.server.extend(["--ready-file".into(), self.ready_file().into_os_string()]);
        self
    }

    /// Any other server.
    pub(crate) fn server<T: Into<OsString>>(mut self, argv: impl IntoIterator<Item = T>) -> Self {
        self.server = argv.into_iter().map(Into::into).collect();
        self
    }

    pub(crate) fn ready_file(&self) -> PathBuf {
        self.scratch.join("ready")
    }

    /// The whole command line: `moored run OPTIONS -- SERVER`.
    pub(crate) fn argv(&self) -> Vec<OsString> {
        let mut argv = vec![moored().into(), "run".into()];
        argv.extend(self.options.iter().cloned());
        argv.push("--".into());
        argv.extend(self.server.iter().cloned());
        argv
    }

    /// A command of this user under the mark, at home in the scratch folder.
    pub(crate) fn command<A: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = self.mark.wrapping().user(self.user).command(program, args);
        command.env("HOME", self.scratch.path()).current_dir(self.scratch.path());
        command.env("MOORED_RUNTIME_DIR", self.runtime_dir()).env("MOORED_STATE_DIR", self.state_dir());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// `moored run` itself, with nothing to read unless stdin is set.
    pub(crate) fn run_command(&self) -> Command {
        let argv = self.argv();
        self.command(&argv[0], &argv[1..])
    }

    pub(crate) fn runtime_dir(&self) -> PathBuf {
        self.scratch.join("run")
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.scratch.join("state")
    }

    /// Another verb of `moored`, to its end.
    pub(crate) fn moored<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Output {
        self.command(moored(), args).output().expect("moored")
    }

    /// What was written down of all that happened in this scene, the oldest first.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let output = self.moored(["events", "--json"]);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")).collect()
    }

    /// Why each `run` of this scene ended, as it was written down.
    #[track_caller]
    pub(crate) fn end_causes(&self) -> Vec<Value> {
        self.events().into_iter().filter(|e| e["event"] == "ended").map(|e| e["why"].clone()).collect()
    }

    /// Nobody with the mark is alive, and nothing of a `run` lies in the runtime folder.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        self.assert_nobody();
        let found = self.files_but_spool();
        assert!(found.is_empty(), "{:?}: {found:?}", self.user);
    }

    /// What lies in the runtime folder when a spool has been taken in: on a busy disk a session leaves its last events there,
    /// for the next look at history.
    pub(crate) fn files_but_spool(&self) -> Vec<PathBuf> {
        let found = self.runtime_files();
        if found.iter().any(|path| path.extension().is_some_and(|ending| ending == "events")) {
            self.moored(["ps", "-a"]);
            return self.runtime_files();
        }
        found
    }

    /// What was killed could not remove its files and its control group; the next one does. A run as short as this one may be
    /// over before all is done, and the next goes on with it.
    #[track_caller]
    pub(crate) fn assert_tidied_up(&self) {
        wait_until("no file is left of it", DEADLINE, || {
            self.moored(["run", "--", "true"]);
            self.runtime_files().is_empty().then_some(())
        });
    }

    /// Nobody with the mark is alive.
    #[track_caller]
    pub(crate) fn assert_nobody(&self) {
        if let Err(left) = self.mark.wait_until_none(DEADLINE) {
            panic!("{:?}: still alive: {left:#?}", self.user);
        }
    }

    /// What lies in the runtime folder, but for the memory of crashes, which is meant to outlive them.
    pub(crate) fn runtime_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.runtime_dir()).into_iter().flatten();
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.filter(|path| path.extension().is_none_or(|ending| ending != "crashes")).collect()
    }
}

/// The binary under test, where any user can run it.
pub(crate) fn moored() -> PathBuf {
    bin_of("moored", "moored")
}
