//! Finding what is below us, and signalling it by identity.
//!
//! A direct child that we have not reaped is signalled by its number: nobody else can have it. Everything deeper down is
//! held by a pidfd first and looked at again before the signal is sent.

use crate::bare::call::{self, Errno, Fd, PollFd};
use crate::bare::map;
use crate::board::{Board, Word, proof, survived};
use crate::proc;
use crate::session::{List, Session};
use crate::{keep, leaf};

/// Most processes that one walk lists. Those beyond it are asked to end later, when they have fallen to us.
const MOST: usize = 65_536;

/// Everything below us at one moment, parents before their children.
pub(crate) struct Tree {
    /// Two words a process: its number, with KEPT or DIRECT added; and its start ticks.
    words: &'static mut [u64],
    len: usize,
}

const KEPT: u64 = 1 << 40;
const DIRECT: u64 = 1 << 41;

#[derive(Clone, Copy)]
pub(crate) struct Node {
    pub(crate) pid: i32,
    pub(crate) ticks: u64,
    pub(crate) kept: bool,
    direct: bool,
}

impl Tree {
    /// Room for a walk. The pages are fresh and cost nothing until they are used.
    pub(crate) fn new() -> Option<Self> {
        map::scratch::<u64>(2 * MOST).ok().map(|words| Self { words, len: 0 })
    }

    fn push(&mut self, node: Node) {
        if self.len < MOST {
            let bits = if node.kept { KEPT } else { 0 } | if node.direct { DIRECT } else { 0 };
            self.words[2 * self.len] = node.pid as u64 | bits;
            self.words[2 * self.len + 1] = node.ticks;
            self.len += 1;
        }
    }

    fn get(&self, i: usize) -> Node {
        let word = self.words[2 * i];
        Node {
            pid: word as u32 as i32,
            ticks: self.words[2 * i + 1],
            kept: word & KEPT != 0,
            direct: word & DIRECT != 0,
        }
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = Node> {
        (0..self.len).map(|i| self.get(i))
    }

    /// Walks down from our own children. What runs a kept program is kept, and all below it.
    pub(crate) fn walk(&mut self, rules: List, board: Board<'_>) {
        self.len = 0;
        every_child(board, |pid| self.visit(pid, false, true, rules, board));
        let mut i = 0;
        while i < self.len {
            let parent = self.get(i);
            children(parent.pid, |pid| self.visit(pid, parent.kept, false, rules, board));
            i += 1;
        }
    }

    fn visit(&mut self, pid: i32, under_kept: bool, direct: bool, rules: List, board: Board<'_>) {
        let Some(stat) = proc::stat(pid) else {
            // Our own child is there, whether we can read about it or not, and needs only its number.
            if direct {
                self.push(Node { pid, ticks: 0, kept: keep::matches(rules, pid), direct });
            }
            return;
        };
        if stat.is_zombie() {
            return;
        }
        let kept = under_kept || board.is_kept(pid, stat.ticks) || keep::matches(rules, pid);
        self.push(Node { pid, ticks: stat.ticks, kept, direct });
    }

    /// Writes down whom to spare.
    pub(crate) fn note_kept(&self, board: Board<'_>) {
        for node in self.nodes().filter(|n| n.kept) {
            board.add_kept(node.pid, node.ticks);
        }
    }
}

/// Calls `each` with our own children; whether they could be listed. We have one thread, so there is one list.
fn own_children(mut each: impl FnMut(i32)) -> bool {
    proc::numbers_of(c"/proc/thread-self/children", &mut each) || children(call::getpid(), each)
}

/// Calls `each` with our own children in any case: where no list can be read, for want of files or of `/proc`, by asking of
/// every number whether it is a child's. That takes as long as a million small calls, and nobody can take it from us.
fn every_child(board: Board<'_>, mut each: impl FnMut(i32)) {
    if !own_children(&mut each) {
        let highest = i32::try_from(board.get(Word::HighestPid)).unwrap_or(i32::MAX);
        (2..=highest).filter(|pid| call::is_child(*pid)).for_each(each);
    }
}

/// Calls `each` with the children of a process, those of all its threads; whether they could be listed.
fn children(parent: i32, mut each: impl FnMut(i32)) -> bool {
    let mut listed = false;
    proc::numbers_in(proc::path(parent, b"task").as_path(), |thread| {
        let list = proc::path(parent, b"task/").number(thread as u64).text(b"/children");
        listed |= proc::numbers_of(list.as_path(), &mut each);
    });
    if listed {
        return true;
    }
    // A kernel without these lists: ask every process for its parent. We are among them, or /proc is not readable.
    let mut seen_ourselves = false;
    proc::numbers_in(c"/proc", |pid| {
        seen_ourselves |= pid == call::getpid();
        if proc::stat(pid).is_some_and(|stat| stat.ppid == parent) {
            each(pid);
        }
    });
    seen_ourselves
}

/// One signal to one process below us, only if it is still the one that was seen.
pub(crate) fn signal(node: Node, signal: i32) -> Result<(), Errno> {
    if node.direct {
        return call::kill(node.pid, signal);
    }
    let pidfd = call::pidfd_open(node.pid)?;
    let same = proc::stat(node.pid).is_some_and(|now| now.ticks == node.ticks);
    let sent = if same { call::pidfd_send(pidfd, signal) } else { Err(Errno::SRCH) };
    call::close(pidfd);
    sent
}

/// Asks the whole tree to end, but for what is kept. SIGCONT follows, or a stopped process would never hear of it.
pub(crate) fn terminate(tree: &mut Tree, rules: List, board: Board<'_>) {
    tree.walk(rules, board);
    tree.note_kept(board);
    for node in tree.nodes().filter(|n| !n.kept) {
        if signal(node, call::SIGTERM).is_ok() {
            let _ = signal(node, call::SIGCONT);
        }
    }
}

/// How a round of killing went.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    /// Somebody was signalled, or nobody is there.
    Worked,
    /// Somebody is there, and the kernel lets us signal none of them.
    AllRefused,
}

