//! The control socket of a `run`: takes a request, hands it to the driver, and brings the answer back. Same user only.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use crate::control::{Reply, Request};

/// No request is longer.
const LONGEST: u64 = 64 << 10;
/// How long a question may take to be put.
const QUESTION: Duration = Duration::from_secs(5);
/// How long answers may take to be fetched when all is over.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A request, and where its answer goes.
#[derive(Debug)]
pub struct Asked {
    /// What is asked.
    pub request: Request,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Reply>,
}

/// The control socket while it is open.
#[derive(Debug)]
pub struct Door {
    asked: mpsc::Receiver<Asked>,
    close: oneshot::Sender<()>,
    porter: JoinHandle<()>,
}

impl Door {
    /// Listens there. To be called on a runtime.
    pub fn open(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let (ask, asked) = mpsc::channel(8);
        let (close, closed) = oneshot::channel();
        let porter = tokio::spawn(listen(listener, ask, closed));
        Ok(Self { asked, close, porter })
    }

    /// The next request. Cancel safe.
    pub async fn asked(&mut self) -> Option<Asked> {
        self.asked.recv().await
    }

    /// Lets the last answers out.
    pub async fn close(self) {
        let Self { asked, close, porter } = self;
        drop(asked);
        let _ = close.send(());
        // Whoever does not fetch its answer goes without.
        let _ = tokio::time::timeout(LAST_WORDS, porter).await;
    }
}

async fn listen(listener: UnixListener, ask: mpsc::Sender<Asked>, mut closed: oneshot::Receiver<()>) {
    let mut visitors = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = &mut closed => break,
            Some(_) = visitors.join_next(), if !visitors.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if is_own_user(&stream) => { visitors.spawn(serve(stream, ask.clone())); }
                Ok(_) => {}
                // No files left, say: the next one may have more luck, but not at once.
                Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            },
        }
    }
    drop(ask);
    while visitors.join_next().await.is_some() {}
}

fn is_own_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}

async fn serve(stream: UnixStream, ask: mpsc::Sender<Asked>) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = Vec::new();
    let mut read = BufReader::new(read.take(LONGEST));
    tokio::time::timeout(QUESTION, read.read_until(b'\n', &mut line)).await??;
    let reply = match serde_json::from_slice(&line) {
        Ok(request) => {
            let (answer, answered) = oneshot::channel();
            let ended = || Reply::Refused { reason: "it has ended".into() };
            match ask.send(Asked { request, answer }).await {
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
