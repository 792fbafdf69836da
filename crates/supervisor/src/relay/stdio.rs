//! Our own stdin, stdout and stderr, of every kind: pipes (Python clients), sockets (Node clients), files, terminals.
//!
//! They are shared: a shell, a wrapper or the client itself may hold the same open file, and would be surprised to find it
//! non-blocking. So that flag is never set on it. A pipe or a terminal is opened a second time, through `/proc/self/fd`,
//! and that open file is ours alone; a socket is asked not to block at each call; a file never blocks for long; and what
//! cannot be opened again (another user's terminal) is read or written by a thread, which may block.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, OFlags};
use rustix::net::{RecvFlags, SendFlags};
use rustix::time::Timespec;
use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};
use tokio::sync::mpsc::{self, OwnedPermit, error::SendError};
use tokio::sync::oneshot;

use super::watch::watch;
use crate::on_thread::on_thread;

/// What one of our files is, and so how it is read or written.
#[derive(Debug)]
enum StdioKind {
    /// A pipe or terminal: our own second opening of it, non-blocking.
    Reopened(AsyncFd<OwnedFd>),
    /// A socket: each call says MSG_DONTWAIT.
    Socket(AsyncFd<OwnedFd>),
    /// A regular file, /dev/null: never waited for.
    AlwaysReady(File),
}

impl StdioKind {
    fn of(fd: BorrowedFd<'_>, interest: Interest) -> io::Result<Self> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
        Ok(match kind {
            FileType::Socket => Self::Socket(watch(fd.try_clone_to_owned()?, interest)?),
            FileType::RegularFile | FileType::Directory => Self::AlwaysReady(fd.try_clone_to_owned()?.into()),
            _ => match watch(open_again(fd, interest)?, interest) {
                Ok(own) => Self::Reopened(own),
                // epoll refuses this kind, since it is always ready: /dev/null, for example.
                Err(_) => Self::AlwaysReady(fd.try_clone_to_owned()?.into()),
            },
        })
    }
}

impl AsFd for StdioKind {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Reopened(fd) | Self::Socket(fd) => fd.get_ref().as_fd(),
            Self::AlwaysReady(file) => file.as_fd(),
        }
    }
}

fn open_again(fd: BorrowedFd<'_>, interest: Interest) -> io::Result<OwnedFd> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let reading = interest.is_readable();
    let file = OpenOptions::new()
        .read(reading)
        .write(!reading)
        .custom_flags(flags.bits().cast_signed())
        .open(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
    Ok(file.into())
}

/// Reads our stdin.
#[derive(Debug)]
pub(crate) enum StdioReader {
    #[expect(private_interfaces, reason = "built here alone")]
    Ready(StdioKind),
    /// A thread reads, and sends what it has read.
    #[expect(private_interfaces, reason = "built here alone")]
    Thread(ReaderThread),
}

/// A thread that reads until this value is dropped. Then it closes the file, so that the writer at the other end gets EPIPE.
#[derive(Debug)]
struct ReaderThread {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// Received from the thread and not returned by `poll_read` yet.
    unread: Vec<u8>,
    /// The thread polls the other end for POLLHUP, which comes when this is dropped.
    _alive: OwnedFd,
}

impl StdioReader {
    /// Reads from that file.
    pub(crate) fn open(fd: BorrowedFd<'_>) -> io::Result<Self> {
        match StdioKind::of(fd, Interest::READABLE) {
            Ok(kind) => Ok(Self::Ready(kind)),
            Err(_) => Self::thread(fd.try_clone_to_owned()?),
        }
    }

    fn thread(fd: OwnedFd) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(1);
        let (owner, alive) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        on_thread(move || {
            let mut file = File::from(fd);
            let mut space = vec![0; 16 << 10];
            while is_wanted(&file, &owner) {
                let read = match file.read(&mut space) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                    Ok(n) => Ok(space[..n].to_vec()),
                };
                let last = !matches!(&read, Ok(bytes) if !bytes.is_empty());
                if sender.blocking_send(read).is_err() || last {
                    return;
                }
            }
        })?;
        Ok(Self::Thread(ReaderThread { chunks, unread: Vec::new(), _alive: alive }))
    }

    /// The file, unless a thread has it.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Ready(kind) => Some(kind.as_fd()),
            Self::Thread(..) => None,
        }
    }

    /// Bytes read; 0 means EOF.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Ready(StdioKind::Reopened(fd)) => {
                when_ready(|| fd.poll_read_ready(cx), |fd| Ok(rustix::io::read(fd, &mut *into)?))
            }
            Self::Ready(StdioKind::Socket(fd)) => {
                let read = |fd: &OwnedFd| Ok(rustix::net::recv(fd, &mut *into, RecvFlags::DONTWAIT)?.0);
                when_ready(|| fd.poll_read_ready(cx), read)
            }
            Self::Ready(StdioKind::AlwaysReady(file)) => Poll::Ready(file.read(into)),
            Self::Thread(ReaderThread { chunks, unread, .. }) => {
                if unread.is_empty() {
                    *unread = ready!(chunks.poll_recv(cx)).unwrap_or(Ok(Vec::new()))?;
                }
                let n = unread.len().min(into.len());
                into[..n].copy_from_slice(&unread[..n]);
                unread.drain(..n);
                Poll::Ready(Ok(n))
            }
        }
    }
}

