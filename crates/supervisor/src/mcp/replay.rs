//! Saying again to a server that was started anew what its predecessor had been told, so that the client notices nothing
//! but the time it takes.
//!
//! The client's own lines are used, ids and all: these calls were answered long ago, so their ids are free, and the new
//! answers are kept from the client. What the new server promises is compared with what the old one did.
//!
//! ```text
//!   initialize ─▶ answered ─▶ initialized, log level, subscriptions, tools/list ─▶ all answered ─▶ done
//! ```

use std::collections::HashMap;

use super::talk::{Said, Talk, digest};
use crate::relay::Envelope;

/// What to do with a message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is the client's.
    Pass,
    /// It was an answer to us; send this to the server.
    Send(Vec<u8>),
    /// It was the last answer. These lines are for the client: what has changed.
    Done(Vec<u8>),
    /// The server cannot take its predecessor's place.
    Failed(String),
}

#[derive(Debug)]
pub(crate) struct Replay {
    /// What is still to be answered, by the key of its id, and what was answered before.
    waiting: HashMap<Vec<u8>, Option<u64>>,
    /// What follows the answer to `initialize`.
    then: Option<Vec<Said>>,
    initialized: Vec<u8>,
    changes: Vec<u8>,
    tools: Option<Vec<u8>>,
}

impl Replay {
    /// What to say first, if there is anything to say.
    pub(crate) fn begin(talk: &Talk) -> Option<(Self, Vec<u8>)> {
        let initialize = talk.initialize.as_ref().filter(|said| said.answer.is_some())?;
        // A log level or subscription that was never answered is in flight still, and answered by an error then.
        let again = talk.log_level.iter().chain(talk.subscriptions.values());
        let tools = talk.tools.iter().filter(|said| said.answer.is_some());
        let replay = Self {
            waiting: HashMap::from([(initialize.id.clone(), initialize.answer)]),
            then: Some(again.chain(tools).cloned().collect()),
            initialized: talk.initialized.clone().unwrap_or_default(),
            changes: Vec::new(),
            tools: talk.tools.as_ref().map(|said| said.id.clone()),
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

    /// Whether nothing is waited for; asked after what was to be sent is sent.
    pub(crate) fn is_done(&self) -> bool {
        self.then.is_none() && self.waiting.is_empty()
    }

    /// What the client is to be told once it is done.
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

    fn see(talk: &mut Talk, client: bool, line: &str) {
        let envelope = Envelope::of(line.as_bytes());
        if client {
            talk.hear_client(&envelope, line.as_bytes());
        } else {
            talk.hear_server(&envelope, line.as_bytes(), std::time::Duration::ZERO);
        }
    }

    fn talked() -> Talk {
        let mut talk = Talk::default();
        see(&mut talk, true, "{\"id\":0,\"method\":\"initialize\"}\n");
        see(&mut talk, false, "{\"id\":0,\"result\":{\"capabilities\":{\"a\":1,\"b\":2}}}\n");
        see(&mut talk, true, "{\"method\":\"notifications/initialized\"}\n");
        see(&mut talk, true, "{\"id\":1,\"method\":\"tools/list\"}\n");
        see(&mut talk, false, "{\"id\":1,\"result\":{\"tools\":[{\"name\":\"x\"}]}}\n");
        talk
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
        let mut talk = Talk::default();
        see(&mut talk, true, "{\"id\":0.0,\"method\":\"initialize\"}\n");
        see(&mut talk, false, "{\"id\":0,\"result\":{}}\n");
        let (mut replay, _) = Replay::begin(&talk).expect("there is something to say");
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
        assert!(Replay::begin(&Talk::default()).is_none());
    }
}
