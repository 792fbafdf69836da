//! The way of the messages between rmcp and a process of a set.
//!
//! rmcp owns its transport for as long as it likes; the set needs two things of it all the same. The server's input must
//! be closed when its end begins, not when rmcp gets to it: hence [`Input`], which the set can close. And the set must
//! know when nothing comes from the server any more, or nothing gets there: hence the [`Signs`].

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use moored_containment::aio::{Stdin, Stdout};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::AsyncWrite;
use tokio::task::consume_budget;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A server's input, which two can close.
#[derive(Clone)]
pub(crate) struct Input(Arc<Mutex<Pipe>>);

struct Pipe {
    stdin: Option<Stdin>,
    /// The writer that waits for the server to read on. A close drops the pipe and its wakers, so it is woken through this.
    writer: Option<Waker>,
}

impl Input {
    pub(crate) fn new(stdin: Option<Stdin>) -> Self {
        Self(Arc::new(Mutex::new(Pipe { stdin, writer: None })))
    }

    fn lock(&self) -> MutexGuard<'_, Pipe> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server sees EOF on stdin; a write in progress gets an error.
    pub(crate) fn close(&self) {
        let Pipe { stdin, writer } = &mut *self.lock();
        *stdin = None;
        if let Some(writer) = writer.take() {
            writer.wake();
        }
    }

    /// Closes it when the ending has begun, and waits for the ending. The guardians must know that an end is wanted, and by
    /// which ladder, before a server that ends at the end of its input is gone: else it seems to have ended by itself.
    pub(crate) async fn close_once_begun<T>(&self, ending: impl Future<Output = T>) -> T {
        let mut ending = pin!(ending);
        let begun = poll_fn(|cx| Poll::Ready(ending.as_mut().poll(cx))).await;
        self.close();
        match begun {
            Poll::Ready(ended) => ended,
            Poll::Pending => ending.await,
        }
    }
}

impl AsyncWrite for Input {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Pipe { stdin, writer } = &mut *self.lock();
        let Some(stdin) = stdin else { return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())) };
        let written = Pin::new(stdin).poll_write(cx, bytes);
        *writer = written.is_pending().then(|| cx.waker().clone());
        written
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.lock().stdin {
            Some(stdin) => Pin::new(stdin).poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        Poll::Ready(Ok(()))
    }
}

/// What a set sees of the wire, when rmcp has it.
#[derive(Clone, Default)]
pub(crate) struct Signs {
    /// Nothing comes from the server any more, or rmcp has dropped the wire.
    pub(crate) silent: CancellationToken,
    /// The server has closed its input: no call gets there. It may still answer those that did.
    pub(crate) deaf: CancellationToken,
}

/// The transport that a set gives to rmcp.
pub(crate) struct Wire {
    inner: AsyncRwTransport<RoleClient, Stdout, Input>,
    input: Input,
    signs: Signs,
    _silent: DropGuard,
}

impl Wire {
    pub(crate) fn new(stdout: Stdout, input: Input, signs: Signs) -> Self {
        let inner = AsyncRwTransport::new_client(stdout, input.clone());
        Self { inner, input, _silent: signs.silent.clone().drop_guard(), signs }
    }
}

impl Transport<RoleClient> for Wire {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (sending, deaf) = (self.inner.send(message), self.signs.deaf.clone());
        async move {
            let sent = sending.await;
            if sent.is_err() {
                deaf.cancel();
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        // A message costs a turn: many lie in one read, and other tasks want to run between them.
        consume_budget().await;
        let message = self.inner.receive().await;
        if message.is_none() {
            self.signs.silent.cancel();
        }
        message
    }

    /// Does not wait for a message that is on its way: the server may never read it.
    async fn close(&mut self) -> io::Result<()> {
        self.input.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::time::Duration;

    use moored_containment::{Command, Stdio};
    use tokio::io::AsyncWriteExt as _;
    use tokio::task::yield_now;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_writer_is_told_that_the_input_was_closed() {
        let mut server =
            Command::new("sleep").arg("600").stdin(Stdio::Pipe).spawn_async().expect("it starts");
        let input = Input::new(server.stdin.take());
        let (mut writer, sent) = (input.clone(), Arc::new(AtomicUsize::new(0)));
        let writing = tokio::spawn({
            let sent = sent.clone();
            async move {
                loop {
                    sent.fetch_add(writer.write(&[0; 1024]).await?, Relaxed);
                }
            }
        });
        // Before the first bytes it only waits for the reactor.
        let waits = async {
            while sent.load(Relaxed) == 0 || input.lock().writer.is_none() {
                yield_now().await;
            }
        };
        timeout(Duration::from_secs(20), waits).await.expect("nobody reads it");
        input.close();
        let written: io::Result<()> =
            timeout(Duration::from_secs(20), writing).await.expect("it is told").expect("no panic");
        assert_eq!(written.expect_err("it was closed").kind(), io::ErrorKind::BrokenPipe);
    }
}
