//! The signals that a session listens to.

use std::io;

use tokio::signal::unix::{Signal as Listener, SignalKind, signal};

use super::state::Signal;

/// SIGTSTP and SIGCONT; tokio has no names for them.
const TERMINAL_STOP: i32 = 20;
const CONTINUE: i32 = 18;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    End(Signal),
    /// ^Z.
    Stop,
    /// Somebody goes on with us.
    Continue,
}

#[derive(Debug)]
pub(super) struct Signals {
    terminate: Listener,
    hangup: Listener,
    interrupt: Listener,
    quit: Listener,
    stop: Listener,
    go_on: Listener,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            stop: signal(SignalKind::from_raw(TERMINAL_STOP))?,
            go_on: signal(SignalKind::from_raw(CONTINUE))?,
        })
    }

    /// Cancel safe.
    pub(super) async fn next(&mut self) -> Heard {
        let end = |kind: SignalKind| Heard::End(Signal::End(kind.as_raw_value()));
        tokio::select! {
            biased;
            _ = self.terminate.recv() => end(SignalKind::terminate()),
            _ = self.hangup.recv() => end(SignalKind::hangup()),
            _ = self.quit.recv() => end(SignalKind::quit()),
            _ = self.interrupt.recv() => Heard::End(Signal::Interrupt),
            _ = self.stop.recv() => Heard::Stop,
            _ = self.go_on.recv() => Heard::Continue,
        }
    }
}
