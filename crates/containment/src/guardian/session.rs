//! What the owner handed over: the board, some open files, and the strings behind the board.

use core::ffi::CStr;

use crate::bare::call::{self, Errno, Fd};
use crate::bare::fork::take_string;
use crate::bare::map;
use crate::shared::board::{Board, NO_FD, STRINGS_AT, WORDS, Word};

/// The board and the files. All of them stay open as long as the guardian lives, but for the server's three.
#[derive(Clone, Copy)]
pub(crate) struct Session {
    pub(crate) board: Board<'static>,
    board_file: Fd,
    pub(crate) owner_socket: Fd,
    pub(crate) owner_pidfd: Fd,
    /// Holding it open holds the session's lock.
    pub(crate) record: Option<Fd>,
    pub(crate) runtime_folder: Option<Fd>,
    pub(crate) leaf: Option<Fd>,
    pub(crate) leaf_parent: Option<Fd>,
    pub(crate) stdio: [Fd; 3],
}

impl Session {
    /// Maps the board and finds the files; `None` if that is no board.
    pub(crate) fn open(board_fd: u64) -> Option<Self> {
        let board_file = Fd(i32::try_from(board_fd).ok()?);
        let board = Board(map::shared_words(board_file, WORDS).ok()?);
        let file = |word| match board.get(word) {
            NO_FD => None,
            fd => i32::try_from(fd).ok().map(Fd),
        };
        Some(Self {
            board,
            board_file,
            owner_socket: file(Word::OwnerSocket)?,
            owner_pidfd: file(Word::OwnerPidfd)?,
            record: file(Word::RecordFile),
            runtime_folder: file(Word::RuntimeFolder),
            leaf: file(Word::CgroupLeaf),
            leaf_parent: file(Word::CgroupParent),
            stdio: [file(Word::Stdin)?, file(Word::Stdout)?, file(Word::Stderr)?],
        })
    }

    fn files(&self) -> [Option<Fd>; 10] {
        [
            Some(self.board_file),
            Some(self.owner_socket),
            Some(self.owner_pidfd),
            self.record,
            self.runtime_folder,
            self.leaf,
            self.leaf_parent,
            Some(self.stdio[0]),
            Some(self.stdio[1]),
            Some(self.stdio[2]),
        ]
    }

    /// Closes everything that is not ours: what the owner happened to have open must not be kept open by us. And no
    /// process that we start shall have what is ours.
    pub(crate) fn close_all_else(&self) {
        let ours = self.files();
        ours.into_iter().flatten().for_each(call::close_on_exec);
        let mut from = 0_u32;
        // The next of ours at or above `from`, until there is none: a dozen files need no sorting.
        while let Some(next) = ours.iter().flatten().map(|fd| fd.0 as u32).filter(|fd| *fd >= from).min() {
            if next > from {
                call::close_range(from, next - 1);
            }
            from = next + 1;
        }
        call::close_range(from, u32::MAX);
    }

    /// Lets go of the server's stdio, so that its readers and writers see an end when the server ends.
    pub(crate) fn close_stdio(&self) {
        for fd in self.stdio {
            call::close(fd);
        }
    }

    /// The strings. Mapped when they are needed, which is in a child before its exec, and at the end: a resting guardian
    /// holds none of them.
    pub(crate) fn texts(&self) -> Result<Texts, Errno> {
        let count = |word| self.board.get(word) as usize;
        let mut rest = map::read_only(self.board_file, STRINGS_AT, count(Word::StringBytes))?;
        Ok(Texts {
            record_name: take_string(&mut rest)?,
            leaf_name: take_string(&mut rest)?,
            cwd: take_string(&mut rest)?,
            candidates: List::take(&mut rest, count(Word::Candidates))?,
            arguments: List::take(&mut rest, count(Word::Arguments))?,
            environment: List::take(&mut rest, count(Word::Environment))?,
            keep_rules: List::take(&mut rest, count(Word::KeepRules))?,
            on_end: List::take(&mut rest, count(Word::OnEndArguments))?,
            on_end_environment: List::take(&mut rest, count(Word::OnEndEnvironment))?,
        })
    }
}

/// The strings behind the board.
pub(crate) struct Texts {
    pub(crate) record_name: &'static CStr,
    pub(crate) leaf_name: &'static CStr,
    pub(crate) cwd: &'static CStr,
    /// Where the program may be, in the order to try.
    pub(crate) candidates: List,
    pub(crate) arguments: List,
    pub(crate) environment: List,
    pub(crate) keep_rules: List,
    pub(crate) on_end: List,
    pub(crate) on_end_environment: List,
}

/// Some strings, one after the other.
#[derive(Clone, Copy)]
pub(crate) struct List {
    pub(crate) block: &'static [u8],
    pub(crate) count: usize,
}

impl List {
    fn take(rest: &mut &'static [u8], count: usize) -> Result<Self, Errno> {
        let block = *rest;
        for _ in 0..count {
            take_string(rest)?;
        }
        Ok(Self { block, count })
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = &'static CStr> {
        let mut rest = self.block;
        (0..self.count).map_while(move |_| take_string(&mut rest).ok())
    }
}
