//! Pipes are made wide while much goes through them: a pipe of the usual 64 KiB has both sides wait for each other sixteen
//! times a megabyte. Afterwards they are as before, since the kernel lets a user have only so much of it.

use std::os::fd::BorrowedFd;

use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

/// From how much on a pipe is made wide.
const MUCH: usize = 128 << 10;
/// What every user may have without being asked, as far as it is not used up.
const WIDE: usize = 1 << 20;

/// How wide one pipe is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Width {
    #[default]
    Usual,
    /// Made wide; it was this before.
    Wide(usize),
    /// It is no pipe, or may not be changed.
    Fixed,
}

impl Width {
    /// So much is on its way through it; none when all is through.
    pub(crate) fn adjust(&mut self, pipe: Option<BorrowedFd<'_>>, amount: usize) {
        let Some(pipe) = pipe else { return };
        match *self {
            Self::Usual if amount >= MUCH => *self = widened(pipe).map_or(Self::Fixed, Self::Wide),
            Self::Wide(before) if amount == 0 => {
                // What is still in it may need the room: then it stays wide.
                let _ = fcntl_setpipe_size(pipe, before);
                *self = Self::Usual;
            }
            Self::Usual | Self::Wide(_) | Self::Fixed => {}
        }
    }
}

/// How wide it was before.
fn widened(pipe: BorrowedFd<'_>) -> Option<usize> {
    let before = fcntl_getpipe_size(pipe).ok().filter(|before| *before < WIDE)?;
    fcntl_setpipe_size(pipe, WIDE).ok().map(|_| before)
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
        for (amount, expected) in [(MUCH - 1, usual), (MUCH, WIDE), (1, WIDE), (0, usual), (MUCH, WIDE)] {
            width.adjust(Some(reader.as_fd()), amount);
            assert_eq!(size(), expected, "{amount}");
        }
    }

    #[test]
    fn what_is_no_pipe_is_left_alone() {
        let file = std::fs::File::open("/dev/null").expect("/dev/null");
        let mut width = Width::default();
        width.adjust(Some(file.as_fd()), MUCH);
        assert_eq!(width, Width::Fixed);
    }
}
