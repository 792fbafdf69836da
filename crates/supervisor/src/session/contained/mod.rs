//! A session's server as containment holds it: [`ContainedServer`], and [`ContainedStarter`], which starts one by the session's
//! rules. `files` has our ends of its pipes, `holder` the task that ends it and waits for its end.

mod files;
mod holder;
mod starter;

pub(super) use starter::ContainedStarter;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use moored_containment::{Ladder, ProcessIdentity, Signaller};
use tokio::io::AsyncWrite as _;

use self::files::ServerFiles;
use self::holder::Holder;
use super::run::distant_clients::is_exiting;
use super::server::{Drained, RunningServer, ServerEvent, ServerOutput, Vital};
use crate::event::Started;
use crate::ignored::ignore;

/// A server in its containment. Dropping it ends its tree.
#[derive(Debug)]
pub(super) struct ContainedServer {
    started: Started,
    guardians: [ProcessIdentity; 2],
    signals: Signaller,
    files: ServerFiles,
    holder: Holder,
}

impl RunningServer for ContainedServer {
    fn started(&self) -> &Started {
        &self.started
    }

    fn guardians(&self) -> &[ProcessIdentity] {
        &self.guardians
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<ServerEvent> {
        self.holder.poll_event(cx)
    }

    fn end(&self, ladder: Ladder) {
        self.holder.end(ladder);
    }

    fn signal_group(&self, signal: i32) {
        // It may have ended just now, which is told by itself.
        ignore("signal the server's process group", self.signals.group(signal));
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.files.stdin {
            Some(stdin) => Pin::new(stdin).poll_write(cx, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn close_stdin(&mut self) {
        self.files.close_stdin();
    }

    fn has_stdin(&self) -> bool {
        self.files.stdin.is_some()
    }

    fn unread_input(&self) -> usize {
        self.files.unread_input()
    }

    fn poll_stdin_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.files.poll_stdin_closed(cx)
    }

    fn has_stdout(&self) -> bool {
        self.files.has_stdout()
    }

    fn vital(&self) -> Vital {
        let process = self.started.process;
        if process.is_alive().is_ok_and(|alive| !alive) {
            Vital::Dead
        } else if is_exiting(process.pid) {
            Vital::Exiting
        } else {
            Vital::Alive
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, from: ServerOutput, into: &mut [u8]) -> Poll<usize> {
        self.files.poll_read(cx, from, into)
    }

    fn drain(&mut self) -> Drained {
        self.files.drain()
    }

    fn adjust_widths(&mut self, incoming: usize, outgoing: usize) {
        self.files.adjust_widths(incoming, outgoing);
    }
}
