//! The memory that owner and guardians share: the board and, behind it, the strings.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::shared::board::{Board, STRINGS_AT, WORDS};

/// A mapped board, and the file to hand to the guardians.
#[derive(Debug)]
pub(crate) struct SharedBoard {
    file: Option<OwnedFd>,
    words: *const AtomicU64,
}

// SAFETY: the words are only ever accessed atomically, so any thread may use and unmap them.
unsafe impl Send for SharedBoard {}
// SAFETY: as above.
unsafe impl Sync for SharedBoard {}

impl SharedBoard {
    /// A zeroed board with these strings behind it. Its size is fixed from here on, so that no fault can come of it.
    pub(crate) fn create(strings: &[u8]) -> io::Result<Self> {
        let memfd =
            rustix::fs::memfd_create(c"moored-board", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let mut file = File::from(memfd);
        file.set_len(STRINGS_AT as u64)?;
        file.seek(io::SeekFrom::Start(STRINGS_AT as u64))?;
        file.write_all(strings)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
        let words = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), STRINGS_AT, protection, MapFlags::SHARED, &file, 0)
        }?;
        Ok(Self { file: Some(file.into()), words: words.cast() })
    }

    pub(crate) fn board(&self) -> Board<'_> {
        // SAFETY: the mapping is that long, page-aligned and lives as long as `self`; all access is atomic.
        Board(unsafe { std::slice::from_raw_parts(self.words, WORDS) })
    }

    pub(crate) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }

    /// Once the guardians have it, the owner needs the words only.
    pub(crate) fn close_file(&mut self) {
        self.file = None;
    }
}

impl Drop for SharedBoard {
    fn drop(&mut self) {
        // SAFETY: this is our own mapping, and `board()` borrows `self`, so nobody uses it any more.
        let _ = unsafe { rustix::mm::munmap(self.words.cast_mut().cast(), STRINGS_AT) };
    }
}
