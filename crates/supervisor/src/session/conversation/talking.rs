//! The conversation itself: see the module.

use std::time::Duration;

use super::effects::{Effects, ServerInfo};
use super::pending::Pending;
use crate::mcp::{Failure, ProtocolState, Replay, ServerSaid, Step, error_line, ids_in_batch, info_tool};
use crate::relay::{Bytes, Envelope, Piece};

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
enum Server {
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
    rules: ConversationRules,
    server: Server,
    /// How many servers there have been.
    servers: u64,
    protocol: ProtocolState,
    /// The server that was started again is told what its predecessor knew.
    replay: Option<Replay>,
    pending: Pending,
    /// The `initialize` that a server did not answer before it was put to sleep; the next one is told it first.
    unanswered: Option<Vec<u8>>,
    /// Whether the server has a `get_server_info` of its own.
    has_own_info: bool,
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

    /// The server that runs has been told all that the client said.
    pub(in crate::session) fn has_told_all(&self) -> bool {
        self.replay.is_none() && self.pending.is_empty()
    }

    pub(in crate::session) fn is_replaying(&self) -> bool {
        self.replay.is_some()
    }

    /// The server has answered `initialize`, or (in the era without one) anything.
    pub(in crate::session) fn has_answered(&self) -> bool {
        self.protocol.has_answered()
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
        if self.server == Server::Present {
            self.server = Server::Leaving;
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

    // === from the client ===

    pub(in crate::session) fn hear_client<'a>(&mut self, piece: Piece<'a>) -> Effects<'a> {
        match piece {
            Piece::Message(line, envelope) => self.client_message(line, envelope),
            Piece::Raw(bytes) => self.client_raw(bytes),
            Piece::TooLong(envelope) => self.client_too_long(&envelope),
        }
    }

    /// There is a server that knows all that its predecessor knew.
    fn takes_messages(&self) -> bool {
        self.server == Server::Present && self.replay.is_none()
    }

