//! The state of the MCP protocol between client and server: which requests are in flight, and which a server that is started
//! again must be sent.
//!
//! `Conversation` shows it every message of both sides; it changes none. `replay` sends the replayable requests again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use moored_launch::stable_hash;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::listens::{self, Listens};
use super::tasks::Tasks;
use crate::relay::{Envelope, id_key};

/// A request of the client that is sent again to a server that is started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplayableRequest {
    /// The key of its id.
    pub(crate) id: Vec<u8>,
    pub(crate) line: Vec<u8>,
    /// Digest of the answer; `None` until there is one.
    pub(crate) answer: Option<u64>,
}

/// What a server's message means to the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerSaid {
    /// Nothing: it is only passed on.
    Ordinary,
    /// It has answered `initialize`.
    Initialized { name: Option<String>, version: Option<String> },
}

/// A call of the client that is not answered yet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    /// Its id as the client wrote it.
    written: Vec<u8>,
    method: String,
}

/// All ids in here are compared by their keys: a server may write an id in another way than the client did.
#[derive(Debug, Default)]
pub(crate) struct ProtocolState {
    pub(crate) initialize: Option<ReplayableRequest>,
    pub(crate) initialized: Option<Vec<u8>>,
    pub(crate) log_level: Option<ReplayableRequest>,
    pub(crate) tools: Option<ReplayableRequest>,
    pub(crate) subscriptions: BTreeMap<String, ReplayableRequest>,
    /// The client's calls, by the keys of their ids.
    calls: HashMap<Vec<u8>, Call>,
    /// The server's requests that the client has not answered, by the keys of their ids.
    server_requests: HashSet<Vec<u8>>,
    tasks: Tasks,
    listens: Listens,
    answered: bool,
}

impl ProtocolState {
    /// Calls without an answer, in both directions.
    pub(crate) fn in_flight(&self) -> usize {
        self.calls.len() + self.server_requests.len()
    }

    /// The client's calls without an answer.
    pub(crate) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Whether the server holds something that a new one would not have.
    pub(crate) fn has_state(&self, now: Duration) -> bool {
        self.tasks.are_open(now) || self.streams() > 0
    }

    /// Subscriptions and open streams of change notifications.
    pub(crate) fn streams(&self) -> usize {
        self.subscriptions.len() + self.listens.len()
    }

    /// Whether the server has tasks, which a new one would not know.
    pub(crate) fn has_tasks(&self, now: Duration) -> bool {
        self.tasks.are_open(now)
    }

    /// Whether this is the end of a stream that the client has open.
    pub(crate) fn ends_stream(&self, answer: &Envelope) -> bool {
        answer.is_response() && answer.id_key().is_some_and(|id| self.listens.is_open(&id))
    }

    /// The requests for streams that a server started again is sent.
    pub(crate) fn listen_again(&mut self) -> Vec<u8> {
        self.listens.ask_again()
    }

    /// Whether this acknowledges a stream that we asked for again: the client was told so before.
    pub(crate) fn is_known(&mut self, envelope: &Envelope, line: &[u8]) -> bool {
        self.listens.is_said_again(envelope, line)
    }

