//! A test's own code in a process of its own.
//!
//! The part is a test of the same target that is ignored in an ordinary run; [`Part::command`] starts the test program
//! again for that one test alone. So a host can be any user, have any limit, or be spoiled for others.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use moored_testkit::{MarkGuard, Scratch, User, Wrap, bin};

use super::group::Group;
use super::hold::{Cell, Hold};

const STAGE: &str = "MOORED_TEST_STAGE";
const HOLD: &str = "MOORED_TEST_HOLD";
const GROUP: &str = "MOORED_TEST_GROUP";

/// A part to be played.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) mark: MarkGuard,
    pub(crate) group: Option<Group>,
    pub(crate) scratch: Scratch,
    name: &'static str,
    user: User,
    hold: Hold,
}

impl Part {
    /// The ignored test `name` of this target, as that user.
    pub(crate) fn new(name: &'static str, user: User) -> Self {
        let (mark, scratch) = (MarkGuard::fresh(), Scratch::for_user(user));
        symlink(bin("misbehave"), scratch.join("misbehave")).expect("a fresh folder");
        Self { mark, group: Group::for_user(user), scratch, name, user, hold: Hold::Loop }
    }

    /// The same, with the hold that its sessions shall have.
    pub(crate) fn of(name: &'static str, (user, hold): Cell) -> Self {
        Self { hold, ..Self::new(name, user) }
    }

    /// How it is started: under the mark, as the user, in the group if one can be had.
    pub(crate) fn wrap(&self) -> Wrap {
        let wrap = self.mark.wrapping().user(self.user);
        match &self.group {
            Some(group) => wrap.cgroup(group.path()),
            None => wrap,
        }
    }

    /// The program and the arguments that play it.
    pub(crate) fn argv(&self) -> Vec<String> {
        let program = self.program().into_os_string().into_string().expect("text");
        [&program, self.name, "--exact", "--ignored", "--nocapture", "--test-threads=1"]
            .map(String::from)
            .to_vec()
    }

    /// Its command, with the scratch folder as its stage and its home of records.
    pub(crate) fn command(&self, wrap: Wrap) -> Command {
        let argv = self.argv();
        self.set(wrap.command(&argv[0], &argv[1..]))
    }

    /// The stage of a command that plays it in some other way.
    pub(crate) fn set(&self, mut command: Command) -> Command {
        command.env(STAGE, self.scratch.path()).env("MOORED_RUNTIME_DIR", self.scratch.join("run"));
        command.env(HOLD, format!("{:?}", self.hold));
        if let Some(group) = &self.group {
            command.env(GROUP, group.path());
        }
        command.stdin(Stdio::null()).current_dir("/");
        command
    }

    /// Plays it to its end, and panics with all that it said if it failed.
    #[track_caller]
    pub(crate) fn play(&self) {
        self.play_under(self.wrap());
    }

    /// The same, under limits.
    #[track_caller]
    pub(crate) fn play_under(&self, wrap: Wrap) {
        let played = self.command(wrap).output().expect("this program");
        let words = [played.stdout, played.stderr].concat();
        let words = String::from_utf8_lossy(&words);
        let what = (self.name, self.user, self.hold);
        assert!(played.status.success(), "{what:?}: {}\n{words}", played.status);
        assert!(words.contains("1 passed"), "{what:?}: there is no such part\n{words}");
    }

    /// This program, where the user can run it. Only where it was built can it find the programs of the testkit, so
    /// another user's part has them on the stage.
    fn program(&self) -> PathBuf {
        let program = std::env::current_exe().expect("the running test");
        if self.user == User::current() {
            return program;
        }
        let copy = self.scratch.join("part");
        if !copy.exists() {
            // Not copied by us: a child of another thread could inherit the writing end, and the start would fail.
            let copied = Command::new("cp").arg(program).arg(&copy).status().expect("cp");
            assert!(copied.success());
        }
        copy
    }
}

/// In a part: where it plays; `None` if somebody runs ignored tests for their own sake.
pub(crate) fn stage() -> Option<PathBuf> {
    std::env::var_os(STAGE).map(PathBuf::from)
}

/// In a part: how its sessions are to be held.
pub(crate) fn hold() -> Hold {
    let name = std::env::var(HOLD).expect("a part's hold");
    Hold::ALL.into_iter().find(|hold| format!("{hold:?}") == name).expect("a known hold")
}

/// In a part: its own cgroup, if it has one.
pub(crate) fn group() -> Option<PathBuf> {
    std::env::var_os(GROUP).map(PathBuf::from)
}
