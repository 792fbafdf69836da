//! Messages of the client that wait for a server, in their order.

use std::collections::VecDeque;

use crate::relay::Envelope;

/// A message that waits for a server.
#[derive(Debug)]
pub(super) struct PendingMessage {
    pub(super) line: Vec<u8>,
    /// None for bytes that are no message.
    pub(super) envelope: Option<Envelope>,
}

#[derive(Debug, Default)]
pub(super) struct Pending {
    messages: VecDeque<PendingMessage>,
    bytes: usize,
}

impl Pending {
    pub(super) fn push(&mut self, line: Vec<u8>, envelope: Option<Envelope>) {
        // Short messages count by what holds them.
        self.bytes += line.len() + size_of::<PendingMessage>();
        self.messages.push_back(PendingMessage { line, envelope });
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn take(&mut self) -> VecDeque<PendingMessage> {
        self.bytes = 0;
        std::mem::take(&mut self.messages)
    }
}
