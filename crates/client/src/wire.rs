//! The way of the messages between rmcp and a process of a set.
//!
//! rmcp owns its transport for as long as it likes; the set needs two things of it all the same. The server's input must
//! be closed when its end begins, not when rmcp gets to it: hence [`Input`], which the set can close. And the set must
//! know when rmcp has stopped listening: hence the token.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use moored_containment::aio::{Stdin, Stdout};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::AsyncWrite;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A server's input, which two can close.
#[derive(Clone)]
pub(crate) struct Input(Arc<Mutex<Option<Stdin>>>);

impl Input {
    pub(crate) fn new(stdin: Option<Stdin>) -> Self {
        Self(Arc::new(Mutex::new(stdin)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Stdin>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server sees the end of its input.
    pub(crate) fn close(&self) {
        *self.lock() = None;
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
        match &mut *self.lock() {
            Some(stdin) => Pin::new(stdin).poll_write(cx, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self.lock() {
            Some(stdin) => Pin::new(stdin).poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        Poll::Ready(Ok(()))
    }
}

/// The transport that a set gives to rmcp.
pub(crate) struct Wire {
    inner: AsyncRwTransport<RoleClient, Stdout, Input>,
    closed: CancellationToken,
    _closes: DropGuard,
}

impl Wire {
    /// The token is cancelled when nothing comes from the server any more, or rmcp has dropped the wire.
    pub(crate) fn new(stdout: Stdout, input: Input, closed: CancellationToken) -> Self {
        let inner = AsyncRwTransport::new_client(stdout, input);
        Self { inner, _closes: closed.clone().drop_guard(), closed }
    }
}

impl Transport<RoleClient> for Wire {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await;
        if message.is_none() {
            self.closed.cancel();
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        self.inner.close().await
    }
}
