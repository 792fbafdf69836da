//! A client that has started its server: what can be done to it, and what must be left of it afterwards.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use moored_containment::ProcessIdentity;
use moored_testkit::{Survivor, wait_until};
use rustix::process::{Pid, Signal};
use serde_json::Value;

use super::scene::{Scene, moored};
use super::{DEADLINE, send};

/// A client, the `moored run` that it started, and all that is below.
#[derive(Debug)]
pub(crate) struct Playing {
    child: Child,
    orders: Option<ChildStdin>,
    heard: Receiver<String>,
    /// When the last thing was done to it.
    since: Instant,
    killed: Vec<u32>,
    moored: Option<ProcessIdentity>,
    pub(crate) scene: Scene,
}

/// Who holds a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holders {
    pub(crate) moored: ProcessIdentity,
    pub(crate) outer: ProcessIdentity,
    pub(crate) inner: ProcessIdentity,
}

/// Those of [`Holders`] that are there at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) moored: Option<ProcessIdentity>,
    pub(crate) outer: Option<ProcessIdentity>,
    pub(crate) inner: Option<ProcessIdentity>,
}

impl Playing {
    pub(super) fn new(scene: Scene, mut child: Child) -> Self {
        let (tell, heard) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        // Ends with the client's stdout, which nothing of the scene outlives.
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        let orders = child.stdin.take();
        Self { child, orders, heard, since: Instant::now(), killed: Vec::new(), moored: None, scene }
    }

    /// The next thing that the client says.
    #[track_caller]
    pub(crate) fn event(&mut self) -> Value {
        match self.heard.recv_timeout(DEADLINE) {
            Ok(line) => serde_json::from_str(&line).expect("one JSON object a line"),
            Err(error) => panic!("the client says nothing ({error}):\n{}", self.words()),
        }
    }

    /// The next thing of that kind; what it says before is passed over.
    #[track_caller]
    pub(crate) fn event_named(&mut self, name: &str) -> Value {
        loop {
            let event = self.event();
            if event["event"] == name {
                return event;
            }
        }
    }

    /// Whatever the client, moored and the server have written to stderr.
    pub(crate) fn words(&self) -> String {
        let words = fs::read(self.scene.scratch.join("client.err")).unwrap_or_default();
        String::from_utf8_lossy(&words).into_owned()
    }

    /// Gives an order. The client may be gone already, which shows in what it says.
    pub(crate) fn order(&mut self, order: &str) {
        self.since = Instant::now();
        let _ = self.orders.as_mut().expect("a client that obeys").write_all(format!("{order}\n").as_bytes());
    }

