//! The client of a `run` while it lives: its death, and who closed its end of our stdin.
//!
//! A client is bound to see us gone by the bound of the ladder; a pipeline, whose writer has left, waits for nothing but the
//! answers. A client that is no ancestor of ours is looked for on a thread when our stdin has ended, because that takes a look at
//! every process; until it is found, the end of our stdin is taken for a pipeline's.

use std::io;
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::sync::mpsc as std_mpsc;
use std::task::{Context, Poll, ready};

use moored_containment::process::HeldProcess;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::client::{ClientProcess, StdinHold};
use super::distant_clients::{is_read_by_client, lives, writers_of};
use crate::on_thread::on_thread;
use crate::session::port::{EofKind, Received};

#[derive(Debug)]
pub(super) struct ClientWatch {
    process: Option<ClientProcess>,
    /// Processes that held the other end of our stdin at the start without being ancestors of ours.
    writers: Option<std_mpsc::Receiver<Vec<HeldProcess>>>,
    /// When our stdin ended, and who closed it, which is being looked up.
    eof: Option<(Instant, oneshot::Receiver<EofKind>)>,
}

impl ClientWatch {
    pub(super) fn new(process: Option<ClientProcess>) -> Self {
        let is_distant = process.as_ref().is_some_and(|process| process.stdin == StdinHold::Not);
        let writers = if is_distant { look_for_writers() } else { None };
        Self { process, writers, eof: None }
    }

    /// Whether a program may be at the other end of our stdin, rather than a terminal or a file.
    pub(super) fn has_client(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.stdin.is_possible())
    }

    /// Ready once, when the client is dead.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(process) = &mut self.process else { return Poll::Pending };
        ready!(process.poll_gone(cx));
        process.forget();
        Poll::Ready(())
    }

    /// Our stdin has ended: says who closed it, as far as it is known now.
    pub(super) fn eof(&mut self) -> Received {
        let may_hold_stdin = self.process.as_ref().is_none_or(|process| process.stdin.is_possible());
        if may_hold_stdin {
            return Received::Eof { kind: EofKind::Client, at: Instant::now() };
        }
        let writers = &mut self.writers;
        let (at, _) = self.eof.get_or_insert_with(|| (Instant::now(), look_at_end(writers.take())));
        Received::Eof { kind: EofKind::Pipeline, at: *at }
    }

    /// Ready once when the client is dead, and once when a client is found that closed its end.
    pub(super) fn poll_after_eof(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        if self.poll_gone(cx).is_ready() {
            return Poll::Ready(Received::Gone);
        }
        let Some((at, kind)) = &mut self.eof else { return Poll::Pending };
        let at = *at;
        // Without a thread it is as if no process had been seen.
        let kind = ready!(Pin::new(kind).poll(cx)).unwrap_or(EofKind::Pipeline);
        self.eof = None;
        if kind == EofKind::Client { Poll::Ready(Received::Bound(at)) } else { Poll::Pending }
    }
}

fn look_for_writers() -> Option<std_mpsc::Receiver<Vec<HeldProcess>>> {
    let (tell, writers) = std_mpsc::channel();
    // The session may have ended before they were found.
    on_thread(move || drop(tell.send(writers_of(io::stdin().as_fd())))).ok().map(|()| writers)
}

/// A process that is no ancestor, held the other end of our stdin or reads our stdout, and lives on, is a client like any other.
fn look_at_end(writers: Option<std_mpsc::Receiver<Vec<HeldProcess>>>) -> oneshot::Receiver<EofKind> {
    let (tell, kind) = oneshot::channel();
    // Where there is no thread the sender is dropped, which is seen.
    let _ = on_thread(move || {
        let writers = writers.and_then(|writers| writers.recv().ok()).unwrap_or_default();
        let is_client = writers.iter().any(lives) || is_read_by_client(io::stdout().as_fd());
        let kind = if is_client { EofKind::Client } else { EofKind::Pipeline };
        // The session may have ended.
        let _ = tell.send(kind);
    });
    kind
}
