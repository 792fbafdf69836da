//! Pipes are made wide while much goes through them: a pipe of the usual 64 KiB has both sides wait for each other sixteen
//! times a megabyte. Afterwards they are as before, since the kernel limits the pipe memory of each user.

use std::os::fd::BorrowedFd;

use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

/// A pipe is made wide when this many bytes wait for it.
const WIDEN_FROM: usize = 128 << 10;
/// How wide one pipe is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Width {
    #[default]
    Usual,
    /// Made wide; holds the size in bytes that it had before.
    Wide(usize),
    /// It is no pipe, or may not be changed.
    Fixed,
}

impl Width {
    /// The size of a wide pipe in bytes: the kernel's default for `pipe-max-size`, which every user may use.
    pub(crate) const MAX: usize = 1 << 20;

    /// `amount` bytes wait for this pipe; 0 makes it as narrow as before.
    pub(crate) fn adjust(&mut self, pipe: Option<BorrowedFd<'_>>, amount: usize) {
        let Some(pipe) = pipe else { return };
        match *self {
            Self::Usual if amount >= WIDEN_FROM => *self = widened(pipe).map_or(Self::Fixed, Self::Wide),
            Self::Wide(before) if amount == 0 => {
                // Fails while more bytes are in it than would fit: then it stays wide.
                let _ = fcntl_setpipe_size(pipe, before);
                *self = Self::Usual;
            }
            Self::Usual | Self::Wide(_) | Self::Fixed => {}
        }
    }
}

/// Makes it wide, and returns the size that it had; `None` if it is no pipe, or cannot be changed.
fn widened(pipe: BorrowedFd<'_>) -> Option<usize> {
    let before = fcntl_getpipe_size(pipe).ok().filter(|before| *before < Width::MAX)?;
    fcntl_setpipe_size(pipe, Width::MAX).ok().map(|_| before)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_pipe_is_wide_only_while_much_goes_through_it() {
        let (reader, _writer) = rustix::pipe::pipe().expect("a pipe");
        let size = || fcntl_getpipe_size(&reader).expect("a pipe");
        let usual = size();
        let mut width = Width::default();
        for (amount, expected) in [
            (WIDEN_FROM - 1, usual),
            (WIDEN_FROM, Width::MAX),
            (1, Width::MAX),
            (0, usual),
            (WIDEN_FROM, Width::MAX),
        ] {
            width.adjust(Some(reader.as_fd()), amount);
            assert_eq!(size(), expected, "{amount}");
        }
    }

    #[test]
    fn what_is_no_pipe_is_left_alone() {
        let file = std::fs::File::open("/dev/null").expect("/dev/null");
        let mut width = Width::default();
        width.adjust(Some(file.as_fd()), WIDEN_FROM);
        assert_eq!(width, Width::Fixed);
    }
}
