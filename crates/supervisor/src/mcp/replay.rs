//! Brings a server that was started again to where its predecessor was, by sending it the client's earlier requests, so that
//! the client notices nothing but the time it takes.
//!
//! The client's own lines are used, ids and all: these calls were answered long ago, so their ids are free, and the new
//! answers are kept from the client. What the new server promises is compared with what the old one did.
//!
//! ```text
//!   initialize ─▶ answered ─▶ initialized, log level, subscriptions, tools/list ─▶ all answered ─▶ done
//! ```

use std::collections::HashMap;

use super::protocol_state::{ProtocolState, ReplayableRequest, digest};
use crate::relay::Envelope;

/// What to do with a message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is not an answer to a replayed request: it is for the client.
    Pass,
    /// It answers a replayed request; send this to the server next.
    Send(Vec<u8>),
    /// It was the last answer. These lines are for the client: what has changed.
    Done(Vec<u8>),
    /// The server cannot take its predecessor's place.
    Failed(String),
}

#[derive(Debug)]
pub(crate) struct Replay {
    /// Replayed requests without an answer, by the key of their id, with the digest of the predecessor's answer.
    waiting: HashMap<Vec<u8>, Option<u64>>,
    /// Requests that are sent after the answer to `initialize`; `None` once they are.
    then: Option<Vec<ReplayableRequest>>,
    initialized: Vec<u8>,
    changes: Vec<u8>,
    tools: Option<Vec<u8>>,
}

impl Replay {
    /// Starts a replay and returns its first line; `None` if the server before never answered `initialize`.
    pub(crate) fn begin(state: &ProtocolState) -> Option<(Self, Vec<u8>)> {
        let initialize = state.initialize.as_ref().filter(|said| said.answer.is_some())?;
        // A log level or subscription that was never answered is in flight still, and answered by an error then.
        let again = state.log_level.iter().chain(state.subscriptions.values());
        let tools = state.tools.iter().filter(|said| said.answer.is_some());
        let replay = Self {
            waiting: HashMap::from([(initialize.id.clone(), initialize.answer)]),
            then: Some(again.chain(tools).cloned().collect()),
            initialized: state.initialized.clone().unwrap_or_default(),
            changes: Vec::new(),
            tools: state.tools.as_ref().map(|said| said.id.clone()),
        };
        Some((replay, initialize.line.clone()))
    }

    pub(crate) fn hear_server(&mut self, envelope: &Envelope, line: &[u8]) -> Step {
        let Some(id) = envelope.id_key().filter(|_| envelope.is_response()) else { return Step::Pass };
        let Some(before) = self.waiting.remove(&id) else { return Step::Pass };
        match self.then.take() {
            Some(_) if envelope.error => Step::Failed(String::from_utf8_lossy(line).trim().to_owned()),
            Some(then) => {
                if before.is_some_and(|before| before != digest(line)) {
                    self.changes.extend(list_changed(&["tools", "resources", "prompts"]));
                }
                let mut lines = self.initialized.clone();
                for said in then {
                    lines.extend_from_slice(&said.line);
                    self.waiting.insert(said.id, said.answer);
                }
                self.after(lines)
            }
            None => {
                let is_tools = self.tools.as_deref() == Some(&*id);
                if is_tools && before.is_some_and(|before| before != digest(line)) && self.changes.is_empty()
                {
                    self.changes.extend(list_changed(&["tools"]));
                }
                self.after(Vec::new())
            }
        }
    }

    fn after(&mut self, lines: Vec<u8>) -> Step {
        if lines.is_empty() && self.waiting.is_empty() {
            Step::Done(self.take_changes())
        } else {
            Step::Send(lines)
        }
    }

    /// Whether all requests were sent and answered.
    pub(crate) fn is_done(&self) -> bool {
        self.then.is_none() && self.waiting.is_empty()
    }

    /// The notifications of changed lists, for the client, once the replay is done.
    pub(crate) fn take_changes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.changes)
    }
}

