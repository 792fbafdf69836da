//! An owner in a process of its own.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};

use moored_containment::{EndReport, ProcessIdentity};
use moored_testkit::{MarkGuard, Scratch, User, bin, example, read_pids, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use super::ending::Ending;
use super::group::Group;
use super::hold::{Cell, Hold};
use super::{DEADLINE, kill_at_once, send};

/// What an owner is asked to do; see `examples/promise_host.rs`.
#[derive(Debug)]
pub(crate) struct Plan {
    cell: Cell,
    ending: Ending,
    scratch: Scratch,
    options: Vec<OsString>,
    server: Vec<OsString>,
    waits_for_ready: bool,
    runtime: PathBuf,
}

impl Plan {
    /// A session of that user, held like that, and ended so. The patience with each step is short.
    pub(crate) fn new(cell: Cell, ending: Ending) -> Self {
        let options = ["--grace", "100", "--kill-after", "100", "--ending", ending.word()];
        let scratch = Scratch::for_user(cell.0);
        let options =
            options.into_iter().map(OsString::from).chain(cell.1.host_options().into_iter().map(Into::into));
        let options = options.collect();
        let runtime = scratch.join("run");
        Self { cell, ending, scratch, options, server: Vec::new(), waits_for_ready: true, runtime }
    }

    /// A folder of the session's user.
    pub(crate) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// More options for `promise_host`.
    pub(crate) fn options<T: Into<OsString>>(mut self, options: impl IntoIterator<Item = T>) -> Self {
        self.options.extend(options.into_iter().map(Into::into));
        self
    }

    /// Written down in that folder, beside others.
    pub(crate) fn runtime(mut self, folder: PathBuf) -> Self {
        self.runtime = folder;
        self
    }

    /// `misbehave` with these switches. A server that is to exit by itself does so when all of its tree is up.
    pub(crate) fn misbehave<T: Into<OsString>>(mut self, switches: impl IntoIterator<Item = T>) -> Self {
        self.server = vec![bin("misbehave").into()];
        self.server.extend(switches.into_iter().map(Into::into));
        for (switch, file) in [("--ready-file", "ready"), ("--pid-file", "pids")] {
            self.server.extend([switch.into(), self.scratch.join(file).into_os_string()]);
        }
        if self.ending == Ending::ServerExits {
            self.server.extend(["--exit-now".into(), "0".into()]);
        }
        self
    }

    /// A shell script, with the scratch folder in `$1`. It says that it is ready by making the file `ready` there.
    pub(crate) fn script(mut self, script: &str) -> Self {
        self.server = ["sh", "-c", script, "sh"].map(OsString::from).to_vec();
        self.server.push(self.scratch.path().into());
        self
    }

    /// Nobody says that the server is ready.
    pub(crate) fn without_ready_file(mut self) -> Self {
        self.waits_for_ready = false;
        self
    }

    /// Starts it, and waits until the server is ready.
    pub(crate) fn start(self) -> Host {
        let (user, hold) = self.cell;
        let group = if hold == Hold::Cgroup { Group::for_user(user) } else { None };
        let mark = MarkGuard::fresh();
        let mut wrap = mark.wrapping().user(user);
        if let Some(group) = &group {
            wrap = wrap.cgroup(group.path());
        }
        let scratch = self.scratch;
        let mut command = wrap.command(example("moored-containment", "promise_host"), &self.options);
        for (option, file) in [("--pids", "who"), ("--go", "go"), ("--report", "report")] {
            command.arg(option).arg(scratch.join(file));
        }
        command.arg("--runtime").arg(&self.runtime);
        // A group of its own, so that a test can signal all of it.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.arg("--").args(&self.server).current_dir(scratch.path()).stdin(Stdio::null());
        let errors = File::create(scratch.join("host.err")).expect("a file");
        command.stdout(Stdio::null()).stderr(errors);
        let child = command.spawn().expect("promise_host");
        let (cell, ending, runtime) = (self.cell, self.ending, self.runtime);
        let mut host =
            Host { child, mark, group, scratch, cell, ending, runtime, who: None, id: String::new() };
        host.hear_who(self.waits_for_ready);
        host
    }
}

/// A running owner. Whatever it started is ended with this value.
#[derive(Debug)]
pub(crate) struct Host {
    child: Child,
    pub(crate) mark: MarkGuard,
    pub(crate) group: Option<Group>,
    pub(crate) scratch: Scratch,
    pub(crate) cell: Cell,
    pub(crate) ending: Ending,
    runtime: PathBuf,
    who: Option<Who>,
    id: String,
}

/// Who is who in a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) host: ProcessIdentity,
    pub(crate) outer: ProcessIdentity,
    pub(crate) inner: ProcessIdentity,
    pub(crate) server: u32,
}

