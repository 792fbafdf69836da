//! Finding what is below us, and signalling it.
//!
//! One pass, from the top: the children of a process are listed, it is signalled, and then each of them is dealt with while
//! it is held. A number from a list is only a hint where to look; no signal depends on it. No more is held than the path
//! from us to where the pass is. Whom a signal may reach is proven by `held`.

use crate::bare::call::{self, Errno, Fd, PollFd};
use crate::bare::map;
use crate::shared::board::{Board, Word, proof, survived};
use crate::held::{Held, Identity, Path};
use crate::proc;
use crate::session::{List, Session};
use crate::{keep, leaf};

/// Most numbers that a walk has in its lists at a time. Those beyond it are dealt with later, when they have fallen to us.
const MOST: usize = 65_536;
/// A walk goes no deeper, and holds no more files. Processes below that fall to us when those above are gone.
const DEEPEST: usize = 64;

/// Room for walks: the numbers of the children of each process on the path. The pages are fresh and cost nothing until
/// they are used.
pub(crate) struct Tree {
    numbers: &'static mut [u64],
    len: usize,
}

impl Tree {
    pub(crate) fn new() -> Option<Self> {
        map::scratch::<u64>(MOST).ok().map(|numbers| Self { numbers, len: 0 })
    }

    fn push(&mut self, pid: i32) {
        if let Some(place) = self.numbers.get_mut(self.len) {
            *place = pid as u64;
            self.len += 1;
        }
    }

    fn get(&self, i: usize) -> i32 {
        self.numbers.get(i).map_or(0, |pid| *pid as i32)
    }
}

/// One pass over everything below us.
struct Walk<'a, K, O> {
    tree: &'a mut Tree,
    rules: List,
    board: Board<'a>,
    on_kept: K,
    on_other: O,
}

/// Walks down from our own children, and tells of each process before those below it. What runs a kept program is kept,
/// and all below it; they are written on the board.
fn walk(
    tree: &mut Tree,
    rules: List,
    board: Board<'_>,
    on_kept: impl FnMut(&Held),
    on_other: impl FnMut(&Held),
) {
    tree.len = 0;
    every_child(board, |pid| tree.push(pid));
    let all = tree.len;
    let mut walk = Walk { tree, rules, board, on_kept, on_other };
    for i in 0..all {
        if let Some(child) = Held::own_child(walk.tree.get(i)) {
            walk.visit(&Path { held: &child, above: None }, 1, false);
        }
    }
}

impl<K: FnMut(&Held), O: FnMut(&Held)> Walk<'_, K, O> {
    fn visit(&mut self, path: &Path<'_>, depth: usize, under_kept: bool) {
        let held = path.held;
        let kept = under_kept || self.is_kept(held);
        let from = self.tree.len;
        // Listed before it is signalled: the dead have no children.
        if depth < DEEPEST {
            children(held.pid, |pid| self.tree.push(pid));
        }
        if kept {
            note_kept(held, self.board);
            (self.on_kept)(held);
        } else {
            (self.on_other)(held);
        }
        for i in from..self.tree.len {
            let pid = self.tree.get(i);
            if let Some(child) = if kept { path.child_of_last(pid) } else { path.child(pid) } {
                self.visit(&Path { held: &child, above: Some(path) }, depth + 1, kept);
                child.release();
            }
        }
        self.tree.len = from;
    }

    fn is_kept(&self, held: &Held) -> bool {
        if self.rules.count == 0 {
            return false;
        }
        is_on_list(held, self.board) || keep::matches(self.rules, held.pid) && held.is_alive()
    }
}

fn note_kept(held: &Held, board: Board<'_>) {
    if let Some(who) = held.identity() {
        board.add_kept(who.pid, who.ticks, who.serial);
    }
}

fn is_on_list(held: &Held, board: Board<'_>) -> bool {
    let is_kept = |who: Identity| board.is_kept(who.pid, who.ticks, who.serial);
    board.may_be_kept(held.pid) && held.identity().is_some_and(is_kept)
}

// === who is below whom ===

/// Calls `each` with our own children; whether they could be listed. We have one thread, so there is one list.
fn own_children(mut each: impl FnMut(i32)) -> bool {
    proc::numbers_of(c"/proc/thread-self/children", &mut each) || children(call::getpid(), each)
}

/// Calls `each` with our own children in any case: where no list can be read, for want of files or of `/proc`, by asking of
/// every number whether it is a child's. That takes as long as a million small calls, and a server cannot take it from us.
fn every_child(board: Board<'_>, mut each: impl FnMut(i32)) {
    if !own_children(&mut each) {
        let highest = i32::try_from(board.get(Word::HighestPid)).unwrap_or(i32::MAX);
        (2..=highest).filter(|pid| call::is_child(*pid)).for_each(each);
    }
}

/// Calls `each` with numbers that may be those of a process's children, of all its threads; whether there was a list.
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

