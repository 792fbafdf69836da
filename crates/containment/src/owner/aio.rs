//! The async handle, for tokio: the same session, awaited.
//!
//! It needs a runtime with I/O and time to wait, but none to end: dropping it works without.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

use crate::owner::link::{EndError, Link, SET_GOING_EVERY};
use crate::owner::report::{EndReport, ServerExit};
use crate::owner::signaller::Signaller;
use crate::owner::start::Started;
use crate::owner::strength::Strength;
use crate::process::identity::ProcessIdentity;
use crate::record::cookie::SessionId;
use crate::shared::board::reason;
use crate::shared::ladder::Ladder;
use crate::sys;

/// A running server, and everything that it ever starts; see [`crate::Contained`].
///
/// ```
/// use moored_containment::{Command, Ladder, Stdio};
/// use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let mut server = Command::new("cat").stdin(Stdio::Pipe).stdout(Stdio::Pipe).spawn_async()?;
/// server.stdin.as_mut().expect("piped").write_all(b"hello").await?;
/// let report = server.end(Ladder::default()).await?;
/// assert!(report.verified);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Contained {
    // Dropped in this order: the server's input ends first, then the tree, and its outputs are open until then.
    /// The server's input, if it was piped.
    pub stdin: Option<Stdin>,
    link: Link,
    /// The server's output, if it was piped.
    pub stdout: Option<Stdout>,
    /// The server's errors, if they were piped.
    pub stderr: Option<Stderr>,
    /// A second number for the link's socket, registered with the reactor.
    socket: AsyncFd<OwnedFd>,
    /// The link's server, registered too: its guardians may have been stopped before it ended.
    server: AsyncFd<Arc<sys::ProcessFd>>,
}

impl Contained {
    pub(crate) fn new(started: Started) -> io::Result<Self> {
        let socket = started.link.socket().try_clone_to_owned()?;
        Ok(Self {
            stdin: started.stdin.map(Stdin::new).transpose()?,
            stdout: started.stdout.map(Stdout::new).transpose()?,
            stderr: started.stderr.map(Stderr::new).transpose()?,
            socket: sys::watch(socket, Interest::READABLE)?,
            server: sys::watch_process(started.link.server())?,
            link: started.link,
        })
    }

