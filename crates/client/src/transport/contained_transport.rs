//! One contained server as an rmcp transport: the drop-in for `TokioChildProcess`.
//!
//! The process lives as long as the transport, which rmcp owns. A host with several servers, or with handles that travel,
//! wants a [`ServerSet`](crate::ServerSet) instead.

use std::borrow::BorrowMut;
use std::fmt;
use std::io;
use std::time::Duration;

use moored_containment::aio::{Contained, Stderr, Stdout};
use moored_containment::{Command, EndReport, Ladder, ProcessIdentity, StartError, Stdio, Strength};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::sync::oneshot;
use tokio::task::consume_budget;
use tokio::time::timeout;

use super::wire::Input;

/// How long after the server's end its last words may still be on their way.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A contained server, as rmcp wants it. Closing the connection ends the server by its ladder and verifies it; dropping
/// it ends the server before the drop returns, without a runtime.
///
/// ```
/// use moored_client::ContainedTransport;
/// use moored_containment::Command;
/// use rmcp::ServiceExt as _;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let mut transport = ContainedTransport::spawn(Command::new("sh").arg("examples/echo_server.sh"))?;
/// let ended = transport.ended();
/// let client = ().serve(transport).await?;
/// assert_eq!(client.list_all_tools().await?.len(), 1);
/// client.cancel().await?;
/// assert!(ended.report().await.expect("it was closed").verified);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ContainedTransport {
    // Dropped in this order: the tree ends first, and its output is open until then.
    contained: Contained,
    wire: AsyncRwTransport<RoleClient, Stdout, Input>,
    input: Input,
    ladder: Ladder,
    tell: Option<oneshot::Sender<EndReport>>,
    is_over: bool,
}

impl ContainedTransport {
    /// Starts the command, contained, with pipes for the protocol. To be called on a runtime with I/O and time.
    ///
    /// ```
    /// use moored_client::ContainedTransport;
    /// use moored_containment::Command;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let missing = ContainedTransport::spawn(Command::new("no-such-program")).expect_err("there is none");
    /// assert_eq!(missing.exit_code(), 127);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If it cannot be started, or not as strongly held as was required; nothing is left behind then.
    pub fn spawn(mut command: impl BorrowMut<Command>) -> Result<Self, StartError> {
        let mut contained = command.borrow_mut().stdin(Stdio::Pipe).stdout(Stdio::Pipe).spawn_async()?;
        let input = Input::new(contained.stdin.take());
        // Both were asked for, so both are there.
        let stdout = contained.stdout.take().ok_or_else(|| StartError::Guardian {
            program: "the server".to_owned(),
            source: io::ErrorKind::BrokenPipe.into(),
        })?;
        let wire = AsyncRwTransport::new_client(stdout, input.clone());
        Ok(Self { contained, wire, input, ladder: Ladder::default(), tell: None, is_over: false })
    }

