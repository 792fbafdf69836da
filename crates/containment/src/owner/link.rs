//! The owner's end of a session: what both handles, the blocking and the async one, are made of.
//!
//! It hears the guardians and asks them to end; it never waits in [`Link::hear`], so that either handle can wait in its
//! own way. If both guardians are gone without a word, it does by record and mark what they would have done
//! (`conclude`). How the blocking handle waits is in `waiting`.

mod conclude;
mod waiting;

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::owner::command::Command;
use crate::owner::report::{EndReport, ServerExit};
use crate::owner::signaller::Signaller;
use crate::owner::strength::Strength;
use crate::process::identity::{BootId, ProcessIdentity, hold_child};
use crate::record::cookie::SessionId;
use crate::record::runtime_dir::OwnRecord;
use crate::record::session_record::Record;
use crate::shared::board::{Word, packet, reason};
use crate::shared::ladder::Ladder;
use crate::sys::{self, Heard};

/// How much longer than its own bound an ending may take, before a guardian counts as stuck.
const SLACK: Duration = Duration::from_secs(3);
/// How often, while an end is waited for, guardians that may have been stopped get SIGCONT.
pub(crate) const SET_GOING_EVERY: Duration = Duration::from_millis(100);

/// Why there is no report, or no status.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndError {
    /// Both guardians were killed, and with them went the knowledge of how the server ended.
    #[error("both guardians of session `{session}` were killed before they saw how its server ended")]
    StatusLost {
        /// The session's id.
        session: SessionId,
    },
    /// The guardians neither ended the tree nor died.
    #[error("the guardians of session `{session}` do not answer")]
    Stuck {
        /// The session's id.
        session: SessionId,
    },
    /// This process is not the one that started the session, but a fork of it.
    #[error("session `{session}` belongs to another process")]
    NotOwner {
        /// The session's id.
        session: SessionId,
    },
    /// Something else.
    #[error("failed to hear from the guardians of session `{session}`")]
    Io {
        /// The session's id.
        session: SessionId,
        /// What the kernel said.
        source: io::Error,
    },
}

#[derive(Debug)]
pub(crate) struct Link {
    record: Record,
    file: Option<OwnRecord>,
    shared: sys::SharedBoard,
    socket: sys::Socket,
    outer: sys::GuardianChild,
    /// `None` if it had ended already, or there was no file to be had for it.
    inner: Option<sys::ProcessFd>,
    server: Arc<sys::ProcessFd>,
    /// Its pidfd was seen readable: from then on the guardians are at work, or were stopped by the server before it ended.
    server_died: bool,
    identity: ProcessIdentity,
    guardians: [ProcessIdentity; 2],
    strength: Strength,
    report: Option<EndReport>,
    drop_ladder: Ladder,
    on_end_patience: Duration,
    owner: u32,
}

impl Link {
    /// Binds what was started to its record.
    pub(crate) fn new(
        record: Record,
        mut file: Option<OwnRecord>,
        shared: sys::SharedBoard,
        socket: sys::Socket,
        outer: sys::GuardianChild,
        server: OwnedFd,
        command: &Command,
    ) -> Self {
        let board = shared.board();
        let word = |word| u32::try_from(board.get(word)).unwrap_or(0);
        // Its number here, which in a PID namespace is not the number that the guardian knows. A server that has ended
        // already has none any more.
        let pid = sys::pid_of_pidfd(server.as_fd()).unwrap_or_else(|_| word(Word::ServerPid));
        let boot = BootId::current().unwrap_or(record.owner.boot);
        let identity = ProcessIdentity { pid, start_ticks: board.get(Word::ServerTicks), boot };
        let guardians = [Word::OuterPid, Word::InnerPid].map(|w| {
            let pid = word(w);
            ProcessIdentity::of(pid).unwrap_or(ProcessIdentity { pid, start_ticks: 0, boot })
        });
        let inner = hold_child(word(Word::InnerPid), outer.process(), word(Word::OuterPid));
        let strength = Strength::from_bits(board.get(Word::Layers), file.is_some());
        if let Some(file) = &mut file {
            file.bind(&[guardians[0], guardians[1], identity]);
        }
        Self {
            record,
            file,
            socket,
            outer,
            inner,
            server: Arc::new(sys::ProcessFd::from_fd(server)),
            server_died: false,
            identity,
            guardians,
            strength,
            report: None,
            drop_ladder: command.drop_ladder,
            on_end_patience: command.on_end_patience,
            owner: std::process::id(),
            shared,
        }
    }

    pub(crate) fn id(&self) -> SessionId {
        self.record.id
    }

    pub(crate) fn identity(&self) -> ProcessIdentity {
        self.identity
    }

    pub(crate) fn guardians(&self) -> [ProcessIdentity; 2] {
        self.guardians
    }

