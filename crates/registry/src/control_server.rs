//! The server side of a session's control socket: accepts connections of the same user (and of root), reads one request from
//! each, hands it to the session, and writes the answer back. The words are in `control`.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use crate::control::{Reply, Request};

/// Bytes of a request that are read at most.
const MAX_REQUEST: u64 = 64 << 10;
/// How long a client may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long clients may take to read their answers when the session has ended.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// A request, and where its answer goes.
#[derive(Debug)]
pub struct ControlRequest {
    /// What is asked.
    pub request: Request,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Reply>,
}

/// The control socket while it is open.
#[derive(Debug)]
pub struct ControlServer {
    requests: mpsc::Receiver<ControlRequest>,
    close: oneshot::Sender<()>,
    accept_task: JoinHandle<()>,
}

impl ControlServer {
    /// Binds the socket and accepts connections in a task of the current tokio runtime.
    ///
    /// # Errors
    /// If the socket cannot be bound.
    pub fn open(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let (sender, requests) = mpsc::channel(8);
        let (close, closed) = oneshot::channel();
        let accept_task = tokio::spawn(accept(listener, sender, closed));
        Ok(Self { requests, close, accept_task })
    }

    /// The next request; `None` when the accept task is gone. Cancel safe.
    pub async fn next(&mut self) -> Option<ControlRequest> {
        self.requests.recv().await
    }

    /// Accepts no more, and waits until the last answers are written, up to a bound.
    pub async fn close(self) {
        let Self { requests, close, accept_task } = self;
        drop(requests);
        let _ = close.send(());
        // A client that does not read its answer in time goes without.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, accept_task).await;
    }
}

async fn accept(
    listener: UnixListener,
    requests: mpsc::Sender<ControlRequest>,
    mut closed: oneshot::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = &mut closed => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if is_own_user(&stream) => { connections.spawn(serve(stream, requests.clone())); }
                Ok(_) => {}
                // Most often we are out of file descriptors: try again, but do not spin.
                Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            },
        }
    }
    drop(requests);
    while connections.join_next().await.is_some() {}
}

fn is_own_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}

async fn serve(stream: UnixStream, requests: mpsc::Sender<ControlRequest>) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = Vec::new();
    let mut read = BufReader::new(read.take(MAX_REQUEST));
    tokio::time::timeout(REQUEST_TIMEOUT, read.read_until(b'\n', &mut line)).await??;
    let reply = match serde_json::from_slice(&line) {
        Ok(request) => {
            let (answer, answered) = oneshot::channel();
            let ended = || Reply::Refused { reason: "it has ended".into() };
            match requests.send(ControlRequest { request, answer }).await {
                Ok(()) => answered.await.unwrap_or_else(|_| ended()),
                Err(_) => ended(),
            }
        }
        Err(error) => Reply::Refused { reason: format!("not understood: {error}") },
    };
    let mut line = serde_json::to_vec(&reply)?;
    line.push(b'\n');
    write.write_all(&line).await
}
