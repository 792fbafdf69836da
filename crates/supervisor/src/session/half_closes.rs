//! A server that closes its stdin or its stdout and lives on: the part of the driver that lets the client see that, as it would
//! without us. An exit closes both too, and is told by itself: so a server has to live for a moment after.
//!
//! - stdout closed: what came before is passed on, and our own stdout is closed;
//! - stdin closed: our own stdin is closed, so that the client's next write fails. That the client closes its end cannot be seen
//!   by it any more, so our stdout is watched for having no reader;
//! - both: neither side can say anything any more, and the session is over.

use std::future::poll_fn;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

use super::distant_clients::is_exiting;
use super::driver::Driver;
use super::state::Event;
use crate::event::EndCause;
use crate::relay::watch;

/// How long a server lives on that has closed a pipe without exiting.
const NOT_AN_EXIT: Duration = Duration::from_millis(250);

impl Driver {
    /// The server has closed a pipe: it may be about to exit.
    pub(super) fn note_half_close(&mut self) {
        if self.state.has_server() {
            self.half_close_at = Some(Instant::now() + NOT_AN_EXIT);
        }
    }

    /// It did not exit.
    pub(super) fn pass_half_close(&mut self) {
        self.half_close_at = None;
        let Some(server) = self.live.as_ref().map(|live| live.started.process) else { return };
        // Its exit is on its way.
        let is_gone = server.is_alive().is_ok_and(|alive| !alive);
        if is_gone || !self.state.has_server() {
            return;
        }
        if is_exiting(server.pid) {
            return self.note_half_close();
        }
        self.is_half_closed = true;
        let has_no_stdin = self.pump.server.stdin.is_none();
        if self.pump.server.stdout.is_none() {
            self.finish_output();
            self.pump.close_output();
            if has_no_stdin {
                return self.dispatch(Event::Stop(EndCause::ServerExited));
            }
        }
        if has_no_stdin && !self.is_input_over {
            self.close_own_stdin();
        }
    }

    /// Only where we can still learn that the client has left.
    fn close_own_stdin(&mut self) {
        let stdout = std::io::stdout().as_fd().try_clone_to_owned();
        if let Ok(watched) = stdout.and_then(|stdout| watch(stdout, Interest::READABLE)) {
            self.unread_stdout = Some(watched);
            self.hangup = None;
            self.pump.close_client();
        }
    }
}

/// Until this file, which is written to, has no reader any more. It is watched for reading, of which there is nothing to be told
/// but that.
pub(super) async fn has_no_reader(watched: Option<&AsyncFd<OwnedFd>>) {
    match watched {
        Some(watched) if poll_fn(|cx| watched.poll_write_ready(cx)).await.is_ok() => {}
        _ => std::future::pending().await,
    }
}