    /// Whether nothing but `initialize` is in flight, which was never answered.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.in_flight() == 1
            && self
                .initialize
                .as_ref()
                .is_some_and(|said| said.answer.is_none() && self.calls.contains_key(&said.id))
    }

    /// Takes the unanswered `initialize` back: the next server is sent it as if for the first time.
    pub(crate) fn take_unanswered(&mut self) -> Option<Vec<u8>> {
        let said = self.initialize.take_if(|said| said.answer.is_none())?;
        self.calls.remove(&said.id);
        Some(said.line)
    }

    /// Whether the server has answered `initialize`, or (in the protocol versions without one) anything.
    pub(crate) fn has_answered(&self) -> bool {
        self.is_initialized() || (self.initialize.is_none() && self.answered)
    }

    /// Whether the server has answered `initialize`.
    pub(crate) fn is_initialized(&self) -> bool {
        self.initialize.as_ref().is_some_and(|said| said.answer.is_some())
    }

    /// The id of the call that this answers, as the client wrote it.
    pub(crate) fn written_id(&self, answer: &Envelope) -> Option<Vec<u8>> {
        let call = self.calls.get(&answer.id_key()?);
        call.map(|call| call.written.clone()).or_else(|| answer.id.clone())
    }

    /// The method of a call in flight.
    pub(crate) fn method_of(&self, id: &[u8]) -> Option<&str> {
        self.calls.get(&id_key(id)).map(|call| call.method.as_str())
    }

    /// The server is gone. Returns the ids, as the client wrote them, of the calls that it has not answered, and forgets them
    /// and the server's own requests.
    pub(crate) fn take_calls(&mut self) -> Vec<Vec<u8>> {
        self.server_requests.clear();
        self.calls.drain().map(|(_, call)| call.written).collect()
    }

    /// We have answered the call with that id in the server's stead; whether it was in flight.
    pub(crate) fn complete_call(&mut self, id: &[u8]) -> bool {
        self.calls.remove(&id_key(id)).is_some()
    }

    /// Whether the server waits for this answer.
    pub(crate) fn expects(&self, answer: &Envelope) -> bool {
        answer.id_key().is_some_and(|id| self.server_requests.contains(&id))
    }

    /// The server is gone, and waits for nothing any more.
    pub(crate) fn forget_server_requests(&mut self) {
        self.server_requests.clear();
    }

    pub(crate) fn hear_client(&mut self, envelope: &Envelope, line: &[u8]) {
        if envelope.batch {
            return each(line, |envelope, line| self.hear_client(envelope, line));
        }
        let Some(method) = envelope.method() else {
            if let Some(id) = envelope.id_key() {
                self.server_requests.remove(&id);
            }
            return;
        };
        if let Some(id) = envelope.id_key().filter(|_| method == listens::METHOD) {
            self.listens.opened(&id, whole_line(line));
        } else if let Some(written) = envelope.real_id() {
            let (id, call) = (id_key(written), Call { written: written.to_vec(), method: method.to_owned() });
            self.calls.insert(id.clone(), call);
            self.note_request(&id, method, line);
        } else {
            self.note_notification(method, line);
        }
    }

    fn note_request(&mut self, id: &[u8], method: &str, line: &[u8]) {
        let said = || ReplayableRequest { id: id.to_vec(), line: whole_line(line), answer: None };
        match method {
            "initialize" => {
                *self = Self { calls: std::mem::take(&mut self.calls), ..Self::default() };
                self.initialize = Some(said());
            }
            "logging/setLevel" => self.log_level = Some(said()),
            // The first page is what a client asks for again when it is told of a change.
            "tools/list" if self.tools.is_none() && !has_cursor(line) => self.tools = Some(said()),
            "resources/subscribe" => {
                if let Some(uri) = uri(line) {
                    self.subscriptions.insert(uri, said());
                }
            }
            "resources/unsubscribe" => {
                if let Some(uri) = uri(line) {
                    self.subscriptions.remove(&uri);
                }
            }
            "tasks/result" => {
                if let Some(task) = task(line) {
                    self.tasks.asked_for(id, task);
                }
            }
            _ => {}
        }
    }

    fn note_notification(&mut self, method: &str, line: &[u8]) {
        match method {
            "notifications/initialized" => self.initialized = Some(whole_line(line)),
            // The server may leave it unanswered.
            "notifications/cancelled" => {
                if let Some(id) = cancelled(line) {
                    self.calls.remove(&id);
                    self.tasks.answered(&id, false);
                    self.listens.closed(&id);
                }
            }
            _ => {}
        }
    }

    /// `now` is the time since boot.
    pub(crate) fn hear_server(&mut self, envelope: &Envelope, line: &[u8], now: Duration) -> ServerSaid {
        if envelope.batch {
            each(line, |envelope, line| {
                self.hear_server(envelope, line, now);
            });
            return ServerSaid::Ordinary;
        }
        let Some(id) = envelope.id_key() else {
            match envelope.method() {
                Some("notifications/cancelled") => {
                    if let Some(id) = cancelled(line) {
                        self.server_requests.remove(&id);
                    }
                }
                Some(method) => self.tasks.hear(method, line, now),
                None => {}
            }
            return ServerSaid::Ordinary;
        };
        if envelope.method.is_some() {
            self.server_requests.insert(id);
            return ServerSaid::Ordinary;
        }
        self.answered = true;
        self.listens.closed(&id);
        self.tasks.answered(&id, envelope.result);
        match self.calls.remove(&id).as_ref().map(|call| call.method.as_str()) {
            Some("initialize") if envelope.result => self.note_initialize(&id, line),
            Some("tools/list") if envelope.result => {
                note_answer(&mut self.tools, &id, line);
                ServerSaid::Ordinary
            }
            Some(method) if envelope.result => {
                self.tasks.hear(method, line, now);
                ServerSaid::Ordinary
            }
            Some(_) | None => ServerSaid::Ordinary,
        }
    }

    /// A server that was started again has answered a replayed request: the next server's answer is compared with this one,
    /// so that the client is told of a change once.
    pub(crate) fn hear_again(&mut self, envelope: &Envelope, line: &[u8]) -> ServerSaid {
        let Some(id) = envelope.id_key() else { return ServerSaid::Ordinary };
        note_answer(&mut self.tools, &id, line);
        match &self.initialize {
            Some(said) if said.id == id => self.note_initialize(&id, line),
            _ => ServerSaid::Ordinary,
        }
    }

    fn note_initialize(&mut self, id: &[u8], line: &[u8]) -> ServerSaid {
        note_answer(&mut self.initialize, id, line);
        #[derive(Deserialize)]
        struct Answer {
            result: Outcome,
        }
        #[derive(Deserialize)]
        struct Outcome {
            #[serde(rename = "serverInfo")]
            info: Option<Info>,
        }
        #[derive(Deserialize)]
        struct Info {
            name: Option<String>,
            version: Option<String>,
        }
        let info = serde_json::from_slice::<Answer>(line).ok().and_then(|answer| answer.result.info);
        let (name, version) = info.map_or((None, None), |info| (info.name, info.version));
        ServerSaid::Initialized { name, version }
    }
}

