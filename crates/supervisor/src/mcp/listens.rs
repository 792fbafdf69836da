//! The streams of change notifications that the client has open (`subscriptions/listen`, in the era without sessions).
//!
//! Such a request is answered when the stream ends, which may be never, so it does not count as a call in flight. A server
//! that is started again is sent it again, with the same id; its acknowledgement is kept from the client, which has had one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::relay::{Envelope, id_key};

pub(super) const METHOD: &str = "subscriptions/listen";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const META: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Debug, Default)]
pub(super) struct Listens {
    /// The client's lines, by the keys of their ids.
    open: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Ids of requests that were sent again and are not acknowledged yet.
    again: BTreeSet<Vec<u8>>,
}

impl Listens {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_open(&self, id: &[u8]) -> bool {
        self.open.contains_key(id)
    }

    pub(super) fn opened(&mut self, id: &[u8], line: Vec<u8>) {
        self.open.insert(id.to_vec(), line);
    }

    /// The stream was closed, by either side.
    pub(super) fn closed(&mut self, id: &[u8]) {
        self.open.remove(id);
        self.again.remove(id);
    }

    /// The lines that a server which was started again is sent.
    pub(super) fn ask_again(&mut self) -> Vec<u8> {
        self.again = self.open.keys().cloned().collect();
        self.open.values().flatten().copied().collect()
    }

    /// Whether this acknowledges a request that was sent again.
    pub(super) fn is_said_again(&mut self, envelope: &Envelope, line: &[u8]) -> bool {
        if self.again.is_empty() || envelope.method() != Some(ACKNOWLEDGED) {
            return false;
        }
        let id = |line: &Value| line["params"]["_meta"].get(META).map(|id| id_key(id.to_string().as_bytes()));
        let told: Value = serde_json::from_slice(line).unwrap_or_default();
        id(&told).is_some_and(|id| self.again.remove(&id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_again_is_acknowledged_to_us_once() {
        let mut listens = Listens::default();
        let line = b"{\"id\":\"s\",\"method\":\"subscriptions/listen\"}\n".to_vec();
        listens.opened(b"\"s\"", line.clone());
        let said = r#"{"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}"#;
        let envelope = Envelope::of(said.as_bytes());
        assert!(!listens.is_said_again(&envelope, said.as_bytes()), "the first is the client's");
        assert_eq!(listens.ask_again(), line);
        assert!(listens.is_said_again(&envelope, said.as_bytes()));
        assert!(!listens.is_said_again(&envelope, said.as_bytes()));
    }

    #[test]
    fn one_that_is_closed_is_not_asked_for_again() {
        let mut listens = Listens::default();
        listens.opened(b"1", b"{}\n".to_vec());
        listens.closed(b"1");
        assert!(listens.ask_again().is_empty());
        assert_eq!(listens.len(), 0);
    }
}
