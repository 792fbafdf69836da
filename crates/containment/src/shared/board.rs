//! The board: what the owner and its guardians tell each other, in shared memory.
//!
//! One memfd per session. Its first part is an array of words that all three map and each reads and writes atomically:
//! what is to be done, how far the ladder has come, what has ended and how. So the outer guardian goes on where a killed
//! inner one stopped, and the owner can read a report that both guardians did not live to send. Behind the words lie the
//! strings: what to execute. The server never has the file.
//!
//! This file is compiled twice, into the library and into the guardian; it owns the layout and nothing else.

use core::sync::atomic::{AtomicU64, Ordering};

/// Words on the board; the strings begin behind them, on a page of their own.
pub(crate) const WORDS: usize = 16 * 1024;
/// Where the strings begin.
pub(crate) const STRINGS_AT: usize = WORDS * 8;
/// Most kept processes that are listed; where there are more, the board says so.
pub(crate) const MOST_KEPT: usize = 4096;
/// Most survivors that are listed.
pub(crate) const MOST_SURVIVORS: usize = 1024;

/// What a word means. Written by the owner before the guardians exist, unless it says otherwise.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(crate) enum Word {
    /// Bits of [`flag`].
    Flags,
    /// The session's mark in RLIMIT_LOCKS, 0 for none.
    Cookie,
    /// The ladder for an end that the owner did not ask for with another one.
    Grace,
    KillAfter,
    Verify,
    /// Nanoseconds that `on_end` may take.
    OnEndPatience,
    /// No process has a number above this.
    HighestPid,
    // Files, by number in the guardian; NO_FD where there is none.
    OwnerSocket,
    OwnerPidfd,
    RecordFile,
    RuntimeFolder,
    CgroupLeaf,
    CgroupParent,
    Stdin,
    Stdout,
    Stderr,
    // The strings, in this order: record name, leaf name, cwd, then these many each.
    StringBytes,
    Candidates,
    Arguments,
    Environment,
    KeepRules,
    OnEndArguments,
    OnEndEnvironment,

    // Written by the guardians.
    /// How far starting has come: a [`stage`], and the error that stopped it there, if any.
    Stage,
    StageError,
    /// Bits of [`layer`] that hold the tree.
    Layers,
    /// As the guardians see it, which is not the owner's number in a PID namespace.
    ServerPid,
    ServerTicks,
    /// 0 while it lives, else the raw wait status with [`HAS_STATUS`] added.
    ServerStatus,
    OuterPid,
    InnerPid,
    /// The ladder: code, deadline, and the patience that is left to come.
    LadderState,
    LadderUntil,
    LadderGrace,
    LadderKillAfter,
    /// Why it ends: a number of [`reason`], the first one given.
    Reason,
    /// When each step began, by the monotonic clock; 0 for never.
    EndedSince,
    CloseAt,
    TerminateAt,
    KillAt,
    VerifyAt,
    TreeDoneAt,
    OnEndAt,
    DoneAt,
    /// How many were reaped in each step.
    ByEof,
    ByTerm,
    ByKill,
    /// Bits of [`proof`]: how emptiness was proven.
    Proof,
    /// As [`Word::ServerStatus`], for `on_end`.
    OnEndStatus,
    /// The inner guardian has finished the tree.
    TreeDone,
    KeptCount,
    SurvivorCount,
    /// 1 if there were more kept ones or survivors than could be listed.
    ListsCut,
    /// Where the lists begin.
    Lists,
}

/// No such file.
pub(crate) const NO_FD: u64 = u64::MAX;
/// Tells a status of zero from none.
pub(crate) const HAS_STATUS: u64 = 1 << 32;

/// What the owner asks for.
pub(crate) mod flag {
    pub(crate) const SUBREAPER: u64 = 1;
    pub(crate) const SEALED: u64 = 2;
    pub(crate) const STRICT: u64 = 4;
    pub(crate) const HAS_CWD: u64 = 8;
    /// Without the leaf nothing may be started.
    pub(crate) const LEAF_REQUIRED: u64 = 16;
}

