//! The conversation itself: see the module.

use std::time::Duration;

use super::effects::Effects;
use super::pending::Pending;
use crate::mcp::{Failure, ProtocolState, Replay, error_line, ids_in_batch};
use crate::relay::{Bytes, Envelope};

/// What a conversation has to know of the session's rules.
#[derive(Clone, Debug)]
pub(in crate::session) struct ConversationRules {
    /// Whether `get_server_info` is added to the server's tools.
    pub(in crate::session) info_tool: bool,
    /// The longest message that is passed on, for the error that names it.
    pub(in crate::session) line_limit: usize,
}

/// Whether the client's messages can be passed on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// They wait for one.
    Absent,
    Present,
    /// It is being ended: what it still says is passed on, and messages wait for the next one.
    Leaving,
    /// The same, and another one is to go on where it was.
    FallingAsleep,
    /// None is started for a while, and calls are refused for this reason.
    Refused(String),
}

/// Whose calls are answered with an error, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Failed {
    /// Calls that a server has been told of.
    InFlight,
    /// Messages that wait for one.
    Pending,
}

#[derive(Debug)]
pub(in crate::session) struct Conversation {
    pub(super) rules: ConversationRules,
    pub(super) server: Server,
    /// How many servers there have been.
    pub(super) servers: u64,
    pub(super) protocol: ProtocolState,
    /// The server that was started again is told what its predecessor knew.
    pub(super) replay: Option<Replay>,
    pub(super) pending: Pending,
    /// The `initialize` that a server did not answer before it was put to sleep; the next one is told it first.
    pub(super) unanswered: Option<Vec<u8>>,
    /// Whether the server has a `get_server_info` of its own.
    pub(super) has_own_info: bool,
    /// Whether the client has called something besides `initialize`.
    pub(super) has_calls: bool,
}

impl Conversation {
    pub(in crate::session) fn new(rules: ConversationRules) -> Self {
        Self {
            rules,
            server: Server::Absent,
            servers: 0,
            protocol: ProtocolState::default(),
            replay: None,
            pending: Pending::default(),
            unanswered: None,
            has_own_info: false,
            has_calls: false,
        }
    }

    // === what is known ===

    /// Calls of the client without an answer, told to a server or not.
    pub(in crate::session) fn wanted(&self) -> usize {
        self.protocol.calls() + self.pending.len()
    }

    /// Calls without an answer in both directions, and messages that wait for a server.
    pub(in crate::session) fn unfinished(&self) -> usize {
        self.protocol.in_flight() + self.pending.len()
    }

    /// Nothing is in flight that a client that has closed its end waits for.
    pub(in crate::session) fn is_quiet(&self) -> bool {
        self.wanted() == 0 && self.replay.is_none()
    }

    pub(in crate::session) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(in crate::session) fn pending_bytes(&self) -> usize {
        self.pending.bytes()
    }

    /// The server is still to be told something that the client said.
    pub(in crate::session) fn is_telling(&self) -> bool {
        self.replay.is_some() || self.server == Server::Present && !self.pending.is_empty()
    }

    pub(in crate::session) fn is_replaying(&self) -> bool {
        self.replay.is_some()
    }

    /// The server has answered `initialize`, or (in the era without one) anything.
    pub(in crate::session) fn has_answered(&self) -> bool {
        self.protocol.has_answered()
    }

    /// The client has called something besides `initialize`.
    pub(in crate::session) fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Nothing but `initialize` is in flight, and it was never answered.
    pub(in crate::session) fn is_unanswered(&self) -> bool {
        self.protocol.is_unanswered() && self.pending.is_empty()
    }

    /// Whether the server has tasks, which another one would not know. `now` is the time since boot.
    pub(in crate::session) fn has_tasks(&self, now: Duration) -> bool {
        self.protocol.has_tasks(now)
    }

    /// Whether the server holds something that another one would not have.
    pub(in crate::session) fn has_state(&self, now: Duration) -> bool {
        self.protocol.has_state(now)
    }

