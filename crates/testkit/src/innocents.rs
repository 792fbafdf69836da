//! Bystanders: processes that look much like those under test, belong to nobody's session, and can prove at the end that
//! nobody signalled them.
//!
//! A bystander catches every signal that can be caught (`server/bystander.rs`) and tells which ones came. KILL shows in
//! its exit, STOP in its silence.

#![expect(
    clippy::disallowed_methods,
    reason = "a bystander must be a stranger to the containment under test"
)]

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::as_user::User;
use crate::bins::bin;
use crate::proc::Proc;
use crate::server::BYSTANDER;

/// How long a bystander may take to answer on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Which process group a bystander stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Group {
    /// The test's.
    #[default]
    Inherited,
    /// One of its own.
    Own,
    /// That of this leader, which must be in the test's session.
    Of(u32),
}

/// A process that nobody may signal. Ended when it goes out of scope, and by itself if the test dies first.
#[derive(Debug)]
pub struct Bystander {
    child: Child,
}

impl Bystander {
    /// A bystander of the current user, in the test's own group.
    pub fn spawn() -> Self {
        Self::spawn_as(User::current(), Group::Inherited)
    }

    /// A bystander of any user and group. Returns when it is watching.
    pub fn spawn_as(user: User, group: Group) -> Self {
        let mut command = Command::new(bin("misbehave"));
        command.arg(BYSTANDER).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        if user != User::current() {
            command.uid(user.uid()).gid(user.gid());
        }
        match group {
            Group::Inherited => {}
            Group::Own => drop(command.process_group(0)),
            Group::Of(leader) => drop(command.process_group(leader.cast_signed())),
        }
        let mut bystander = Self { child: command.spawn().expect("a bystander") };
        bystander.assert_untouched();
        bystander
    }

    /// Its pid, good for as long as this value lives.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Panics if anybody has ever signalled it.
    #[track_caller]
    pub fn assert_untouched(&mut self) {
        if let Err(evidence) = self.testimony() {
            panic!("bystander {} was touched: {evidence}", self.pid());
        }
    }

    /// `Ok` if nobody has ever signalled it, else the evidence.
    pub fn testimony(&mut self) -> Result<(), String> {
        match self.ask() {
            Ok(signals) if signals.is_empty() => Ok(()),
            Ok(signals) => Err(format!("it received signals {signals}")),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(format!("it does not answer, its state is {:?}", self.state()))
            }
            // Its pipes are closed: it is dying, if not dead already.
            Err(_) => Err(format!("it ended, {}", self.child.wait().expect("our child"))),
        }
    }

    fn state(&self) -> Option<char> {
        Proc::open().ok()?.stat(self.pid()).ok()?.map(|stat| stat.state)
    }

    fn ask(&mut self) -> io::Result<String> {
        self.child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(b"?\n")?;
        let stdout = self.child.stdout.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let start = Instant::now();
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let left = PATIENCE.checked_sub(start.elapsed()).ok_or(io::ErrorKind::TimedOut)?;
            let timeout = Timespec::try_from(left).expect("some seconds");
            let mut fds = [PollFd::new(&*stdout, PollFlags::IN)];
            // A signal to the test itself does not end the question.
            if rustix::io::retry_on_intr(|| poll(&mut fds, Some(&timeout)))? > 0 {
                let mut byte = [0];
                stdout.read_exact(&mut byte)?;
                line.extend(byte);
            }
        }
        Ok(String::from_utf8_lossy(&line).trim().to_owned())
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        // Our own unreaped child: its pid cannot have passed to another.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