    /// The session's name.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.link.id()
    }

    /// The server itself.
    #[must_use]
    pub fn identity(&self) -> ProcessIdentity {
        self.link.identity()
    }

    /// The outer and the inner guardian.
    #[must_use]
    pub fn guardians(&self) -> [ProcessIdentity; 2] {
        self.link.guardians()
    }

    /// Which layers hold it.
    #[must_use]
    pub fn strength(&self) -> &Strength {
        self.link.strength()
    }

    /// Sends a signal to the server itself, never to another process that got its number later.
    ///
    /// # Errors
    /// If it has ended, or the signal is none.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        self.link.signaller().server(signal)
    }

    /// A handle that sends signals to the server, or to all of its process group.
    #[must_use]
    pub fn signaller(&self) -> Signaller {
        self.link.signaller()
    }

    /// Until the guardians say something new, or it is time to see to it that they can. May wake for nothing.
    async fn news(&mut self) -> Result<(), EndError> {
        let session = self.link.id();
        let failed = |source| EndError::Io { session, source };
        if self.link.server_died() {
            match tokio::time::timeout(SET_GOING_EVERY, self.socket.readable()).await {
                // Cleared before it is read: what comes after is a new readiness.
                Ok(ready) => ready.map_err(failed)?.clear_ready(),
                Err(_) => self.link.resume_guardians(),
            }
        } else {
            let server_died = poll_fn(|cx| {
                if let Poll::Ready(ready) = self.socket.poll_read_ready(cx) {
                    return Poll::Ready(ready.map(|mut ready| {
                        ready.clear_ready();
                        false
                    }));
                }
                self.server.poll_read_ready(cx).map(|ended| ended.map(|_| true))
            });
            let server_died = server_died.await.map_err(failed)?;
            if server_died {
                self.link.note_server_death();
            }
        }
        self.link.hear()
    }

    /// How the server ended, if it has. What else it started is being ended then.
    ///
    /// # Errors
    /// If both guardians were killed before they saw it.
    pub fn try_wait(&mut self) -> Result<Option<ServerExit>, EndError> {
        self.link.try_exit()
    }

    /// How the server ended. What else it started is being ended then; [`Contained::wait_ended`] waits for that too.
    /// Cancel safe.
    ///
    /// # Errors
    /// If both guardians were killed before they saw it.
    pub async fn wait(&mut self) -> Result<ServerExit, EndError> {
        self.link.hear()?;
        loop {
            match (self.link.exit(), self.link.report()) {
                (Some(exit), _) => return Ok(exit),
                (None, Some(report)) => return Err(EndError::StatusLost { session: report.session }),
                (None, None) => self.news().await?,
            }
        }
    }

    /// Waits until the whole session has ended, without asking for it. Cancel safe.
    ///
    /// # Errors
    /// If the guardians cannot be heard.
    pub async fn wait_ended(&mut self) -> Result<EndReport, EndError> {
        self.link.hear()?;
        loop {
            if let Some(report) = self.link.report() {
                return Ok(report.clone());
            }
            self.news().await?;
        }
    }

    /// Ends the tree by that ladder, and waits until it is gone and `on_end` has run. Asked again, it gives the same
    /// report. If it is cancelled the ending goes on.
    ///
    /// # Errors
    /// If the guardians cannot be heard. They end the tree all the same.
    pub async fn end(&mut self, ladder: Ladder) -> Result<EndReport, EndError> {
        if !self.link.owns() {
            return Err(EndError::NotOwner { session: self.link.id() });
        }
        self.link.announce(reason::REQUESTED);
        self.stdin = None;
        if self.link.report().is_none() {
            self.link.ask(reason::REQUESTED, &ladder);
        }
        let patience = self.link.patience(&ladder);
        if let Some(report) = self.wait_for_end(patience).await {
            return report;
        }
        self.link.give_up_on_one();
        if let Some(report) = self.wait_for_end(patience).await {
            return report;
        }
        self.link.give_up_on_both()?;
        self.link.report().cloned().ok_or_else(|| self.link.stuck())
    }

    /// The report of an end that was asked for, if it comes in time. A guardian that is stopped meanwhile does not stay so.
    async fn wait_for_end(&mut self, patience: Duration) -> Option<Result<EndReport, EndError>> {
        let began = tokio::time::Instant::now();
        loop {
            let left = patience.saturating_sub(began.elapsed());
            match tokio::time::timeout(left.min(SET_GOING_EVERY), self.wait_ended()).await {
                Ok(report) => return Some(report),
                Err(_) if left.is_zero() => return None,
                Err(_) => self.link.resume_guardians(),
            }
        }
    }

    /// Asks for what [`Contained::end_blocking`] does, and does not wait: for an owner of several, who asks all of them
    /// before waiting for any.
    ///
    /// ```
    /// use moored_containment::{Command, Stdio};
    ///
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    /// # let _on = runtime.enter();
    /// let start = || Command::new("cat").stdin(Stdio::Pipe).spawn_async();
    /// let mut servers = [start()?, start()?];
    /// servers.iter_mut().for_each(|server| server.ask_to_end());
    /// for server in &mut servers {
    ///     assert!(server.end_blocking()?.verified);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ask_to_end(&mut self) {
        if self.link.owns() {
            self.link.announce(reason::DROPPED);
            self.stdin = None;
            self.link.ask_dropped();
        }
    }

    /// What dropping it does, and what came of it: ends the tree by the ladder for drops, before this returns and without
    /// a runtime. Asked again, or after the end, it gives the same report.
    ///
    /// ```
    /// use moored_containment::{Command, EndReason, Stdio};
    ///
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    /// let mut server = runtime.block_on(async { Command::new("cat").stdin(Stdio::Pipe).spawn_async() })?;
    /// drop(runtime);
    /// let report = server.end_blocking()?;
    /// assert!(report.verified && report.reason == EndReason::Dropped);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the guardians cannot be heard. They end the tree all the same.
    pub fn end_blocking(&mut self) -> Result<EndReport, EndError> {
        if !self.link.owns() {
            return Err(EndError::NotOwner { session: self.link.id() });
        }
        self.link.announce(reason::DROPPED);
        self.stdin = None;
        self.link.end_dropped()
    }
}

macro_rules! async_end {
    ($(#[$doc:meta])* $name:ident, $interest:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(AsyncFd<OwnedFd>);

        impl $name {
            fn new(fd: OwnedFd) -> io::Result<Self> {
                // The pipe is ours alone, so no other process is surprised by this.
                sys::set_nonblocking(fd.as_fd())?;
                sys::watch(fd, $interest).map(Self)
            }
        }

        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.get_ref().as_fd()
            }
        }

        impl From<$name> for OwnedFd {
            /// The file stays non-blocking.
            fn from(end: $name) -> Self {
                end.0.into_inner()
            }
        }
    };
}

async_end!(
    /// Writes to the server. Dropping it is the end of the server's input.
    Stdin,
    Interest::WRITABLE
);
async_end!(
    /// Reads what the server writes to its standard output.
    Stdout,
    Interest::READABLE
);
async_end!(
    /// Reads what the server writes to its standard error.
    Stderr,
    Interest::READABLE
);

fn poll_read(fd: &AsyncFd<OwnedFd>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
    loop {
        let mut ready = ready!(fd.poll_read_ready(cx))?;
        let space = into.initialize_unfilled();
        // An error means that it was not ready after all.
        if let Ok(read) = ready.try_io(|fd| sys::read_fd(fd.as_fd(), space)) {
            return Poll::Ready(read.map(|n| into.advance(n)));
        }
    }
}

impl AsyncRead for Stdout {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        poll_read(&self.0, cx, into)
    }
}

impl AsyncRead for Stderr {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        poll_read(&self.0, cx, into)
    }
}

impl AsyncWrite for Stdin {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.0.poll_write_ready(cx))?;
            // An error means that it was not ready after all.
            if let Ok(written) = ready.try_io(|fd| sys::write_fd(fd.as_fd(), bytes)) {
                return Poll::Ready(written);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A pipe keeps nothing back.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The end of a pipe is its closing, which is the drop.
        Poll::Ready(Ok(()))
    }
}