    pub(crate) fn strength(&self) -> &Strength {
        &self.strength
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn socket(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The server, to be watched by an owner that awaits its end.
    #[cfg(feature = "tokio")]
    pub(crate) fn server(&self) -> Arc<sys::ProcessFd> {
        Arc::clone(&self.server)
    }

    pub(crate) fn signaller(&self) -> Signaller {
        Signaller::new(Arc::clone(&self.server))
    }

    /// How the server ended, if it has and a guardian saw it.
    pub(crate) fn exit(&self) -> Option<ServerExit> {
        ServerExit::from_word(self.shared.board().get(Word::ServerStatus))
    }

    /// The same, with what was said since; an error if both guardians were killed before they saw it.
    pub(crate) fn try_exit(&mut self) -> Result<Option<ServerExit>, EndError> {
        self.hear()?;
        if self.report.is_none() && !self.server.is_alive() {
            self.note_server_death();
        }
        match (self.exit(), self.report()) {
            (None, Some(report)) => Err(EndError::StatusLost { session: report.session }),
            (exit, _) => Ok(exit),
        }
    }

    pub(crate) fn report(&self) -> Option<&EndReport> {
        self.report.as_ref()
    }

    pub(crate) fn owns(&self) -> bool {
        std::process::id() == self.owner
    }

    fn io(&self, source: io::Error) -> EndError {
        EndError::Io { session: self.id(), source }
    }

    /// Takes in what the guardians said so far; never waits for more.
    pub(crate) fn hear(&mut self) -> Result<(), EndError> {
        if !self.owns() {
            // A fork of the owner would take away what the owner waits for.
            return Err(EndError::NotOwner { session: self.id() });
        }
        while self.report.is_none() {
            match self.socket.hear().map_err(|error| self.io(error))? {
                Heard::Nothing => return Ok(()),
                Heard::Packet(packet::ENDED, _) => self.conclude(),
                // What it says is on the board.
                Heard::Packet(..) => {}
                Heard::Closed => self.conclude_alone()?,
            }
        }
        Ok(())
    }

    /// Gives the reason before anything is done about it: a server that ends at the end of its input may be quicker than
    /// our request.
    pub(crate) fn announce(&self, reason: u64) {
        self.shared.board().set_once(Word::Reason, reason);
    }

    /// Asks for an end. A guardian that was stopped gets SIGCONT; one that is gone is noticed by [`Link::hear`].
    pub(crate) fn ask(&self, reason: u64, ladder: &Ladder) {
        let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        let [grace, kill_after, verify] = [ladder.grace, ladder.kill_after, ladder.verify].map(nanos);
        let _ = self.socket.tell([packet::END, reason, ladder.from.code(), grace, kill_after, verify]);
        self.resume_guardians();
    }

    /// SIGCONT to both guardians: one that was stopped goes on, the other does not notice.
    pub(crate) fn resume_guardians(&self) {
        const SIGCONT: i32 = 18;
        for guardian in [Some(self.outer.process()), self.inner.as_ref()].into_iter().flatten() {
            let _ = guardian.send(SIGCONT);
        }
    }

    /// How long an ending by that ladder may take before a guardian counts as stuck.
    pub(crate) fn patience(&self, ladder: &Ladder) -> Duration {
        let on_end = if self.record.on_end.is_empty() { Duration::ZERO } else { self.on_end_patience };
        ladder.bound().saturating_add(ladder.verify).saturating_add(on_end).saturating_add(SLACK)
    }

    /// The guardians took longer than they may: end the one that is at work, so that the other has to finish.
    pub(crate) fn give_up_on_one(&self) {
        const SIGKILL: i32 = 9;
        if self.shared.board().get(Word::TreeDone) != 0 {
            let _ = self.outer.process().send(SIGKILL);
        } else if let Some(inner) = &self.inner {
            let _ = inner.send(SIGKILL);
        }
    }

    pub(crate) fn stuck(&self) -> EndError {
        EndError::Stuck { session: self.id() }
    }

    /// Ends the tree, without any runtime.
    pub(crate) fn end(&mut self, reason: u64, ladder: &Ladder) -> Result<EndReport, EndError> {
        if !self.owns() {
            return Err(EndError::NotOwner { session: self.id() });
        }
        if self.report.is_none() {
            self.ask(reason, ladder);
            if !self.wait_for_end(self.patience(ladder))? {
                self.give_up_on_one();
                if !self.wait_for_end(self.patience(ladder))? {
                    self.give_up_on_both()?;
                }
            }
        }
        self.report.clone().ok_or_else(|| self.stuck())
    }

    /// Asks for an end as a drop does.
    pub(crate) fn ask_dropped(&self) {
        if self.report.is_none() {
            self.ask(reason::DROPPED, &self.drop_ladder);
        }
    }

    /// Ends the tree as a drop does.
    pub(crate) fn end_dropped(&mut self) -> Result<EndReport, EndError> {
        let ladder = self.drop_ladder;
        self.end(reason::DROPPED, &ladder)
    }
}

/// The synchronous last resort of both handles: works without a runtime, in a panic, and when a handle could not even be
/// made. A fork of the owner leaves the session alone.
impl Drop for Link {
    fn drop(&mut self) {
        if self.owns() && self.report.is_none() {
            // An error changes nothing: the guardians go on without us if this fails.
            let _ = self.end_dropped();
        }
    }
}