/// What holds.
pub(crate) mod layer {
    pub(crate) const GUARDIAN: u64 = 1;
    pub(crate) const CGROUP: u64 = 2;
    pub(crate) const LANDLOCK: u64 = 4;
    pub(crate) const PIDNS: u64 = 8;
    pub(crate) const COOKIE: u64 = 16;
}

/// How emptiness was proven.
pub(crate) mod proof {
    /// A subreaper had no child left.
    pub(crate) const NO_CHILDREN: u64 = 1;
    /// The cgroup leaf said `populated 0`.
    pub(crate) const UNPOPULATED: u64 = 2;
    /// The first process of the namespace was reaped.
    pub(crate) const NAMESPACE: u64 = 4;
    /// All children that are left are kept ones.
    pub(crate) const ONLY_KEPT: u64 = 8;
    /// All children that are left, but for kept ones, are dead and held back by a debugger.
    pub(crate) const ONLY_DEAD: u64 = 16;
}

/// Steps of starting, in order; where one fails, nothing after it was tried.
pub(crate) mod stage {
    pub(crate) const OUTER: u64 = 0;
    pub(crate) const FORK_INNER: u64 = 1;
    pub(crate) const NAMESPACE: u64 = 2;
    pub(crate) const SEAL: u64 = 3;
    pub(crate) const ENTER_LEAF: u64 = 4;
    pub(crate) const FORK_SERVER: u64 = 5;
    pub(crate) const PREPARE: u64 = 6;
    pub(crate) const CWD: u64 = 7;
    pub(crate) const EXEC: u64 = 8;
    pub(crate) const RUNNING: u64 = 9;
}

/// Why a session ends; the first reason stays.
pub(crate) mod reason {
    pub(crate) const SERVER_EXITED: u64 = 1;
    pub(crate) const REQUESTED: u64 = 2;
    pub(crate) const DROPPED: u64 = 3;
    pub(crate) const OWNER_DIED: u64 = 4;
    pub(crate) const OWNER_LET_GO: u64 = 5;
    pub(crate) const GUARDIAN_DIED: u64 = 6;
}

/// Packets on the socket between owner and guardians: a tag and its values.
pub(crate) mod packet {
    /// To the owner, with the server's pidfd.
    pub(crate) const STARTED: u64 = 1;
    /// To the owner: see [`super::Word::Stage`].
    pub(crate) const FAILED: u64 = 2;
    /// To the owner: see [`super::Word::ServerStatus`].
    pub(crate) const SERVER_EXITED: u64 = 3;
    /// To the owner: the board holds the whole report.
    pub(crate) const ENDED: u64 = 4;
    /// To the guardians: reason, rung, grace, kill_after, verify.
    pub(crate) const END: u64 = 5;
    /// The longest packet, in words.
    pub(crate) const LONGEST: usize = 6;
}

/// Why a process is still there; pairs with [`Board::add_survivor`].
pub(crate) mod survived {
    pub(crate) const NOT_PERMITTED: u64 = 1;
    pub(crate) const UNINTERRUPTIBLE: u64 = 2;
    pub(crate) const UNKNOWN: u64 = 3;
}

/// The words, wherever they are mapped.
#[derive(Clone, Copy)]
pub(crate) struct Board<'a>(pub(crate) &'a [AtomicU64]);