    /// Subscriptions and open streams of change notifications.
    pub(in crate::session) fn streams(&self) -> usize {
        self.protocol.streams()
    }

    // === the server comes and goes ===

    /// A server runs. One that is not the first is told what its predecessor knew, before anything else.
    pub(in crate::session) fn server_started(&mut self) -> Effects<'static> {
        let mut effects = Effects::none();
        self.servers += 1;
        self.server = Server::Present;
        match Replay::begin(&self.protocol).filter(|_| self.servers > 1) {
            Some((replay, first)) => {
                self.replay = Some(replay);
                effects.send(Bytes::Owned(first));
            }
            None => {
                let streams = if self.servers > 1 { self.protocol.listen_again() } else { Vec::new() };
                effects.send(Bytes::Owned(streams));
                self.release_pending(&mut effects);
            }
        }
        effects
    }

    /// The server is being put to sleep: an `initialize` that it has not answered is asked of the next one.
    pub(in crate::session) fn server_sleeps(&mut self) {
        self.unanswered = self.protocol.take_unanswered();
        self.server = Server::FallingAsleep;
    }

    /// The server is being ended.
    pub(in crate::session) fn server_leaves(&mut self) {
        match self.server {
            Server::Present => self.server = Server::Leaving,
            // There will be no other one that could answer.
            Server::FallingAsleep => {
                self.server = Server::Leaving;
                if let Some(line) = self.unanswered.take() {
                    self.protocol.hear_client(&Envelope::of(&line), &line);
                }
            }
            Server::Absent | Server::Leaving | Server::Refused(_) => {}
        }
    }

    /// Nothing of the server is left.
    pub(in crate::session) fn server_gone(&mut self) {
        self.server = Server::Absent;
        self.replay = None;
        self.protocol.forget_server_requests();
    }

    /// No server is started for a while: calls are refused at once.
    pub(in crate::session) fn refuse_calls(&mut self, why: String) {
        self.server = Server::Refused(why);
    }

    /// The while is over.
    pub(in crate::session) fn take_calls(&mut self) {
        if matches!(self.server, Server::Refused(_)) {
            self.server = Server::Absent;
        }
    }

    /// The server cannot take its predecessor's place: what it was told again is not waited for.
    pub(in crate::session) fn give_up_replay(&mut self) {
        self.replay = None;
    }

    /// Answers with an error what no server will answer.
    pub(in crate::session) fn fail(
        &mut self,
        which: Failed,
        failure: Failure,
        why: &str,
    ) -> Effects<'static> {
        let mut effects = Effects::none();
        match which {
            Failed::InFlight => {
                for id in self.protocol.take_calls() {
                    effects.reply(&id, error_line(&id, failure, why));
                }
            }
            Failed::Pending => {
                for pending in self.pending.take() {
                    if let Some(envelope) = &pending.envelope {
                        refuse(&mut effects, envelope, &pending.line, failure, why);
                    }
                }
            }
        }
        effects
    }

    /// The server ends with the session: calls that it had and did not answer are as they would be without us.
    pub(in crate::session) fn forget_calls(&mut self) {
        self.protocol.take_calls();
    }

    /// The answer to `get_server_info`, unless the call was answered with an error meanwhile.
    pub(in crate::session) fn answer(&mut self, id: &[u8], line: Vec<u8>) -> Effects<'static> {
        let mut effects = Effects::none();
        if self.protocol.complete_call(id) {
            effects.reply(id, line);
        }
        effects
    }
}

/// Answers a call, or each of a batch, with an error. A batch that is not to be read any more is answered as a whole.
pub(super) fn refuse(
    effects: &mut Effects<'_>,
    envelope: &Envelope,
    line: &[u8],
    failure: Failure,
    why: &str,
) {
    if envelope.batch {
        let ids = if line.is_empty() { vec![b"null".to_vec()] } else { ids_in_batch(line) };
        for id in ids {
            effects.reply(&id, error_line(&id, failure, why));
        }
    } else if let Some(id) = envelope.real_id().filter(|_| envelope.is_request()) {
        effects.reply(id, error_line(id, failure, why));
    }
}
