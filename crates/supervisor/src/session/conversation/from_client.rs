//! What the client says: passed on, held until there is a server, answered by us, or refused.

use super::effects::Effects;
use super::talking::{Conversation, Server, refuse};
use crate::mcp::{Failure, error_line, info_tool};
use crate::relay::{Bytes, Envelope, Piece};

impl Conversation {
    pub(in crate::session) fn hear_client<'a>(&mut self, piece: Piece<'a>) -> Effects<'a> {
        match piece {
            Piece::Message(line, envelope) => self.client_message(line, envelope),
            Piece::Raw(bytes) => self.client_raw(bytes),
            Piece::TooLong(envelope) => self.client_too_long(&envelope),
        }
    }

    /// There is a server that knows all that its predecessor knew.
    pub(super) fn takes_messages(&self) -> bool {
        self.server == Server::Present && self.replay.is_none()
    }

    pub(super) fn client_message<'a>(&mut self, line: Bytes<'a>, envelope: Envelope) -> Effects<'a> {
        let mut effects = Effects::none();
        if let Server::Refused(why) = &self.server {
            refuse(&mut effects, &envelope, &line, Failure::NotStarted, why);
            return effects;
        }
        self.has_calls |= envelope.is_request() && envelope.method() != Some("initialize");
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

    pub(super) fn client_raw<'a>(&mut self, bytes: &'a [u8]) -> Effects<'a> {
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
    pub(super) fn client_too_long(&mut self, envelope: &Envelope) -> Effects<'static> {
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

    pub(super) fn release_pending(&mut self, effects: &mut Effects<'_>) {
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
    pub(super) fn had_others(&self) -> bool {
        self.server != Server::Present || self.servers > 1
    }

    pub(super) fn is_for_us(&self, envelope: &Envelope, line: &[u8]) -> bool {
        self.rules.info_tool
            && !self.has_own_info
            && envelope.is_request()
            && envelope.method() == Some("tools/call")
            && info_tool::is_called_by(line)
    }
}