fn note_answer(said: &mut Option<ReplayableRequest>, id: &[u8], line: &[u8]) {
    if let Some(said) = said.as_mut().filter(|said| said.id == id) {
        said.answer = Some(digest(line));
    }
}

/// Digest of what an answer to `initialize` or `tools/list` promises: capabilities or tools, independent of their order.
pub(crate) fn digest(line: &[u8]) -> u64 {
    let answer: Value = serde_json::from_slice(line).unwrap_or_default();
    let result = &answer["result"];
    let promised = [&result["capabilities"], &result["tools"]].map(Value::to_string);
    stable_hash(promised.concat().as_bytes())
}

/// With its newline: a message that came in a batch has none.
fn whole_line(line: &[u8]) -> Vec<u8> {
    [line.trim_ascii_end(), b"\n"].concat()
}

/// The ids of the calls in a batch.
pub(crate) fn ids_in_batch(line: &[u8]) -> Vec<Vec<u8>> {
    let mut ids = Vec::new();
    each(line, |envelope, _| {
        if let Some(id) = envelope.real_id().filter(|_| envelope.is_request()) {
            ids.push(id.to_vec());
        }
    });
    ids
}

/// Each message of a batch by itself.
fn each(line: &[u8], mut see: impl FnMut(&Envelope, &[u8])) {
    let Ok(messages) = serde_json::from_slice::<Vec<&RawValue>>(line) else { return };
    for message in messages.iter().map(|message| message.get().as_bytes()) {
        let envelope = Envelope::of(message);
        // A batch within a batch is none.
        if !envelope.batch {
            see(&envelope, message);
        }
    }
}

fn params<T: serde::de::DeserializeOwned>(line: &[u8]) -> Option<T> {
    #[derive(Deserialize)]
    struct Message<T> {
        params: T,
    }
    serde_json::from_slice::<Message<T>>(line).ok().map(|message| message.params)
}

fn uri(line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Params {
        uri: String,
    }
    params::<Params>(line).map(|params| params.uri)
}

fn has_cursor(line: &[u8]) -> bool {
    params::<Value>(line).is_some_and(|params| !params["cursor"].is_null())
}

fn task(line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "taskId")]
        task: String,
    }
    params::<Params>(line).map(|params| params.task)
}