fn list_changed(what: &[&str]) -> Vec<u8> {
    let line =
        |what: &&str| format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/{what}/list_changed\"}}\n");
    what.iter().map(line).collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn see(state: &mut ProtocolState, client: bool, line: &str) {
        let envelope = Envelope::of(line.as_bytes());
        if client {
            state.hear_client(&envelope, line.as_bytes());
        } else {
            state.hear_server(&envelope, line.as_bytes(), std::time::Duration::ZERO);
        }
    }

    fn talked() -> ProtocolState {
        let mut state = ProtocolState::default();
        see(&mut state, true, "{\"id\":0,\"method\":\"initialize\"}\n");
        see(&mut state, false, "{\"id\":0,\"result\":{\"capabilities\":{\"a\":1,\"b\":2}}}\n");
        see(&mut state, true, "{\"method\":\"notifications/initialized\"}\n");
        see(&mut state, true, "{\"id\":1,\"method\":\"tools/list\"}\n");
        see(&mut state, false, "{\"id\":1,\"result\":{\"tools\":[{\"name\":\"x\"}]}}\n");
        state
    }

    fn answer(replay: &mut Replay, line: &str) -> Step {
        replay.hear_server(&Envelope::of(line.as_bytes()), line.as_bytes())
    }

    #[test]
    fn the_same_server_is_told_everything_and_the_client_nothing() {
        let (mut replay, first) = Replay::begin(&talked()).expect("there is something to say");
        assert_eq!(first, b"{\"id\":0,\"method\":\"initialize\"}\n");
        assert_eq!(answer(&mut replay, "{\"method\":\"notifications/message\"}\n"), Step::Pass);
        let sent = answer(&mut replay, "{\"id\":0,\"result\":{\"capabilities\":{\"b\":2,\"a\":1}}}\n");
        let said = "{\"method\":\"notifications/initialized\"}\n{\"id\":1,\"method\":\"tools/list\"}\n";
        assert_eq!(sent, Step::Send(said.as_bytes().to_vec()));
        assert!(!replay.is_done());
        let done = answer(&mut replay, "{\"result\":{\"tools\":[{\"name\":\"x\"}]},\"id\":1}\n");
        assert_eq!(done, Step::Done(Vec::new()));
        assert!(replay.is_done());
    }

    #[test]
    fn f12_an_answer_whose_id_is_written_in_another_way_is_kept_from_the_client() {
        let mut state = ProtocolState::default();
        see(&mut state, true, "{\"id\":0.0,\"method\":\"initialize\"}\n");
        see(&mut state, false, "{\"id\":0,\"result\":{}}\n");
        let (mut replay, _) = Replay::begin(&state).expect("there is something to say");
        assert_eq!(answer(&mut replay, "{\"id\":0,\"result\":{}}\n"), Step::Done(Vec::new()));
    }

    #[test]
    fn another_list_of_tools_is_told_to_the_client() {
        let (mut replay, _) = Replay::begin(&talked()).expect("there is something to say");
        answer(&mut replay, "{\"id\":0,\"result\":{\"capabilities\":{\"b\":2,\"a\":1}}}\n");
        let Step::Done(told) = answer(&mut replay, "{\"id\":1,\"result\":{\"tools\":[]}}\n") else {
            panic!("it was the last answer")
        };
        assert!(String::from_utf8_lossy(&told).contains("notifications/tools/list_changed"));
    }

    #[test]
    fn a_server_that_refuses_initialize_cannot_take_the_place() {
        let (mut replay, _) = Replay::begin(&talked()).expect("there is something to say");
        let step = answer(&mut replay, "{\"id\":0,\"error\":{\"code\":-1,\"message\":\"no\"}}\n");
        assert!(matches!(step, Step::Failed(why) if why.contains("no")));
    }

    #[test]
    fn nothing_is_said_again_where_nothing_was_said() {
        assert!(Replay::begin(&ProtocolState::default()).is_none());
    }
}