// === ending ===

/// Asks the whole tree to end, but for what is kept. SIGCONT follows, or a stopped process would never hear of it.
pub(crate) fn terminate(tree: &mut Tree, rules: List, board: Board<'_>) {
    walk(
        tree,
        rules,
        board,
        |_| {},
        |held| {
            if held.signal(call::SIGTERM).is_ok() {
                let _ = held.signal(call::SIGCONT);
            }
        },
    );
}

/// Kills everything below us that is not kept, however deep.
pub(crate) fn kill_all(tree: &mut Tree, rules: List, board: Board<'_>) {
    walk(
        tree,
        rules,
        board,
        |_| {},
        |held| {
            let _ = held.signal(call::SIGKILL);
        },
    );
}

/// How a round of killing went.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    /// At least one process was signalled, or none is there.
    Worked,
    /// Processes are there, and the kernel lets us signal none of them.
    AllRefused,
}

/// Kills our own children, but for what is kept; theirs fall to us then, and the next round is for them.
pub(crate) fn kill_children(rules: List, board: Board<'_>) -> Round {
    let (mut signalled, mut refused) = (false, false);
    every_child(board, |pid| {
        if let Some(child) = Held::own_child(pid)
            && !is_spared(&child, rules, board)
        {
            match child.signal(call::SIGKILL) {
                Err(Errno::PERM) => refused = true,
                _ => signalled = true,
            }
        }
    });
    if refused && !signalled { Round::AllRefused } else { Round::Worked }
}

/// Cheap for those who are not: there may be thousands of them, and each look that takes long is one in which they fork.
fn is_spared(child: &Held, rules: List, board: Board<'_>) -> bool {
    if is_on_list(child, board) {
        return true;
    }
    // The dead run nothing, and are told by that.
    let kept = keep::matches(rules, child.pid);
    if kept {
        note_kept(child, board);
    }
    kept
}

// === what is left ===

/// Bits of [`proof`], if every child that we have is a kept one or dead; none if there is another, or it cannot be told.
/// As the reaper of all that lose their parent, we then have no other descendant that is not below a kept one. The dead
/// whom we cannot collect are held back by a debugger; their children are ours already.
pub(crate) fn proof_by_children(rules: List, board: Board<'_>) -> u64 {
    let (mut others, mut proof) = (false, 0);
    let could_look = own_children(|pid| {
        // The first other one tells all.
        if others {
        } else if Held::own_child(pid).is_some_and(|child| is_spared(&child, rules, board)) {
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
/// frozen meanwhile, so that nothing kept can fork a child into it behind our back, or end and leave its number to another.
/// Whether none of them is in it now.
pub(crate) fn set_kept_aside(session: &Session, tree: &mut Tree, rules: List, leaf: Option<Fd>) -> bool {
    let mut all_out = true;
    if let Some(leaf) = leaf {
        leaf::freeze(leaf);
    }
    walk(
        tree,
        rules,
        session.board,
        |held| {
            if let Some(leaf) = leaf.filter(|leaf| leaf::has(*leaf, held.pid))
                && held.is_alive()
            {
                leaf::move_out(session, held.pid);
                all_out &= !leaf::has(leaf, held.pid);
            }
        },
        |_| {},
    );
    if let Some(leaf) = leaf {
        leaf::thaw(leaf);
    }
    all_out
}

/// Writes the survivors down: which processes are still there, and why.
pub(crate) fn note_survivors(tree: &mut Tree, rules: List, board: Board<'_>) {
    walk(
        tree,
        rules,
        board,
        |_| {},
        |held| {
            let (state, ticks) = match proc::stat(held.pid) {
                Some(stat) if stat.is_zombie() => return,
                Some(stat) => (stat.state, stat.ticks),
                // It is there, whether we can read about it or not.
                None => (0, 0),
            };
            let reason = match held.signal(0) {
                Err(Errno::PERM) => survived::NOT_PERMITTED,
                Err(_) => return,
                Ok(()) if state == b'D' => survived::UNINTERRUPTIBLE,
                Ok(()) => survived::UNKNOWN,
            };
            if held.is_alive() {
                board.add_survivor(held.pid, ticks, reason);
            }
        },
    );
}

// === without subreapers ===

/// The group that the server leads, for a containment without subreapers. Only while the server is our unreaped child,
/// for only then the group's number cannot belong to another group.
pub(crate) fn signal_group(server: i32, signal: i32) {
    // 0 and 1 mean something else altogether to `kill`.
    if server > 1 {
        let _ = call::kill(-server, signal);
    }
}

/// Whether no live process is in the server's group.
pub(crate) fn group_is_empty(server: i32) -> bool {
    let mut alive = false;
    proc::numbers_in(c"/proc", |pid| {
        alive |= proc::stat(pid).is_some_and(|stat| stat.pgrp == server && !stat.is_zombie());
    });
    !alive
}