impl Board<'_> {
    pub(crate) fn get(self, word: Word) -> u64 {
        self.0.get(word as usize).map_or(0, |w| w.load(Ordering::SeqCst))
    }

    pub(crate) fn set(self, word: Word, value: u64) {
        if let Some(w) = self.0.get(word as usize) {
            w.store(value, Ordering::SeqCst);
        }
    }

    /// Writes only where nothing was written before: the first reason, the first beginning.
    pub(crate) fn set_once(self, word: Word, value: u64) {
        if let Some(w) = self.0.get(word as usize) {
            // A second writer loses on purpose.
            let _ = w.compare_exchange(0, value, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    pub(crate) fn add(self, word: Word, more: u64) {
        if let Some(w) = self.0.get(word as usize) {
            w.fetch_add(more, Ordering::SeqCst);
        }
    }

    pub(crate) fn has(self, word: Word, bit: u64) -> bool {
        self.get(word) & bit != 0
    }

    pub(crate) fn add_bits(self, word: Word, bits: u64) {
        if let Some(w) = self.0.get(word as usize) {
            w.fetch_or(bits, Ordering::SeqCst);
        }
    }

    // === lists ===

    fn entry<const N: usize>(self, first: usize, i: usize) -> [u64; N] {
        core::array::from_fn(|k| self.0.get(first + i * N + k).map_or(0, |w| w.load(Ordering::SeqCst)))
    }

    fn put<const N: usize>(self, first: usize, i: usize, values: [u64; N]) {
        for (k, value) in values.into_iter().enumerate() {
            if let Some(w) = self.0.get(first + i * N + k) {
                w.store(value, Ordering::SeqCst);
            }
        }
    }

    const KEPT_AT: usize = Word::Lists as usize;
    const SURVIVORS_AT: usize = Self::KEPT_AT + 3 * MOST_KEPT;

    /// The `i`th kept process: pid, start ticks, and the kernel's serial number of it (0 if it has none).
    pub(crate) fn kept(self, i: usize) -> [u64; 3] {
        self.entry(Self::KEPT_AT, i)
    }

    pub(crate) fn kept_count(self) -> usize {
        (self.get(Word::KeptCount) as usize).min(MOST_KEPT)
    }

    /// Whether a kept process has, or had, that number.
    pub(crate) fn may_be_kept(self, pid: i32) -> bool {
        (0..self.kept_count()).any(|i| self.kept(i)[0] == pid as u64)
    }

    /// A serial number of 0 is one that could not be had, and may be any.
    pub(crate) fn is_kept(self, pid: i32, ticks: u64, serial: u64) -> bool {
        let same_serial = |other| other == serial || other == 0 || serial == 0;
        (0..self.kept_count())
            .map(|i| self.kept(i))
            .any(|[kept, started, known]| [kept, started] == [pid as u64, ticks] && same_serial(known))
    }

    pub(crate) fn add_kept(self, pid: i32, ticks: u64, serial: u64) {
        let n = self.kept_count();
        if self.is_kept(pid, ticks, serial) {
        } else if n < MOST_KEPT {
            self.put(Self::KEPT_AT, n, [pid as u64, ticks, serial]);
            self.set(Word::KeptCount, n as u64 + 1);
        } else {
            self.set(Word::ListsCut, 1);
        }
    }

    pub(crate) fn survivor_count(self) -> usize {
        (self.get(Word::SurvivorCount) as usize).min(MOST_SURVIVORS)
    }

    /// The `i`th survivor: pid, start ticks, reason.
    pub(crate) fn survivor(self, i: usize) -> [u64; 3] {
        self.entry(Self::SURVIVORS_AT, i)
    }

    pub(crate) fn add_survivor(self, pid: i32, ticks: u64, reason: u64) {
        let n = self.survivor_count();
        let known = (0..n).any(|i| self.survivor(i)[..2] == [pid as u64, ticks]);
        if known {
        } else if n < MOST_SURVIVORS {
            self.put(Self::SURVIVORS_AT, n, [pid as u64, ticks, reason]);
            self.set(Word::SurvivorCount, n as u64 + 1);
        } else {
            self.set(Word::ListsCut, 1);
        }
    }
}

const _: () = assert!(
    Word::Lists as usize + 3 * MOST_KEPT + 3 * MOST_SURVIVORS <= WORDS,
    "the lists must fit on the board"
);

#[cfg(test)]
mod tests;
