//! Where all sessions of a soak play: one user's folders, and what one session does there, to its end.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use moored_containment::ProcessIdentity;
use moored_testkit::{Mark, MarkGuard, Scratch, Survivor, User, bin, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use crate::cast::{Ending, Moment, Part};
use crate::common::scene::moored;
use crate::common::wire::Wire;
use crate::common::{AFTER_ANYTHING, DEADLINE, send};

/// One user, with the folders that all sessions share.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) user: User,
    scratch: Scratch,
    /// Of those who only look.
    mark: MarkGuard,
}

/// How a session went.
#[derive(Debug)]
pub(crate) struct Played {
    /// Who was still there when nobody was to be.
    pub(crate) survivors: Vec<Survivor>,
    /// How long after the end the last one went.
    pub(crate) took: Duration,
}

impl Stage {
    pub(crate) fn new(user: User) -> Self {
        Self { user, scratch: Scratch::for_user(user), mark: MarkGuard::fresh() }
    }

    pub(crate) fn runtime_dir(&self) -> PathBuf {
        self.scratch.join("run")
    }

    fn command<A: AsRef<OsStr>>(&self, mark: Mark, program: &OsStr, args: &[A]) -> Command {
        let mut command = mark.wrapping().user(self.user).command(program, args);
        command.env("HOME", self.scratch.path()).current_dir(self.scratch.path());
        command.env("MOORED_RUNTIME_DIR", self.runtime_dir());
        command.env("MOORED_STATE_DIR", self.scratch.join("state"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// A verb of `moored`, to its end.
    #[track_caller]
    pub(crate) fn moored(&self, args: &[&str]) -> Output {
        let mut command = self.command(*self.mark, moored().as_os_str(), args);
        let output = command.stderr(Stdio::piped()).output().expect("moored");
        assert!(output.status.success(), "moored {args:?}: {output:?}");
        output
    }

    /// Plays one session to its end.
    #[track_caller]
    pub(crate) fn play(&self, part: &Part) -> Played {
        let mark = MarkGuard::fresh();
        let mut wire = Wire::start(self.client(*mark, part));
        match part.moment {
            Moment::Early => {
                find_moored(*mark);
            }
            // It goes by itself, and the client sees that.
            Moment::Serving if matches!(part.ending, Ending::ServerExits | Ending::ServerDies) => {
                expect(&mut wire, "broken");
            }
            Moment::Serving => expect(&mut wire, "ready"),
            Moment::Woken => {
                expect(&mut wire, "ready");
                wait_until("only the client and moored are there", DEADLINE, || {
                    (mark.alive().len() == 2).then_some(())
                });
                wire.write(b"call echo {\"text\":\"awake\"}\n");
                expect(&mut wire, "called");
            }
        }
        let since = Instant::now();
        self.end(part, *mark, &mut wire);
        let client = wire.child.id();
        let survivors = loop {
            let mut left = mark.alive();
            left.retain(|one| one.pid != client);
            if left.is_empty() || since.elapsed() > AFTER_ANYTHING {
                break left;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let took = since.elapsed();
        drop(wire);
        // Looked at thoroughly: one that replaces itself can slip through one look.
        let survivors =
            if survivors.is_empty() { mark.wait_until_none(AFTER_ANYTHING).err() } else { Some(survivors) };
        Played { survivors: survivors.unwrap_or_default(), took }
    }

    /// A client that starts the part's server through `moored run`.
    fn client(&self, mark: Mark, part: &Part) -> Command {
        let mut args: Vec<OsString> = Vec::new();
        args.extend(part.sockets.then(|| "--sockets".into()));
        args.extend(["--".into(), moored().into(), "run".into(), "--name".into(), (&part.name).into()]);
        args.extend(part.options.iter().map(Into::into));
        args.extend(["--".into(), bin("misbehave").into()]);
        args.extend(part.switches.iter().map(Into::into));
        // Makes the entry one of its own, so that no crash is another one's.
        args.extend(["--pid-file".into(), self.scratch.join(format!("{}.pids", part.name)).into()]);
        self.command(mark, bin("client").as_os_str(), &args)
    }

    fn end(&self, part: &Part, mark: Mark, wire: &mut Wire) {
        match part.ending {
            Ending::Eof => {
                wire.write(b"close\n");
                expect(wire, "closed");
            }
            Ending::ClientExits => wire.write(b"exit\n"),
            Ending::ClientKilled => kill(wire.child.id(), Signal::KILL),
            Ending::MooredTerminated => kill(find_moored(mark), Signal::TERM),
            Ending::MooredKilled => kill(find_moored(mark), Signal::KILL),
            Ending::OuterKilled => kill(child_of(mark, find_moored(mark)), Signal::KILL),
            Ending::InnerKilled => kill(child_of(mark, child_of(mark, find_moored(mark))), Signal::KILL),
            Ending::Stopped => {
                self.moored(&["stop", &self.id_of(&part.name)]);
            }
            // They have ended by themselves.
            Ending::ServerExits | Ending::ServerDies => {}
            Ending::ServerCrashes => wire.write(b"call echo {\"text\":\"the last\"}\n"),
        }
    }

    fn id_of(&self, name: &str) -> String {
        let output = self.moored(&["ps", "--json"]);
        let shown: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rows = shown["servers"].as_array().expect("a list");
        let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {shown}"));
        row["id"].as_str().expect("an id").to_owned()
    }
}

/// Reads what the client says until that word.
#[track_caller]
fn expect(wire: &mut Wire, event: &str) {
    loop {
        let line = wire.read_line().unwrap_or_else(|| panic!("the client ended before it said `{event}`"));
        let said: Value = serde_json::from_slice(&line).expect("JSON");
        if said["event"] == event {
            return;
        }
        let has_failed = said["event"] == "broken" || said["event"] == "failed";
        assert!(!has_failed, "waited for `{event}`: {said}");
    }
}

fn find_moored(mark: Mark) -> u32 {
    let program = moored().to_string_lossy().into_owned();
    wait_until("moored is there", DEADLINE, || {
        let alive = mark.alive();
        let is_moored = |one: &&Survivor| one.cmdline.first() == Some(&program);
        alive.iter().find(is_moored).map(|one| one.pid)
    })
}

/// The guardian that this process has started.
fn child_of(mark: Mark, parent: u32) -> u32 {
    wait_until("a guardian is there", DEADLINE, || {
        let is_guardian = |one: &&Survivor| one.ppid == parent && one.comm.starts_with("moored");
        mark.alive().iter().find(is_guardian).map(|one| one.pid)
    })
}

fn kill(pid: u32, signal: Signal) {
    // One that has just ended by itself is no less dead.
    if let Ok(identity) = ProcessIdentity::of(pid) {
        send(&identity, signal);
    }
}
