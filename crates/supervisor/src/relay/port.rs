//! Our own stdin, stdout and stderr, of whatever kind they are: pipes as Python gives, sockets as Node gives, files,
//! terminals.
//!
//! They are shared: a shell, a wrapper or the client itself may hold the same open file, and would be surprised to find it
//! non-blocking. So that flag is never set on it. A pipe or a terminal is opened a second time, through `/proc/self/fd`,
//! and that open file is ours alone; a socket is asked not to block at each call; a file never blocks for long; and for
//! whatever cannot be had that way (somebody else's terminal) a thread blocks in our stead.

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

/// How one of our files is read or written.
#[derive(Debug)]
enum Way {
    /// A second opening, non-blocking.
    Own(AsyncFd<OwnedFd>),
    /// A socket.
    Socket(AsyncFd<OwnedFd>),
    /// A file, or what else is always ready.
    Plain(File),
}

impl Way {
    fn of(fd: BorrowedFd<'_>, interest: Interest) -> io::Result<Self> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
        Ok(match kind {
            FileType::Socket => Self::Socket(watch(fd.try_clone_to_owned()?, interest)?),
            FileType::RegularFile | FileType::Directory => Self::Plain(fd.try_clone_to_owned()?.into()),
            _ => match watch(open_again(fd, interest)?, interest) {
                Ok(own) => Self::Own(own),
                // The kernel does not wait for this kind: /dev/null, say.
                Err(_) => Self::Plain(fd.try_clone_to_owned()?.into()),
            },
        })
    }
}

impl AsFd for Way {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(fd) | Self::Socket(fd) => fd.get_ref().as_fd(),
            Self::Plain(file) => file.as_fd(),
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

/// Something we read from.
#[derive(Debug)]
pub(crate) enum Inlet {
    #[expect(private_interfaces, reason = "built here alone")]
    Ready(Way),
    /// A thread reads and hands over.
    #[expect(private_interfaces, reason = "built here alone")]
    Thread(ReadingThread),
}

/// A thread that reads, until this value is dropped: then it closes the file, so that a writer sees that nobody reads.
#[derive(Debug)]
struct ReadingThread {
    parts: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// What was handed over and not read yet.
    held: Vec<u8>,
    /// The thread sees the other end hang up.
    _alive: OwnedFd,
}

impl Inlet {
    /// Reads from that file.
    pub(crate) fn open(fd: BorrowedFd<'_>) -> io::Result<Self> {
        match Way::of(fd, Interest::READABLE) {
            Ok(way) => Ok(Self::Ready(way)),
            Err(_) => Self::thread(fd.try_clone_to_owned()?),
        }
    }

    fn thread(fd: OwnedFd) -> io::Result<Self> {
        let (give, parts) = mpsc::channel(1);
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
                if give.blocking_send(read).is_err() || last {
                    return;
                }
            }
        })?;
        Ok(Self::Thread(ReadingThread { parts, held: Vec::new(), _alive: alive }))
    }

    /// The file, unless a thread has it.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Ready(way) => Some(way.as_fd()),
            Self::Thread(..) => None,
        }
    }

    /// Reads some bytes; none is the end.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Ready(Way::Own(fd)) => {
                when_ready(|| fd.poll_read_ready(cx), |fd| Ok(rustix::io::read(fd, &mut *into)?))
            }
            Self::Ready(Way::Socket(fd)) => {
                let read = |fd: &OwnedFd| Ok(rustix::net::recv(fd, &mut *into, RecvFlags::DONTWAIT)?.0);
                when_ready(|| fd.poll_read_ready(cx), read)
            }
            Self::Ready(Way::Plain(file)) => Poll::Ready(file.read(into)),
            Self::Thread(ReadingThread { parts, held, .. }) => {
                if held.is_empty() {
                    *held = ready!(parts.poll_recv(cx)).unwrap_or(Ok(Vec::new()))?;
                }
                let n = held.len().min(into.len());
                into[..n].copy_from_slice(&held[..n]);
                held.drain(..n);
                Poll::Ready(Ok(n))
            }
        }
    }
}

/// Waits until there is something to read; whether there still is somebody to read it for.
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

/// Something we write to.
#[derive(Debug)]
pub(crate) enum Outlet {
    #[expect(private_interfaces, reason = "built here alone")]
    Ready(Way),
    /// A thread writes what it is given.
    #[expect(private_interfaces, reason = "built here alone")]
    Thread(Scribe),
}

type Room = Result<OwnedPermit<Vec<u8>>, SendError<()>>;

/// A thread that writes, one part at a time.
struct Scribe {
    /// Room for the next part.
    room: Pin<Box<dyn Future<Output = Room> + Send>>,
    /// Closed when the thread has ended, which it does when all is written and nothing more can come.
    done: oneshot::Receiver<()>,
    fd: OwnedFd,
}

impl std::fmt::Debug for Scribe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scribe").field("fd", &self.fd).finish_non_exhaustive()
    }
}

impl Scribe {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        let (give, mut take) = mpsc::channel::<Vec<u8>>(1);
        let (tell, done) = oneshot::channel();
        let mut file = File::from(fd.try_clone()?);
        on_thread(move || {
            // Nobody reads any more: what is still to come has nowhere to go.
            while take.blocking_recv().is_some_and(|part| file.write_all(&part).is_ok()) {}
            drop((take, tell));
        })?;
        Ok(Self { room: Box::pin(give.reserve_owned()), done, fd })
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Ok(permit) = ready!(self.room.as_mut().poll(cx)) else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let part = &bytes[..bytes.len().min(PART)];
        self.room = Box::pin(permit.send(part.to_vec()).reserve_owned());
        Poll::Ready(Ok(part.len()))
    }
}

/// What a thread is given at once.
const PART: usize = 16 << 10;

impl Outlet {
    /// Writes to that file.
    pub(crate) fn open(fd: BorrowedFd<'_>) -> io::Result<Self> {
        match Way::of(fd, Interest::WRITABLE) {
            Ok(way) => Ok(Self::Ready(way)),
            // It cannot be opened again: nobody reads any more, or it is somebody else's.
            Err(_) => Ok(Self::Thread(Scribe::new(fd.try_clone_to_owned()?)?)),
        }
    }

    /// Writes some of the bytes.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Ready(Way::Own(fd)) => {
                when_ready(|| fd.poll_write_ready(cx), |fd| Ok(rustix::io::write(fd, bytes)?))
            }
            Self::Ready(Way::Socket(fd)) => {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                when_ready(|| fd.poll_write_ready(cx), |fd| Ok(rustix::net::send(fd, bytes, flags)?))
            }
            Self::Ready(Way::Plain(file)) => Poll::Ready(file.write(bytes)),
            Self::Thread(scribe) => scribe.poll_write(cx, bytes),
        }
    }

    /// Until all that was taken is written; what is not by a thread is written when it is taken.
    pub(crate) async fn finish(self) {
        if let Self::Thread(Scribe { room, done, .. }) = self {
            drop(room);
            // An error is the thread's end, which is what is waited for.
            let _ = done.await;
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Ready(way) => way.as_fd(),
            Self::Thread(scribe) => scribe.fd.as_fd(),
        }
    }

    /// Whether nobody can read any more what we write.
    pub(crate) fn is_deaf(&self) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.fd(), PollFlags::empty())];
        let looked = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        looked.is_ok() && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }
}