/// Kills our own children, but for what is kept; theirs fall to us then, and the next round is for them.
pub(crate) fn kill_children(rules: List, board: Board<'_>) -> Round {
    let (mut signalled, mut refused) = (false, false);
    every_child(board, |pid| {
        if !is_spared(pid, rules, board) {
            match call::kill(pid, call::SIGKILL) {
                Err(Errno::PERM) => refused = true,
                _ => signalled = true,
            }
        }
    });
    if refused && !signalled { Round::AllRefused } else { Round::Worked }
}

/// Kills everything below us that is not kept, however deep.
pub(crate) fn kill_all(tree: &mut Tree, rules: List, board: Board<'_>) {
    tree.walk(rules, board);
    tree.note_kept(board);
    for node in tree.nodes().filter(|n| !n.kept) {
        let _ = signal(node, call::SIGKILL);
    }
}

/// Cheap for those who are not: there may be thousands of them, and each look that takes long is one in which they fork.
fn is_spared(pid: i32, rules: List, board: Board<'_>) -> bool {
    let ticks = || proc::stat(pid).map(|stat| stat.ticks);
    if board.may_be_kept(pid) && ticks().is_some_and(|ticks| board.is_kept(pid, ticks)) {
        return true;
    }
    // The dead run nothing, and are told by that.
    let kept = keep::matches(rules, pid);
    if kept && let Some(ticks) = ticks() {
        board.add_kept(pid, ticks);
    }
    kept
}

/// Bits of [`proof`], if every child that we have is a kept one or dead; none if there is another, or it cannot be told.
/// As the reaper of all that lose their parent, we then have no other descendant that is not below a kept one. The dead
/// whom we cannot collect are held back by a debugger; their children are ours already.
pub(crate) fn proof_by_children(rules: List, board: Board<'_>) -> u64 {
    let (mut others, mut proof) = (false, 0);
    let could_look = own_children(|pid| {
        // The first other one tells all.
        if others {
        } else if is_spared(pid, rules, board) {
            proof |= proof::ONLY_KEPT;
        } else if is_dead(pid) {
            proof |= proof::ONLY_DEAD;
        } else {
            others = true;
        }
    });
    if could_look && !others { proof } else { 0 }
}

/// Whether a child of ours has ended, with all its threads, though we may not be able to collect it.
pub(crate) fn is_dead(pid: i32) -> bool {
    call::pidfd_open(pid).is_ok_and(|pidfd| {
        let mut fds = [PollFd::readable(Some(pidfd))];
        call::poll(&mut fds, Some(0));
        call::close(pidfd);
        fds[0].is_ready()
    })
}

/// Writes down who is kept, and takes them out of the leaf if there is one: before the leaf is killed, or removed. It is
/// frozen meanwhile, so that nothing kept can fork a child into it behind our back. Whether none of them is in it now.
pub(crate) fn set_kept_aside(session: &Session, tree: &mut Tree, rules: List, leaf: Option<Fd>) -> bool {
    let mut all_out = true;
    if let Some(leaf) = leaf {
        leaf::freeze(leaf);
    }
    tree.walk(rules, session.board);
    tree.note_kept(session.board);
    if let Some(leaf) = leaf {
        for node in tree.nodes().filter(|n| n.kept && leaf::has(leaf, n.pid)) {
            leaf::move_out(session, node.pid);
            all_out &= !leaf::has(leaf, node.pid);
        }
        leaf::thaw(leaf);
    }
    all_out
}

/// Writes down who is still there, and why.
pub(crate) fn note_survivors(tree: &mut Tree, rules: List, board: Board<'_>) {
    tree.walk(rules, board);
    for node in tree.nodes().filter(|n| !n.kept) {
        let state = proc::stat(node.pid).map_or(b'X', |stat| stat.state);
        let reason = match signal(node, 0) {
            Err(Errno::PERM) => survived::NOT_PERMITTED,
            Err(_) => continue,
            Ok(()) if state == b'D' => survived::UNINTERRUPTIBLE,
            Ok(()) => survived::UNKNOWN,
        };
        board.add_survivor(node.pid, node.ticks, reason);
    }
}

/// The group that the server leads, for a containment without subreapers. Only while the server is our unreaped child,
/// for only then the group's number cannot belong to anybody else.
pub(crate) fn signal_group(server: i32, signal: i32) {
    // 0 and 1 mean something else altogether to `kill`.
    if server > 1 {
        let _ = call::kill(-server, signal);
    }
}

/// Whether nobody alive is in the server's group.
pub(crate) fn group_is_empty(server: i32) -> bool {
    let mut alive = false;
    proc::numbers_in(c"/proc", |pid| {
        alive |= proc::stat(pid).is_some_and(|stat| stat.pgrp == server && !stat.is_zombie());
    });
    !alive
}