    /// How the server is ended when the connection is closed: close stdin, 2 s, SIGTERM, 2 s, SIGKILL unless told
    /// otherwise.
    ///
    /// ```
    /// use moored_client::ContainedTransport;
    /// use moored_containment::{Command, Ladder};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let transport = ContainedTransport::spawn(Command::new("sh").arg("examples/echo_server.sh"))?
    ///     .ladder(Ladder::terminate());
    /// # drop(transport);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn ladder(mut self, ladder: Ladder) -> Self {
        self.ladder = ladder;
        self
    }

    /// The server's process.
    ///
    /// ```
    /// use moored_client::ContainedTransport;
    /// use moored_containment::Command;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let transport = ContainedTransport::spawn(Command::new("sh").arg("examples/echo_server.sh"))?;
    /// assert!(transport.process().is_alive()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn process(&self) -> ProcessIdentity {
        self.contained.identity()
    }

    /// What holds it.
    ///
    /// ```
    /// use moored_client::ContainedTransport;
    /// use moored_containment::Command;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let transport = ContainedTransport::spawn(Command::new("sh").arg("examples/echo_server.sh"))?;
    /// assert!(!transport.strength().layers.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn strength(&self) -> &Strength {
        self.contained.strength()
    }

    /// The server's standard error, if the command has a pipe for it, once. It must be read, or the server gets stuck.
    ///
    /// ```
    /// use moored_client::ContainedTransport;
    /// use moored_containment::{Command, Stdio};
    /// use tokio::io::AsyncReadExt as _;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let mut command = Command::new("sh");
    /// let mut transport = ContainedTransport::spawn(command.args(["-c", "echo oh >&2"]).stderr(Stdio::Pipe))?;
    /// let mut said = String::new();
    /// transport.take_stderr().expect("piped").read_to_string(&mut said).await?;
    /// assert_eq!(said, "oh\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take_stderr(&mut self) -> Option<Stderr> {
        self.contained.stderr.take()
    }

    /// To learn how the server ended, when rmcp has the transport. The last one that was asked for is told.
    ///
    /// ```
    /// use moored_client::ContainedTransport;
    /// use moored_containment::Command;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let mut transport = ContainedTransport::spawn(Command::new("sh").arg("examples/echo_server.sh"))?;
    /// let ended = transport.ended();
    /// drop(transport);
    /// assert!(ended.report().await.expect("a report").verified);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ended(&mut self) -> TransportEnd {
        let (tell, told) = oneshot::channel();
        self.tell = Some(tell);
        TransportEnd(told)
    }

    /// Ends the server, and reads on until then: one that still has something to say is not stuck with it.
    async fn end(&mut self) -> io::Result<()> {
        let reading = async {
            while self.wire.receive().await.is_some() {}
            std::future::pending().await
        };
        let report = tokio::select! {
            report = self.input.close_once_begun(self.contained.end(self.ladder)) => report.map_err(io::Error::other)?,
            report = reading => report,
        };
        if let Some(tell) = self.tell.take() {
            // The receiver may have been dropped.
            let _ = tell.send(report);
        }
        Ok(())
    }
}

impl Transport<RoleClient> for ContainedTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.wire.send(message)
    }

    /// A program that is meant to outlive the server may hold its output open, so the server's end counts as well.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        // A message costs a turn: many lie in one read, and other tasks want to run between them.
        consume_budget().await;
        if !self.is_over {
            tokio::select! {
                biased;
                message = self.wire.receive() => return message,
                _ = self.contained.wait_ended() => self.is_over = true,
            }
        }
        timeout(LAST_WORDS, self.wire.receive()).await.unwrap_or(None)
    }

    async fn close(&mut self) -> io::Result<()> {
        self.end().await
    }
}

impl Drop for ContainedTransport {
    fn drop(&mut self) {
        // Asked first: a server that ends with its input must not seem to have ended by itself.
        self.contained.ask_to_end();
        self.input.close();
        let Some(tell) = self.tell.take() else { return };
        if let Ok(report) = self.contained.end_blocking() {
            // The receiver may have been dropped.
            let _ = tell.send(report);
        }
    }
}

impl fmt::Debug for ContainedTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainedTransport").field("process", &self.process()).finish_non_exhaustive()
    }
}

/// How a server will have ended; see [`ContainedTransport::ended`].
///
/// ```
/// use moored_client::{ContainedTransport, TransportEnd};
/// use moored_containment::Command;
/// use rmcp::ServiceExt as _;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let mut transport = ContainedTransport::spawn(Command::new("sh").arg("examples/echo_server.sh"))?;
/// let ended: TransportEnd = transport.ended();
/// ().serve(transport).await?.cancel().await?;
/// assert!(ended.report().await.expect("a report").survivors.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TransportEnd(oneshot::Receiver<EndReport>);

impl TransportEnd {
    /// Waits for it; `None` if no report could be had. A transport that is dropped instead of closed tells as well.
    ///
    /// ```
    /// use moored_client::ContainedTransport;
    /// use moored_containment::Command;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let mut transport = ContainedTransport::spawn(Command::new("sh").arg("examples/echo_server.sh"))?;
    /// let ended = transport.ended();
    /// drop(transport);
    /// assert_eq!(ended.report().await.expect("a report").kept.len(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn report(self) -> Option<EndReport> {
        self.0.await.ok()
    }
}