/// Waits until there is something to read, or the `ReaderThread` was dropped; false if it was.
fn is_wanted(file: &File, owner: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(file, PollFlags::IN), PollFd::new(owner, PollFlags::empty())];
    while poll(&mut fds, None).is_err_and(|error| error == rustix::io::Errno::INTR) {}
    fds[1].revents().is_empty()
}

/// Tries until it is done or the file is not ready after all, in which case we are woken when it is.
fn when_ready<'a, T>(
    mut ready: impl FnMut() -> Poll<io::Result<AsyncFdReadyGuard<'a, OwnedFd>>>,
    mut attempt: impl FnMut(&OwnedFd) -> io::Result<T>,
) -> Poll<io::Result<T>> {
    loop {
        let mut guard = ready!(ready())?;
        if let Ok(done) = guard.try_io(|fd| attempt(fd.get_ref())) {
            return Poll::Ready(done);
        }
    }
}

/// Writes to our stdout or stderr.
#[derive(Debug)]
pub(crate) enum StdioWriter {
    #[expect(private_interfaces, reason = "built here alone")]
    Ready(StdioKind),
    /// A thread writes what it is sent.
    #[expect(private_interfaces, reason = "built here alone")]
    Thread(WriterThread),
}

type Permit = Result<OwnedPermit<Vec<u8>>, SendError<()>>;

/// A thread that writes, one chunk at a time.
struct WriterThread {
    /// Resolves when the thread can take the next chunk.
    permit: Pin<Box<dyn Future<Output = Permit> + Send>>,
    /// Closed when the thread has ended, which it does when all is written and `permit` is dropped.
    done: oneshot::Receiver<()>,
    fd: OwnedFd,
}

impl std::fmt::Debug for WriterThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriterThread").field("fd", &self.fd).finish_non_exhaustive()
    }
}

impl WriterThread {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        let (sender, mut chunks) = mpsc::channel::<Vec<u8>>(1);
        let (ended, done) = oneshot::channel();
        let mut file = File::from(fd.try_clone()?);
        on_thread(move || {
            // Ends at the first error: the reader is gone, and what is sent later is dropped.
            while chunks.blocking_recv().is_some_and(|chunk| file.write_all(&chunk).is_ok()) {}
            drop((chunks, ended));
        })?;
        Ok(Self { permit: Box::pin(sender.reserve_owned()), done, fd })
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Ok(permit) = ready!(self.permit.as_mut().poll(cx)) else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let chunk = &bytes[..bytes.len().min(CHUNK)];
        self.permit = Box::pin(permit.send(chunk.to_vec()).reserve_owned());
        Poll::Ready(Ok(chunk.len()))
    }
}

/// The most that the thread is sent at once.
const CHUNK: usize = 16 << 10;

impl StdioWriter {
    /// Writes to that file.
    pub(crate) fn open(fd: BorrowedFd<'_>) -> io::Result<Self> {
        match StdioKind::of(fd, Interest::WRITABLE) {
            Ok(kind) => Ok(Self::Ready(kind)),
            // It cannot be opened again: its reader is gone, or it is another user's.
            Err(_) => Ok(Self::Thread(WriterThread::new(fd.try_clone_to_owned()?)?)),
        }
    }

    /// Writes some of the bytes.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Ready(StdioKind::Reopened(fd)) => {
                when_ready(|| fd.poll_write_ready(cx), |fd| Ok(rustix::io::write(fd, bytes)?))
            }
            Self::Ready(StdioKind::Socket(fd)) => {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                when_ready(|| fd.poll_write_ready(cx), |fd| Ok(rustix::net::send(fd, bytes, flags)?))
            }
            Self::Ready(StdioKind::AlwaysReady(file)) => Poll::Ready(file.write(bytes)),
            Self::Thread(thread) => thread.poll_write(cx, bytes),
        }
    }

    /// Waits until the thread, if there is one, has written everything. Without a thread `poll_write` has written it.
    pub(crate) async fn finish(self) {
        if let Self::Thread(WriterThread { permit, done, .. }) = self {
            drop(permit);
            // An error is the thread's end, which is what is waited for.
            let _ = done.await;
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Ready(kind) => kind.as_fd(),
            Self::Thread(thread) => thread.fd.as_fd(),
        }
    }

    /// Whether the reading end is closed.
    pub(crate) fn is_deaf(&self) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.fd(), PollFlags::empty())];
        let looked = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        looked.is_ok() && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }
}