/// The key of the id of the call that is cancelled.
fn cancelled(line: &[u8]) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "requestId")]
        request: Box<RawValue>,
    }
    params::<Params>(line).map(|params| id_key(params.request.get().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ProtocolState {
        fn client(&mut self, line: &str) {
            self.hear_client(&Envelope::of(line.as_bytes()), line.as_bytes());
        }

        fn server(&mut self, line: &str) -> ServerSaid {
            self.hear_server(&Envelope::of(line.as_bytes()), line.as_bytes(), Duration::ZERO)
        }
    }

    #[test]
    fn a_call_is_in_flight_until_it_is_answered_or_cancelled() {
        let mut state = ProtocolState::default();
        state.client(r#"{"id":1,"method":"tools/call"}"#);
        state.client(r#"{"id":"b","method":"tools/call"}"#);
        state.server(r#"{"id":7,"method":"roots/list"}"#);
        assert_eq!((state.in_flight(), state.calls()), (3, 2));
        state.server(r#"{"result":{},"id":1}"#);
        state.client(r#"{"method":"notifications/cancelled","params":{"requestId":"b"}}"#);
        state.client(r#"{"id":7,"result":{}}"#);
        assert_eq!(state.in_flight(), 0);
    }

    #[test]
    fn f12_an_answer_whose_id_is_written_in_another_way_answers_the_call() {
        let mut state = ProtocolState::default();
        for (called, answered) in
            [("1.0", "1"), ("1e2", "100"), (r#""\u00e9""#, "\"é\""), (r#""a\/b""#, r#""a/b""#)]
        {
            state.client(&format!(r#"{{"id":{called},"method":"tools/call"}}"#));
            assert_eq!(state.method_of(called.as_bytes()), Some("tools/call"));
            state.server(&format!(r#"{{"id":{answered},"result":{{}}}}"#));
            assert_eq!(state.in_flight(), 0, "{called}, answered as {answered}");
            state.server(&format!(r#"{{"id":{called},"method":"roots/list"}}"#));
            state.client(&format!(r#"{{"id":{answered},"result":{{}}}}"#));
            assert_eq!(state.in_flight(), 0, "{called}, asked by the server");
        }
        state.client(r#"{"id":7.0,"method":"tools/call"}"#);
        state.client(r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#);
        assert_eq!(state.in_flight(), 0);
    }

    #[test]
    fn f12_an_unanswered_call_is_failed_with_the_id_that_the_client_wrote() {
        let mut state = ProtocolState::default();
        state.client(r#"{"id":1.0,"method":"tools/call"}"#);
        assert_eq!(state.take_calls(), [b"1.0"]);
    }

    #[test]
    fn f12_the_server_is_known_by_an_answer_whose_id_is_written_in_another_way() {
        let mut state = ProtocolState::default();
        state.client(r#"{"id":0.0,"method":"initialize","params":{}}"#);
        state.server(r#"{"result":{"serverInfo":{"name":"a","version":"1"}},"id":0}"#);
        assert!(state.is_initialized());
    }

    #[test]
    fn a_batch_is_each_of_its_messages() {
        let mut state = ProtocolState::default();
        state.client(r#"[{"id":1,"method":"a"},{"id":2,"method":"b"},{"method":"c"}]"#);
        assert_eq!(state.calls(), 2);
        state.server(r#"[{"id":2,"result":{}},{"id":1,"error":{}}]"#);
        assert_eq!(state.calls(), 0);
    }

    #[test]
    fn subscriptions_and_tasks_are_state_of_the_server() {
        let mut state = ProtocolState::default();
        assert!(!state.has_state(Duration::ZERO));
        state.client(r#"{"id":1,"method":"resources/subscribe","params":{"uri":"a://b"}}"#);
        assert!(state.has_state(Duration::ZERO));
        state.client(r#"{"id":2,"method":"resources/unsubscribe","params":{"uri":"a://b"}}"#);
        assert!(!state.has_state(Duration::ZERO));
        state.client(r#"{"id":3,"method":"tools/call","params":{"name":"x","task":{"ttl":60000}}}"#);
        state.server(r#"{"id":3,"result":{"task":{"taskId":"t","status":"working","ttl":60000}}}"#);
        assert!(state.has_state(Duration::ZERO));
        state.client(r#"{"id":4,"method":"tasks/result","params":{"taskId":"t"}}"#);
        state.server(r#"{"id":4,"result":{"content":[]}}"#);
        assert!(!state.has_state(Duration::ZERO));
    }

    #[test]
    fn a_stream_is_state_and_not_a_call_in_flight() {
        let mut state = ProtocolState::default();
        state.client(r#"{"id":1,"method":"subscriptions/listen","params":{}}"#);
        assert_eq!((state.in_flight(), state.has_state(Duration::ZERO)), (0, true));
        state.client(r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#);
        assert!(!state.has_state(Duration::ZERO));
    }

    #[test]
    fn an_initialize_that_was_never_answered_can_be_taken_back() {
        let mut state = ProtocolState::default();
        let line = "{\"id\":0,\"method\":\"initialize\"}\n";
        state.client(line);
        assert!(state.is_unanswered());
        assert_eq!(state.take_unanswered().as_deref(), Some(line.as_bytes()));
        assert_eq!(state.in_flight(), 0);
        state.client(line);
        state.server("{\"id\":0,\"result\":{}}");
        assert!(!state.is_unanswered());
        assert_eq!(state.take_unanswered(), None);
    }

    #[test]
    fn the_server_is_known_by_its_answer_to_initialize() {
        let mut state = ProtocolState::default();
        state.client(r#"{"id":0,"method":"initialize","params":{}}"#);
        assert!(!state.is_initialized());
        let said = state.server(r#"{"result":{"serverInfo":{"name":"a","version":"1"}},"id":0}"#);
        assert_eq!(said, ServerSaid::Initialized { name: Some("a".into()), version: Some("1".into()) });
        assert!(state.is_initialized());
    }
}