impl Host {
    fn hear_who(&mut self, waits_for_ready: bool) {
        let (who, ready) = (self.scratch.join("who"), self.scratch.join("ready"));
        let text = wait_until("the host has started its server", DEADLINE, || {
            let text = fs::read_to_string(&who).ok();
            self.assert_running(text.is_some());
            text
        });
        let numbers: Value = serde_json::from_str(&text).expect("JSON");
        let number = |key: &str| u32::try_from(numbers[key].as_u64().expect("a number")).expect("a pid");
        self.id = numbers["id"].as_str().expect("a name").to_owned();
        let identity = |key: &str| ProcessIdentity::of(number(key));
        // A session that ends by itself may have no guardians any more.
        if let (Ok(host), Ok(outer), Ok(inner)) = (identity("host"), identity("outer"), identity("inner")) {
            self.who = Some(Who { host, outer, inner, server: number("server") });
        }
        if waits_for_ready {
            wait_until("the server is ready", DEADLINE, || ready.exists().then_some(()));
        }
    }

    fn assert_running(&mut self, or: bool) {
        let exit = self.child.try_wait().expect("our child");
        let errors = fs::read_to_string(self.scratch.join("host.err")).unwrap_or_default();
        assert!(or || exit.is_none(), "the host has ended, {exit:?}: {errors}");
    }

    /// Who is who; not of a session that has ended.
    pub(crate) fn who(&self) -> Who {
        self.who.expect("a live session")
    }

    /// The host's own number, which is its group's too.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The session's name.
    pub(crate) fn id(&self) -> String {
        self.id.clone()
    }

    pub(crate) fn user(&self) -> User {
        self.cell.0
    }

    /// The session's folder of records.
    pub(crate) fn runtime(&self) -> PathBuf {
        self.runtime.clone()
    }

    /// The pids that `misbehave` and its own wrote down.
    pub(crate) fn pids(&self) -> Vec<u32> {
        read_pids(self.scratch.join("pids"))
    }

    /// Lets the host go on to its ending.
    pub(crate) fn go(&self) {
        File::create(self.scratch.join("go")).expect("a file");
    }

    /// Brings the session to its end, in the way it was planned.
    pub(crate) fn bring_end(&self) {
        self.go();
        match self.ending {
            Ending::HostKilled => self.kill([self.who().host]),
            Ending::OuterKilled => self.kill([self.who().outer]),
            Ending::InnerKilled => self.kill([self.who().inner]),
            Ending::HostAndOuterKilled => self.kill([self.who().outer, self.who().host]),
            Ending::HostAndInnerKilled => self.kill([self.who().inner, self.who().host]),
            _ => {}
        }
    }

    /// SIGKILL, one right after the other. A server may have killed a guardian before us.
    fn kill<const N: usize>(&self, who: [ProcessIdentity; N]) {
        for process in who {
            send(&process, Signal::KILL);
        }
    }

    /// SIGKILL to all three of ours at once: none sees another go.
    pub(crate) fn kill_all_of_ours(&self) {
        let who = self.who();
        kill_at_once(&[who.host, who.outer, who.inner]);
    }

    /// The same of both guardians: the owner alone is left.
    pub(crate) fn kill_both_guardians(&self) {
        kill_at_once(&[self.who().outer, self.who().inner]);
    }

    /// Waits for the host's own end.
    pub(crate) fn exit(&mut self) -> ExitStatus {
        wait_until("the host has ended", DEADLINE, || self.child.try_wait().expect("our child"))
    }

    /// The report, if the host lives to write one.
    pub(crate) fn report(&self) -> Option<EndReport> {
        let path = self.scratch.join("report");
        self.ending.has_report().then(|| wait_until("a report", DEADLINE, || read_report(&path)))
    }
}

fn read_report(path: &Path) -> Option<EndReport> {
    Some(serde_json::from_str(&fs::read_to_string(path).ok()?).expect("a report"))
}

impl Drop for Host {
    fn drop(&mut self) {
        // Our own unreaped child.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
