//! A server that does as it is told: one closure decides what it does about each message.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use moored_containment::{EndReport, Ladder, ProcessIdentity, Rung, ServerExit, StartError};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead as _, AsyncWrite as _, AsyncWriteExt as _, BufReader};
use tokio::io::{DuplexStream, ReadBuf, duplex};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::event::{StartReason, Started};
use crate::session::server::{
    Drained, RunningServer, ServerEvent, ServerOutput, StartFuture, StartServer, Vital,
};

/// What a scripted server does about a message.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    /// Answers with this result.
    Answer(Value),
    /// Answers after a while.
    AnswerLater(Duration, Value),
    /// Writes this message.
    Say(Value),
    /// Exits with this code.
    Exit(i32),
    Nothing,
}

pub(super) type Script = Arc<dyn Fn(usize, &Value) -> Act + Send + Sync>;

/// Answers every request with its method and params.
pub(super) fn echo() -> Script {
    Arc::new(|_, message| answered(message))
}

/// What an ordinary server does.
pub(super) fn answered(message: &Value) -> Act {
    match message["method"].as_str() {
        Some("initialize") => {
            Act::Answer(json!({"capabilities": {}, "serverInfo": {"name": "scripted", "version": "1.0"}}))
        }
        Some(method) if message.get("id").is_some() => Act::Answer(json!({"echo": method})),
        _ => Act::Nothing,
    }
}

/// Starts scripted servers. The script is given how many were started before.
pub(super) struct ScriptStarter {
    pub(super) script: Script,
    pub(super) starts: Arc<AtomicUsize>,
}

impl StartServer for ScriptStarter {
    type Server = ScriptedServer;

    fn start(&mut self, why: StartReason) -> StartFuture<ScriptedServer> {
        let number = self.starts.fetch_add(1, Ordering::SeqCst);
        let server = ScriptedServer::start(Arc::clone(&self.script), number, why);
        Box::pin(async move { Ok::<_, StartError>(server) })
    }
}

pub(super) struct ScriptedServer {
    started: Started,
    stdin: Option<DuplexStream>,
    stdout: Option<DuplexStream>,
    events: mpsc::UnboundedReceiver<ServerEvent>,
    orders: mpsc::UnboundedSender<Ladder>,
}

impl ScriptedServer {
    fn start(script: Script, number: usize, why: StartReason) -> Self {
        let (stdin, server_stdin) = duplex(64 << 10);
        let (stdout, server_stdout) = duplex(64 << 10);
        let (tell, events) = mpsc::unbounded_channel();
        let (orders, ordered) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let exit = play(script, number, server_stdin, server_stdout, ordered).await;
            // The session may have dropped it.
            let _ = tell.send(ServerEvent::Exited(Some(exit)));
            let _ = tell.send(ServerEvent::Gone(Ok(report())));
        });
        let process = ProcessIdentity::of(std::process::id()).expect("us");
        let strength = report().strength;
        let started = Started { session: report().session, process, strength, why };
        Self { started, stdin: Some(stdin), stdout: Some(stdout), events, orders }
    }
}

