//! The signals that a session listens to.

use std::io;

use tokio::signal::unix::{Signal as Listener, SignalKind, signal};

use crate::session::life::Signal;

/// SIGTSTP and SIGCONT; tokio has no names for them.
const TERMINAL_STOP: i32 = 20;
const CONTINUE: i32 = 18;
/// SIGXFSZ.
const FILE_SIZE: i32 = 25;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignalEvent {
    End(Signal),
    /// ^Z.
    Stop,
    /// SIGCONT.
    Continue,
}

#[derive(Debug)]
pub(super) struct Signals {
    terminate: Listener,
    hangup: Option<Listener>,
    interrupt: Option<Listener>,
    quit: Option<Listener>,
    stop: Listener,
    go_on: Listener,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: unless_ignored(SignalKind::hangup())?,
            interrupt: unless_ignored(SignalKind::interrupt())?,
            quit: unless_ignored(SignalKind::quit())?,
            stop: signal(SignalKind::from_raw(TERMINAL_STOP))?,
            go_on: signal(SignalKind::from_raw(CONTINUE))?,
        })
    }

    /// Cancel safe.
    pub(super) async fn next(&mut self) -> SignalEvent {
        let end = |kind: SignalKind| SignalEvent::End(Signal::End(kind.as_raw_value()));
        tokio::select! {
            biased;
            _ = self.terminate.recv() => end(SignalKind::terminate()),
            () = heard(self.hangup.as_mut()) => end(SignalKind::hangup()),
            () = heard(self.quit.as_mut()) => end(SignalKind::quit()),
            () = heard(self.interrupt.as_mut()) => SignalEvent::End(Signal::Interrupt),
            _ = self.stop.recv() => SignalEvent::Stop,
            _ = self.go_on.recv() => SignalEvent::Continue,
        }
    }
}

/// A file that may not grow any further is an error to the thread that writes it, and SIGXFSZ would be our death otherwise: history and logs
/// are not worth that. A handler is not inherited, so the server's own writes are as without us.
pub(super) fn survive_full_files() -> io::Result<()> {
    unless_ignored(SignalKind::from_raw(FILE_SIZE)).map(drop)
}

/// What was ignored when we were started stays so: nohup, or a shell's job in the background.
fn unless_ignored(kind: SignalKind) -> io::Result<Option<Listener>> {
    if is_ignored(kind.as_raw_value()) { Ok(None) } else { signal(kind).map(Some) }
}

fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (number - 1) & 1 == 1
}

async fn heard(listener: Option<&mut Listener>) {
    match listener {
        Some(listener) => {
            listener.recv().await;
        }
        None => std::future::pending().await,
    }
}
