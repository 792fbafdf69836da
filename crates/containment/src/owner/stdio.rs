//! The server's three files: where they come from, and our ends of them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys;

/// Where one of the server's three files comes from.
#[derive(Debug, Default)]
pub enum Stdio {
    /// Our own.
    #[default]
    Inherit,
    /// `/dev/null`.
    Null,
    /// A pipe, whose other end the handle has.
    Pipe,
    /// This one. The server gets a copy.
    File(OwnedFd),
}

impl From<OwnedFd> for Stdio {
    fn from(fd: OwnedFd) -> Self {
        Self::File(fd)
    }
}

impl From<File> for Stdio {
    fn from(file: File) -> Self {
        Self::File(file.into())
    }
}

/// The server's end of a file, and ours if there is a pipe between.
pub(crate) struct Ends {
    pub(crate) server: ServerEnd,
    pub(crate) ours: Option<OwnedFd>,
}

pub(crate) enum ServerEnd {
    Own(OwnedFd),
    Inherited(BorrowedFd<'static>),
}

impl AsFd for ServerEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(fd) => fd.as_fd(),
            Self::Inherited(fd) => fd.as_fd(),
        }
    }
}

/// Which way the data goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer,
    FromServer,
}

impl Stdio {
    pub(crate) fn open(
        &self,
        direction: Direction,
        inherited: Option<BorrowedFd<'static>>,
    ) -> io::Result<Ends> {
        let alone = |fd| Ends { server: ServerEnd::Own(fd), ours: None };
        match self {
            Self::Inherit => match inherited {
                Some(fd) => Ok(Ends { server: ServerEnd::Inherited(fd), ours: None }),
                None => Ok(alone(sys::open_null()?)),
            },
            Self::Null => Ok(alone(sys::open_null()?)),
            Self::File(fd) => Ok(alone(fd.try_clone()?)),
            Self::Pipe => {
                let (read, write) = sys::pipe()?;
                let (server, ours) =
                    if direction == Direction::ToServer { (read, write) } else { (write, read) };
                Ok(Ends { server: ServerEnd::Own(server), ours: Some(ours) })
            }
        }
    }
}

macro_rules! pipe_end {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(File);

        impl From<OwnedFd> for $name {
            fn from(fd: OwnedFd) -> Self {
                Self(fd.into())
            }
        }

        impl From<$name> for OwnedFd {
            fn from(end: $name) -> Self {
                end.0.into()
            }
        }

        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.as_fd()
            }
        }
    };
}

pipe_end!(
    /// Writes to the server. Dropping it is the end of the server's input.
    Stdin
);
pipe_end!(
    /// Reads what the server writes to its standard output.
    Stdout
);
pipe_end!(
    /// Reads what the server writes to its standard error.
    Stderr
);

impl Write for Stdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Read for Stdout {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Read for Stderr {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}
