//! What the server says: passed on, or kept from the client because only we asked.

use std::time::Duration;

use super::effects::{Effects, ServerInfo};
use super::talking::{Conversation, Server};
use crate::mcp::{Failure, ServerSaid, Step, error_line, info_tool};
use crate::relay::{Bytes, Envelope, Piece};

impl Conversation {
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

    pub(super) fn server_message<'a>(
        &mut self,
        line: Bytes<'a>,
        envelope: Envelope,
        now: Duration,
    ) -> Effects<'a> {
        let mut effects = Effects::none();
        if self.replayed(&envelope, &line, &mut effects)
            || self.protocol.is_known(&envelope, &line)
            || self.is_outlived(&envelope)
            || self.is_answered_already(&envelope)
        {
            return effects;
        }
        let answers = if envelope.is_response() { self.protocol.written_id(&envelope) } else { None };
        let lists_tools = self.rules.info_tool
            && envelope.real_id().and_then(|id| self.protocol.method_of(id)) == Some("tools/list");
        if let ServerSaid::Initialized { name, version } = self.protocol.hear_server(&envelope, &line, now) {
            effects.next.initialized = Some(ServerInfo { name, version });
        }
        let line = if lists_tools { self.with_info_tool(line) } else { line };
        effects.pass(line, answers);
        effects
    }

    /// Whether a server that goes to sleep ends with this what its successor is to go on with: a stream, or an `initialize`
    /// that it has not answered in time.
    pub(super) fn is_outlived(&self, envelope: &Envelope) -> bool {
        self.server == Server::FallingAsleep
            && (self.protocol.ends_stream(envelope) || (self.unanswered.is_some() && envelope.is_response()))
    }

    /// What is left of a crashed server's tree may answer a call that was answered with an error.
    fn is_answered_already(&self, envelope: &Envelope) -> bool {
        self.server == Server::Leaving
            && envelope.is_response()
            && envelope.real_id().is_some_and(|id| self.protocol.method_of(id).is_none())
            && !self.protocol.ends_stream(envelope)
    }

    /// Whether the message was an answer to what we said again.
    pub(super) fn replayed(&mut self, envelope: &Envelope, line: &[u8], effects: &mut Effects<'_>) -> bool {
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

    pub(super) fn caught_up(&mut self, changes: Vec<u8>, effects: &mut Effects<'_>) {
        self.replay = None;
        effects.tell(changes);
        if self.server != Server::FallingAsleep {
            self.release_pending(effects);
        }
    }

    pub(super) fn server_too_long(&mut self, envelope: &Envelope) -> Effects<'static> {
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

    pub(super) fn with_info_tool<'a>(&mut self, line: Bytes<'a>) -> Bytes<'a> {
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
