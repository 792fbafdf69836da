//! A client that talks to a session over a test port, and what it finds around it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use moored_containment::RuntimeDir;
use moored_launch::{Launch, ProcessEnv, Rules, ServerSpec};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::script::{Script, ScriptStarter};
use crate::event::{Event, RunId, What};
use crate::relay::{Bytes, Envelope, Piece};
use crate::session::conversation::ToClient;
use crate::session::host::{Housekeeping, SessionHost, facts};
use crate::session::life::Signal;
use crate::session::outcome::{RunError, RunOutcome};
use crate::session::port::{ClientPort, EofKind, Flushed, Received};
use crate::session::task::{Command, Session, SessionParts};

enum FromClient {
    Line(Vec<u8>),
    Eof,
    Gone,
}

/// A message that the client got, and the request that the session said it answers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Got {
    pub(super) message: Value,
    pub(super) answers: Option<Value>,
}

pub(super) struct TestPort {
    said: mpsc::UnboundedReceiver<FromClient>,
    got: mpsc::UnboundedSender<Got>,
}

impl ClientPort for TestPort {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        _scratch: &mut [u8],
        hand_over: &mut dyn FnMut(Piece<'_>),
    ) -> Poll<Received> {
        self.said.poll_recv(cx).map(|said| match said {
            Some(FromClient::Line(line)) => {
                let (length, envelope) = (line.len(), Envelope::of(&line));
                hand_over(Piece::Message(Bytes::Owned(line), envelope));
                Received::Bytes(length)
            }
            Some(FromClient::Eof) => Received::Eof { kind: EofKind::Client, at: tokio::time::Instant::now() },
            Some(FromClient::Gone) | None => Received::Gone,
        })
    }

    fn poll_hangup(&mut self, _cx: &mut Context<'_>) -> Poll<Received> {
        Poll::Pending
    }

    fn poll_after_eof(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        match self.said.poll_recv(cx) {
            Poll::Ready(Some(FromClient::Gone)) => Poll::Ready(Received::Gone),
            _ => Poll::Pending,
        }
    }

    fn send(&mut self, message: ToClient<'_>) {
        let value = |bytes: &[u8]| serde_json::from_slice(bytes).expect("JSON");
        let answers = message.answers.as_deref().map(value);
        for line in message.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            // The client may have gone.
            let _ = self.got.send(Got { message: value(line), answers: answers.clone() });
        }
    }

    fn send_stderr(&mut self, _bytes: &[u8]) {}

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Flushed> {
        Poll::Pending
    }

    fn backlog(&self) -> usize {
        0
    }

    fn can_read(&self) -> bool {
        !self.got.is_closed()
    }

    async fn finish(&mut self, _patience: Duration) {}
}

/// A client, its session, and what happened to it.
pub(super) struct Scene {
    say: mpsc::UnboundedSender<FromClient>,
    heard: mpsc::UnboundedReceiver<Got>,
    commands: mpsc::UnboundedSender<Command>,
    session: JoinHandle<Result<RunOutcome, RunError>>,
    events: Arc<Mutex<Vec<Event>>>,
    starts: Arc<AtomicUsize>,
}

impl Scene {
    pub(super) fn new(rules: Rules, script: Script) -> Self {
        Self::within(rules, script, None)
    }

    /// A session that is registered in this folder.
    pub(super) fn within(rules: Rules, script: Script, folder: Option<&RuntimeDir>) -> Self {
        let (say, said) = mpsc::unbounded_channel();
        let (got, heard) = mpsc::unbounded_channel();
        let (commands, taken) = mpsc::unbounded_channel();
        let (events, starts) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let noted = Arc::clone(&events);
        let host = SessionHost {
            folder: folder.cloned().ok_or_else(|| std::io::Error::other("none in this test")),
            events: Box::new(move |event| noted.lock().expect("events").push(event)),
            log: Box::new(|_| {}),
            log_file: None,
            run: RunId::generate(),
            version: "0",
            remove_pid_file: Vec::new(),
            housekeeping: Housekeeping::ByHost,
            origin: moored_registry::Origin::Serve,
        };
        let launch = Launch::new("scripted", "scripted");
        let spec = ServerSpec { launch, process_env: ProcessEnv::default(), rules };
        let facts = facts(&spec, &host, None).expect("our own process");
        let starter = ScriptStarter { script, starts: Arc::clone(&starts) };
        let port = TestPort { said, got };
        let parts = SessionParts { spec: Arc::new(spec), facts, host, port, starter, commands: taken };
        let session = tokio::spawn(async move { Session::new(parts).live().await });
        Self { say, heard, commands, session, events, starts }
    }

    pub(super) fn say(&self, message: &Value) {
        // The session may have ended.
        let _ = self.say.send(FromClient::Line(format!("{message}\n").into_bytes()));
    }

    pub(super) fn call(&self, id: u64, method: &str) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method}));
    }

    /// The next message for the client.
    pub(super) async fn hear(&mut self) -> Got {
        let heard = tokio::time::timeout(Duration::from_secs(600), self.heard.recv()).await;
        heard.expect("a message in time").expect("the session sends something")
    }

    /// Calls, and returns the answer.
    pub(super) async fn ask(&mut self, id: u64, method: &str) -> Value {
        self.call(id, method);
        let got = self.hear().await;
        assert_eq!(got.answers, Some(json!(id)), "{got:?}");
        assert_eq!(got.message["id"], id);
        got.message
    }

    pub(super) async fn initialize(&mut self) {
        let answer = self.ask(0, "initialize").await;
        assert_eq!(answer["result"]["serverInfo"]["name"], "scripted", "{answer}");
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    pub(super) fn close(&self) {
        let _ = self.say.send(FromClient::Eof);
    }

    pub(super) fn die(&self) {
        let _ = self.say.send(FromClient::Gone);
    }

    pub(super) fn signal(&self, signal: Signal) {
        let _ = self.commands.send(Command::Signal(signal));
    }

    pub(super) fn starts(&self) -> usize {
        self.starts.load(Ordering::SeqCst)
    }

    /// Until that happened, by the words of the event.
    pub(super) async fn until(&self, what: &str) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(7200);
        while !self.kinds().iter().any(|kind| kind == what) {
            assert!(tokio::time::Instant::now() < deadline, "no `{what}` in {:?}", self.kinds());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// What happened so far.
    pub(super) fn kinds(&self) -> Vec<String> {
        let events = self.events.lock().expect("events");
        let kind = |event: &Event| serde_json::to_value(event).expect("JSON")["event"].clone();
        events.iter().map(|event| kind(event).as_str().expect("a word").to_owned()).collect()
    }

    /// Why it has never had a server.
    pub(super) async fn failed(self) -> String {
        let ended =
            tokio::time::timeout(Duration::from_secs(60), self.session).await.expect("it ends in time");
        ended.expect("no panic").expect_err("it had no server").to_string()
    }

    /// How it ended, what the client got since it last heard anything, and what happened.
    pub(super) async fn ended(self) -> (RunOutcome, Vec<Got>, Vec<What>) {
        let Self { mut heard, session, events, say, .. } = self;
        let ended = tokio::time::timeout(Duration::from_secs(600), session).await.expect("it ends in time");
        let outcome = ended.expect("no panic").expect("it had a server");
        drop(say);
        let mut rest = Vec::new();
        while let Ok(got) = heard.try_recv() {
            rest.push(got);
        }
        let events = std::mem::take(&mut *events.lock().expect("events"));
        (outcome, rest, events.into_iter().map(|event| event.what).collect())
    }
}