    fn client_message<'a>(&mut self, line: Bytes<'a>, envelope: Envelope) -> Effects<'a> {
        let mut effects = Effects::none();
        if let Server::Refused(why) = &self.server {
            refuse(&mut effects, &envelope, &line, Failure::NotStarted, why);
            return effects;
        }
        if self.is_for_us(&envelope, &line) {
            self.protocol.hear_client(&envelope, &line);
            effects.next.info_wanted.extend(envelope.real_id().map(<[u8]>::to_vec));
            return effects;
        }
        if envelope.is_response() && !self.protocol.expects(&envelope) && self.had_others() {
            // An answer to a server that is gone: to its successor it would be an answer to something else.
            return effects;
        }
        // While the server is told what its predecessor knew it may ask something itself, and wait for the answer.
        let is_awaited = self.server == Server::Present && envelope.is_response();
        if self.takes_messages() || is_awaited {
            self.protocol.hear_client(&envelope, &line);
            effects.send(line);
            return effects;
        }
        self.pending.push(line.into_owned(), Some(envelope));
        effects.next.wants_server = true;
        effects
    }

    fn client_raw<'a>(&mut self, bytes: &'a [u8]) -> Effects<'a> {
        let mut effects = Effects::none();
        match self.server {
            Server::Present if self.replay.is_none() => effects.send(Bytes::Borrowed(bytes)),
            // There will be no server for it.
            Server::Refused(_) => {}
            Server::Present | Server::Absent | Server::Leaving | Server::FallingAsleep => {
                self.pending.push(bytes.to_vec(), None);
                effects.next.wants_server = true;
            }
        }
        effects
    }

    /// The one call fails, nothing else does.
    fn client_too_long(&mut self, envelope: &Envelope) -> Effects<'static> {
        let why = format!("the message is longer than {} bytes", self.rules.line_limit);
        let mut effects = Effects::none();
        if envelope.is_request() || envelope.batch {
            refuse(&mut effects, envelope, b"", Failure::TooLong, &why);
        } else if let Some(id) = envelope.real_id().filter(|_| envelope.is_response()) {
            effects.send(Bytes::Owned(error_line(id, Failure::TooLong, &why)));
        }
        effects.next.warnings.push(format!("a message of the client was dropped: {why}"));
        effects
    }

    fn release_pending(&mut self, effects: &mut Effects<'_>) {
        if let Some(line) = self.unanswered.take() {
            self.protocol.hear_client(&Envelope::of(&line), &line);
            effects.send(Bytes::Owned(line));
        }
        for pending in self.pending.take() {
            if let Some(envelope) = &pending.envelope {
                self.protocol.hear_client(envelope, &pending.line);
            }
            effects.send(Bytes::Owned(pending.line));
        }
    }

    /// Whether another server has been here before the one that runs now.
    fn had_others(&self) -> bool {
        self.server != Server::Present || self.servers > 1
    }

    fn is_for_us(&self, envelope: &Envelope, line: &[u8]) -> bool {
        self.rules.info_tool
            && !self.has_own_info
            && envelope.is_request()
            && envelope.method() == Some("tools/call")
            && info_tool::is_called_by(line)
    }

    // === from the server ===

    /// `now` is the time since boot.
    pub(in crate::session) fn hear_server<'a>(&mut self, piece: Piece<'a>, now: Duration) -> Effects<'a> {
        match piece {
            Piece::Message(line, envelope) => self.server_message(line, envelope, now),
            Piece::Raw(bytes) => {
                let mut effects = Effects::none();
                effects.pass(Bytes::Borrowed(bytes), None);
                effects
            }
            Piece::TooLong(envelope) => self.server_too_long(&envelope),
        }
    }

    fn server_message<'a>(&mut self, line: Bytes<'a>, envelope: Envelope, now: Duration) -> Effects<'a> {
        let mut effects = Effects::none();
        if self.replayed(&envelope, &line, &mut effects)
            || self.protocol.is_known(&envelope, &line)
            || self.is_outlived(&envelope)
        {
            return effects;
        }
        let lists_tools = self.rules.info_tool
            && envelope.real_id().and_then(|id| self.protocol.method_of(id)) == Some("tools/list");
        if let ServerSaid::Initialized { name, version } = self.protocol.hear_server(&envelope, &line, now) {
            effects.next.initialized = Some(ServerInfo { name, version });
        }
        let line = if lists_tools { self.with_info_tool(line) } else { line };
        let answers = if envelope.is_response() { envelope.id } else { None };
        effects.pass(line, answers);
        effects
    }

    /// Whether a server that goes to sleep ends with this what its successor is to go on with: a stream, or an `initialize`
    /// that it has not answered in time.
    fn is_outlived(&self, envelope: &Envelope) -> bool {
        self.server == Server::FallingAsleep
            && (self.protocol.ends_stream(envelope) || (self.unanswered.is_some() && envelope.is_response()))
    }

    /// Whether the message was an answer to what we said again.
    fn replayed(&mut self, envelope: &Envelope, line: &[u8], effects: &mut Effects<'_>) -> bool {
        let Some(replay) = self.replay.as_mut() else { return false };
        let step = replay.hear_server(envelope, line);
        let changes = replay.is_done().then(|| replay.take_changes());
        if matches!(step, Step::Send(_) | Step::Done(_))
            && let ServerSaid::Initialized { name, version } = self.protocol.hear_again(envelope, line)
        {
            effects.next.initialized = Some(ServerInfo { name, version });
        }
        match step {
            Step::Pass => return false,
            Step::Send(lines) => {
                effects.send(Bytes::Owned(lines));
                if let Some(changes) = changes {
                    self.caught_up(changes, effects);
                }
            }
            Step::Done(changes) => self.caught_up(changes, effects),
            Step::Failed(why) => effects.next.misfit = Some(format!("it refuses `initialize`: {why}")),
        }
        true
    }

    fn caught_up(&mut self, changes: Vec<u8>, effects: &mut Effects<'_>) {
        self.replay = None;
        effects.tell(changes);
        if self.server == Server::Present {
            self.release_pending(effects);
        }
    }

    fn server_too_long(&mut self, envelope: &Envelope) -> Effects<'static> {
        let why = format!("the server's message is longer than {} bytes", self.rules.line_limit);
        let mut effects = Effects::none();
        if let Some(id) = envelope.real_id() {
            let line = error_line(id, Failure::TooLong, &why);
            if envelope.is_response() {
                self.protocol.complete_call(id);
                effects.reply(id, line);
            } else {
                effects.send(Bytes::Owned(line));
            }
        }
        effects.next.warnings.push(format!("a message of the server was dropped: {why}"));
        effects
    }

    fn with_info_tool<'a>(&mut self, line: Bytes<'a>) -> Bytes<'a> {
        match info_tool::add_to(&line) {
            info_tool::Listed::Added(added) if !self.has_own_info => Bytes::Owned(added),
            info_tool::Listed::ServersOwn => {
                self.has_own_info = true;
                line
            }
            info_tool::Listed::Added(_) | info_tool::Listed::Untouched => line,
        }
    }
}

/// Answers a call, or each of a batch, with an error. A batch that is not to be read any more is answered as a whole.
fn refuse(effects: &mut Effects<'_>, envelope: &Envelope, line: &[u8], failure: Failure, why: &str) {
    if envelope.batch {
        let ids = if line.is_empty() { vec![b"null".to_vec()] } else { ids_in_batch(line) };
        for id in ids {
            effects.reply(&id, error_line(&id, failure, why));
        }
    } else if let Some(id) = envelope.real_id().filter(|_| envelope.is_request()) {
        effects.reply(id, error_line(id, failure, why));
    }
}