/// Reads messages and does as the script says, until it exits, or is ended.
async fn play(
    script: Script,
    number: usize,
    stdin: DuplexStream,
    mut stdout: DuplexStream,
    mut ordered: mpsc::UnboundedReceiver<Ladder>,
) -> ServerExit {
    let mut lines = BufReader::new(stdin).lines();
    let (later, mut due) = mpsc::unbounded_channel::<Value>();
    let mut unanswered = 0;
    let mut is_over = false;
    let mut terminated_at = None;
    loop {
        let message = tokio::select! {
            biased;
            // An ordinary server ends at SIGTERM, which comes after the grace, and at EOF when it has answered.
            order = ordered.recv() => match order {
                Some(Ladder { from: Rung::Close, grace, .. }) => {
                    terminated_at = Some(Instant::now() + grace);
                    continue;
                }
                _ => return ServerExit::Code(0),
            },
            () = until(terminated_at) => return ServerExit::Signal(15),
            Some(answer) = due.recv() => {
                unanswered -= 1;
                write(&mut stdout, &answer).await;
                if is_over && unanswered == 0 {
                    return ServerExit::Code(0);
                }
                continue;
            }
            line = lines.next_line(), if !is_over => match line.expect("a line") {
                Some(line) => serde_json::from_str::<Value>(&line).expect("JSON"),
                None if unanswered == 0 => return ServerExit::Code(0),
                None => {
                    is_over = true;
                    continue;
                }
            },
        };
        let answer = |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        match script(number, &message) {
            Act::Answer(result) => write(&mut stdout, &answer(result)).await,
            Act::AnswerLater(time, result) => {
                let (later, answer) = (later.clone(), answer(result));
                unanswered += 1;
                tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    // The server may have ended.
                    let _ = later.send(answer);
                });
            }
            Act::Say(message) => write(&mut stdout, &message).await,
            Act::Exit(code) => return ServerExit::Code(code),
            Act::Nothing => {}
        }
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn write(stdout: &mut DuplexStream, message: &Value) {
    // The session may have dropped it.
    let _ = stdout.write_all(format!("{message}\n").as_bytes()).await;
}

/// How a scripted tree ends.
pub(super) fn report() -> EndReport {
    serde_json::from_value(json!({
        "session": "2000000000000001", "reason": "requested", "status": {"code": 0},
        "steps": [], "ended": {"eof": 1, "term": 0, "kill": 0},
        "kept": [], "survivors": [], "strength": "loop", "layers": ["guardian"], "findable": "by-cookie",
        "verified": true, "proof": ["no-children"], "on_end": null, "took_ms": 1.0
    }))
    .expect("a report")
}

impl RunningServer for ScriptedServer {
    fn started(&self) -> &Started {
        &self.started
    }

    fn guardians(&self) -> &[ProcessIdentity] {
        &[]
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<ServerEvent> {
        match self.events.poll_recv(cx) {
            Poll::Ready(Some(event)) => Poll::Ready(event),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    fn end(&self, ladder: Ladder) {
        // It may have ended.
        let _ = self.orders.send(ladder);
    }

    fn signal_group(&self, _signal: i32) {}

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.stdin {
            Some(stdin) => Pin::new(stdin).poll_write(cx, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn close_stdin(&mut self) {
        self.stdin = None;
    }

    fn has_stdin(&self) -> bool {
        self.stdin.is_some()
    }

    fn unread_input(&self) -> usize {
        0
    }

    fn poll_stdin_closed(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    fn has_stdout(&self) -> bool {
        self.stdout.is_some()
    }

    fn vital(&self) -> Vital {
        Vital::Alive
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, from: ServerOutput, into: &mut [u8]) -> Poll<usize> {
        let Some(stdout) = self.stdout.as_mut().filter(|_| from == ServerOutput::Stdout) else {
            return Poll::Pending;
        };
        let mut space = ReadBuf::new(into);
        let read = match Pin::new(stdout).poll_read(cx, &mut space) {
            Poll::Ready(Ok(())) => space.filled().len(),
            Poll::Ready(Err(_)) => 0,
            Poll::Pending => return Poll::Pending,
        };
        if read == 0 {
            self.stdout = None;
        }
        Poll::Ready(read)
    }

    fn drain(&mut self) -> Drained {
        let mut drained = Drained::default();
        let mut space = vec![0; 64 << 10];
        let mut cx = Context::from_waker(std::task::Waker::noop());
        while let Poll::Ready(read) = self.poll_read(&mut cx, ServerOutput::Stdout, &mut space)
            && read > 0
        {
            drained.stdout.extend_from_slice(&space[..read]);
        }
        drained
    }

    fn adjust_widths(&mut self, _incoming: usize, _outgoing: usize) {}
}
