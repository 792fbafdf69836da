//! One owner with its server: a mark, a folder, a group, the files by which they talk to the test, and the means to
//! signal each of them by identity.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use moored_testkit::{MarkGuard, Scratch, Survivor, Target, User, bin, example, kill_at_once, wait_until};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use serde_json::Value;

use crate::cgroups::{self, Delegated};
use crate::endings::OwnerExits;
use crate::setting::Setting;

/// Generous: it only passes when something is wrong.
const DEADLINE: Duration = Duration::from_secs(60);

/// A process of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Owner,
    Outer,
    Inner,
}

/// A session that is up. Ended, whatever became of it, when this value goes: the mark first, the folders last.
pub(crate) struct Stage {
    pub(crate) mark: MarkGuard,
    owner: Owner,
    setting: Setting,
    /// The owner's group, in which a leaf would be.
    group: Option<PathBuf>,
    _delegated: Option<Delegated>,
    scratch: Scratch,
    /// What the owner told about the session.
    pub(crate) session: Value,
}

/// Reaped when it goes; the mark has ended it by then.
struct Owner(Child);

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.0.wait();
    }
}

impl Stage {
    /// Starts an owner with these switches and a server with those, and waits until all that the server starts is up.
    pub(crate) fn set(setting: Setting, owner: &[&str], server: &[&str]) -> Self {
        let mark = MarkGuard::fresh();
        let scratch = Scratch::for_user(setting.user);
        let delegates = setting.user == User::Plain && setting.layers.has("cgroup");
        let delegated = delegates.then(|| Delegated::make(*mark));
        let mut wrap = mark.wrapping().user(setting.user);
        if let Some(group) = &delegated {
            wrap = wrap.cgroup(group.path());
        }
        let mut command = wrap.command(example("moored-containment", "promise_host"), owner);
        command.args(setting.layers.switches());
        for file in ["pids", "go", "report", "runtime"] {
            command.arg(format!("--{file}")).arg(scratch.join(file));
        }
        command.arg("--").arg(bin("misbehave")).args(server).arg("--ready-file").arg(scratch.join("ready"));
        let said = fs::File::create(scratch.join("stderr")).expect("a file in our folder");
        command.current_dir(scratch.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        // A backtrace takes a second to print, in which a panic does not unwind.
        let child = command.env("RUST_BACKTRACE", "0").process_group(0).spawn().expect("the owner");
        let mut stage = Self {
            mark,
            owner: Owner(child),
            setting,
            group: None,
            _delegated: delegated,
            scratch,
            session: Value::Null,
        };
        stage.wait_until_up();
        stage
    }

    fn wait_until_up(&mut self) {
        let started = Instant::now();
        while !(self.scratch.join("pids").exists() && self.scratch.join("ready").exists()) {
            let ended = self.owner.0.try_wait().expect("our child");
            assert!(ended.is_none() && started.elapsed() < DEADLINE, "it does not come up\n{}", self.story());
            std::thread::sleep(Duration::from_millis(1));
        }
        self.session = self.read("pids").expect("JSON from the owner");
        self.group = cgroups::group_of(self.owner.0.id());
    }

    /// Waits until somebody of the session has stopped itself.
    pub(crate) fn wait_for_a_stopped_one(&self) {
        wait_until("somebody has stopped itself", DEADLINE, || {
            self.mark.alive().iter().any(|process| process.state == 'T').then_some(())
        });
    }

    // === what the test does ===

    /// Tells the owner to go on.
    pub(crate) fn go(&self) {
        fs::write(self.scratch.join("go"), "").expect("our folder");
    }

    /// SIGKILL, one after the other; tells when that began, as the other kills do.
    pub(crate) fn kill(&self, who: &[Who]) -> Instant {
        let held: Vec<OwnedFd> = who.iter().map(|who| self.hold(*who)).collect();
        let began = Instant::now();
        for process in held {
            pidfd_send_signal(process, Signal::KILL).expect("it lives until now");
        }
        began
    }

    /// SIGKILL to some of whom none can notice that another is gone. Returns when they are dead.
    pub(crate) fn kill_at_once(&self, who: &[Who]) -> Instant {
        let hold = |who: &Who| Target::hold(self.pid(*who), || self.find(self.pid(*who)).is_some());
        let targets: Option<Vec<Target>> = who.iter().map(hold).collect();
        kill_at_once(&targets.unwrap_or_else(|| panic!("one is gone already\n{}", self.story())))
    }

    /// SIGKILL to the owner's process group, which it leads, as clients do it.
    pub(crate) fn kill_owner_group(&self) -> Instant {
        // Our own unreaped child: neither its number nor its group's can be anybody else's.
        let leader = Pid::from_raw(self.owner.0.id().cast_signed()).expect("a pid");
        let began = Instant::now();
        kill_process_group(leader, Signal::KILL).expect("its group");
        began
    }

    /// What the next start does, by the same user.
    pub(crate) fn sweep(&self) -> Value {
        let mut command = self
            .mark
            .wrapping()
            .user(self.setting.user)
            .command(example("moored-containment", "promise_host"), ["--ending", "sweep"]);
        command.arg("--runtime").arg(self.scratch.join("runtime"));
        command.arg("--report").arg(self.scratch.join("swept")).stdin(Stdio::null());
        let output = command.output().expect("a sweep");
        assert!(output.status.success(), "sweeping failed: {}", String::from_utf8_lossy(&output.stderr));
        self.read("swept").expect("JSON from the sweep")
    }

    // === what the test sees ===

    pub(crate) fn pid(&self, who: Who) -> u32 {
        let name = match who {
            Who::Owner => "host",
            Who::Outer => "outer",
            Who::Inner => "inner",
        };
        let pid = self.session[name].as_u64().and_then(|pid| u32::try_from(pid).ok());
        pid.filter(|pid| *pid > 1).unwrap_or_else(|| panic!("the {name} has no pid\n{}", self.story()))
    }

    /// A hold on a process, which is one of this stage: it carries the mark after it is held.
    fn hold(&self, who: Who) -> OwnedFd {
        let pid = self.pid(who);
        let held = pidfd_open(Pid::from_raw(pid.cast_signed()).expect("a pid"), PidfdFlags::empty());
        assert!(held.is_ok() && self.find(pid).is_some(), "{who:?} is gone already\n{}", self.story());
        held.expect("a live process")
    }

    pub(crate) fn find(&self, pid: u32) -> Option<Survivor> {
        self.mark.alive().into_iter().find(|process| process.pid == pid)
    }

    /// Waits until nobody at all is left, and tells how long that took. Panics after that time, with who is.
    pub(crate) fn assert_nobody_is_left(&self, within: Duration) -> Duration {
        self.mark.wait_until_none(within).unwrap_or_else(|left| {
            panic!("{} left after {within:?}:\n{}\n{}", left.len(), list(&left), self.story())
        })
    }

    /// How the owner ended; waits for it.
    pub(crate) fn assert_owner_exits(&mut self, expected: OwnerExits) {
        let status =
            wait_until("the owner has ended", DEADLINE, || self.owner.0.try_wait().expect("our child"));
        let exited = match (status.code(), status.signal()) {
            (Some(code), _) => OwnerExits::Code(code),
            (None, signal) => OwnerExits::Signal(signal.unwrap_or(0)),
        };
        assert_eq!(exited, expected, "the owner ended otherwise\n{}", self.story());
    }

    /// The owner's report on the end.
    pub(crate) fn report(&self) -> Value {
        self.read("report").unwrap_or_else(|| panic!("the owner wrote no report\n{}", self.story()))
    }

    /// Whether the session is still on record.
    pub(crate) fn is_on_record(&self) -> bool {
        let files = fs::read_dir(self.scratch.join("runtime")).expect("the folder of records").flatten();
        files.into_iter().any(|file| file.path().extension().is_some_and(|ending| ending == "session"))
    }

    /// The session's cgroup leaf, if it is still there.
    pub(crate) fn leaf(&self) -> Option<PathBuf> {
        let name = format!("moored-{}", self.session["id"].as_str().expect("a session has an id"));
        self.group.as_ref().map(|group| group.join(name)).filter(|leaf| leaf.exists())
    }

    fn read(&self, file: &str) -> Option<Value> {
        serde_json::from_str(&fs::read_to_string(self.scratch.join(file)).ok()?).ok()
    }

    /// All that is known, for a message.
    pub(crate) fn story(&self) -> String {
        let file = |name| fs::read_to_string(self.scratch.join(name)).unwrap_or_default();
        format!(
            "session: {}\nreport: {}\nowner said: {}",
            self.session,
            file("report"),
            file("stderr").trim()
        )
    }
}

/// A process a line.
pub(crate) fn list(processes: &[Survivor]) -> String {
    processes.iter().map(|process| format!("  {process}")).collect::<Vec<_>>().join("\n")
}
