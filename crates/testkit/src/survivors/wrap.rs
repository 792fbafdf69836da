//! Starts programs under a mark, by way of the bin `marked`.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use super::{Mark, watcher};
use crate::as_user::User;
use crate::bins::bin;

/// How a program is to be started under a mark.
#[derive(Clone, Debug)]
pub struct Wrap {
    mark: Mark,
    args: Vec<OsString>,
}

impl Wrap {
    pub(super) fn new(mark: Mark) -> Self {
        Self { mark, args: vec![mark.value().to_string().into()] }
    }

    /// Runs it as this user. Dropping root clears the supplementary groups too.
    pub fn user(mut self, user: User) -> Self {
        if rustix::process::geteuid().is_root() && user == User::Plain {
            let (uid, gid) = (user.uid().to_string(), user.gid().to_string());
            self.args.extend(["--uid".into(), uid.into(), "--gid".into(), gid.into()]);
        }
        self
    }

    /// Moves it into the cgroup at this folder before root is dropped. May be given once per hierarchy.
    pub fn cgroup(mut self, folder: impl AsRef<Path>) -> Self {
        self.args.extend(["--cgroup".into(), folder.as_ref().into()]);
        self
    }

    /// Limits how many fds it can have open.
    pub fn nofile(self, limit: u64) -> Self {
        self.rlimit("nofile", limit)
    }

    /// Limits how many processes its user can have. Root is not bound by it.
    pub fn nproc(self, limit: u64) -> Self {
        self.rlimit("nproc", limit)
    }

    fn rlimit(mut self, name: &str, limit: u64) -> Self {
        self.args.extend(["--rlimit".into(), format!("{name}={limit}").into()]);
        self
    }

    /// The command. The caller sets stdio and environment, and spawns.
    pub fn command<I>(self, program: impl AsRef<OsStr>, args: I) -> Command
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        watcher::watch(self.mark);
        let mut command = Command::new(bin("marked"));
        command.args(self.args).arg("--").arg(program).args(args);
        command
    }
}