    /// Calls the tool `echo`, and checks what it says.
    #[track_caller]
    pub(crate) fn assert_echo(&mut self, text: &str) {
        self.order(&format!(r#"call echo {{"text":"{text}"}}"#));
        let event = self.event();
        assert_eq!(event["result"]["content"][0]["text"], text, "{event}\n{}", self.words());
    }

    /// The client itself.
    pub(crate) fn client(&self) -> ProcessIdentity {
        ProcessIdentity::of(self.child.id()).expect("our child")
    }

    /// The client, unless it has been reaped.
    pub(crate) fn try_client(&self) -> Option<ProcessIdentity> {
        ProcessIdentity::of(self.child.id()).ok()
    }

    /// Whether the client has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("our child").is_some()
    }

    /// The moored that the client started, and its two guardians.
    #[track_caller]
    pub(crate) fn holders(&mut self) -> Holders {
        let holders = wait_until("moored and its guardians are up", DEADLINE, || {
            let Seen { moored, outer, inner } = self.look();
            Some(Holders { moored: moored?, outer: outer?, inner: inner? })
        });
        self.moored = Some(holders.moored);
        holders
    }

    /// Which of those are there at this moment.
    pub(crate) fn look(&self) -> Seen {
        let is_moored =
            |s: &&Survivor| s.cmdline.first().is_some_and(|word| *word == *moored().to_string_lossy());
        let alive = self.scene.mark.alive();
        let child_of =
            |pid: u32| alive.iter().find(|s| s.ppid == pid && s.comm.starts_with("moored")).map(|s| s.pid);
        let moored = alive.iter().find(is_moored).map(|s| s.pid);
        let outer = moored.and_then(child_of);
        let inner = outer.and_then(child_of);
        let identity = |pid: Option<u32>| pid.and_then(|pid| ProcessIdentity::of(pid).ok());
        Seen { moored: identity(moored), outer: identity(outer), inner: identity(inner) }
    }

    /// Sends a signal; whoever is to get it must be there.
    #[track_caller]
    pub(crate) fn send(&mut self, to: &ProcessIdentity, signal: Signal) {
        self.since = Instant::now();
        assert!(send(to, signal), "{to:?} is gone already:\n{}", self.words());
        self.killed.extend((signal == Signal::KILL).then_some(to.pid));
    }

    /// Sends it to several, with as little as possible between.
    pub(crate) fn send_all(&mut self, to: &[ProcessIdentity], signal: Signal) {
        self.since = Instant::now();
        for one in to {
            // The first may take the next with it.
            send(one, signal);
            self.killed.extend((signal == Signal::KILL).then_some(one.pid));
        }
    }

    #[track_caller]
    pub(crate) fn kill_client(&mut self) {
        let client = self.client();
        self.send(&client, Signal::KILL);
        self.child.wait().expect("our child");
    }

    /// What a client's own `killpg` does, and a terminal that goes: SIGKILL to the client and all in its group.
    pub(crate) fn kill_group(&mut self) {
        self.since = Instant::now();
        self.killed.extend(self.moored.map(|moored| moored.pid));
        let group = Pid::from_child(&self.child);
        rustix::process::kill_process_group(group, Signal::KILL).expect("the group of our child");
        self.child.wait().expect("our child");
    }

    /// How the client ended.
    #[track_caller]
    pub(crate) fn exit(&mut self) -> ExitStatus {
        wait_until("the client has ended", DEADLINE, || self.child.try_wait().expect("our child"))
    }

    /// Nobody of the tree, of moored and of the client is alive, so long after the last thing that was done at the
    /// latest; and no file of a `run` is left.
    #[track_caller]
    pub(crate) fn assert_gone_within(&mut self, bound: Duration) -> Duration {
        let took = self.assert_gone_but(bound, |_| false);
        self.assert_no_files();
        took
    }

    /// The same, for when somebody else may have killed moored.
    #[track_caller]
    pub(crate) fn assert_all_dead_within(&mut self, bound: Duration) -> Duration {
        self.killed.extend(self.moored.map(|moored| moored.pid));
        self.assert_gone_within(bound)
    }

    /// The same, but for the client, who lives on and has nobody.
    #[track_caller]
    pub(crate) fn assert_only_client_within(&mut self, bound: Duration) -> Duration {
        let client = self.child.id();
        let took = self.assert_gone_but(bound, |survivor| survivor.pid == client);
        self.assert_no_files();
        took
    }

    /// The same, but for those who are none of the session's, and without a look at the files.
    #[track_caller]
    pub(crate) fn assert_gone_but(
        &mut self,
        bound: Duration,
        spared: impl Fn(&Survivor) -> bool,
    ) -> Duration {
        let (mark, since) = (*self.scene.mark, self.since);
        loop {
            let left: Vec<_> = mark.alive().into_iter().filter(|survivor| !spared(survivor)).collect();
            let took = since.elapsed();
            if left.is_empty() {
                // Looked at twice: one that replaces itself can slip through one look.
                let again: Vec<_> = mark.alive().into_iter().filter(|survivor| !spared(survivor)).collect();
                assert!(again.is_empty(), "{:?}: came back: {again:#?}", self.scene.user);
                return took;
            }
            assert!(
                took <= bound,
                "{:?}: alive after {took:?}: {left:#?}\n{}",
                self.scene.user,
                self.words()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// A moored that was killed cannot remove its own two files: the next who looks does. The record of the session goes
    /// with its guardians in any case.
    #[track_caller]
    pub(crate) fn assert_no_files(&self) {
        let moored_was_killed = self.moored.is_some_and(|moored| self.killed.contains(&moored.pid));
        let is_moored_s = |path: &PathBuf| path.extension().is_some_and(|e| e == "run" || e == "sock");
        let mut found = self.scene.files_but_spool();
        found.retain(|path| !(moored_was_killed && is_moored_s(path)));
        assert!(found.is_empty(), "{:?}: {found:?}", self.scene.user);
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        // Our own unreaped child; the scene's guard ends the rest.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
