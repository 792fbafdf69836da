//! After the tree: what is left to check, to run, to remove and to tell.
//!
//! The outer guardian does this; the inner one if the outer was killed.

use crate::bare::call::{self, Fd, PollFd, Waited};
use crate::bare::fork::{self, AtDeath, Forked, Namespaces, ParentWaits, Strings};
use crate::shared::board::{HAS_STATUS, Word, flag, packet, proof};
use crate::proc::Line;
use crate::session::{List, Session, Texts};
use crate::tree::{self, Tree};
use crate::{leaf, spawn};

/// Ends whatever is still below us, but for what is kept: after a good ending there is nothing.
pub(crate) fn leave_nothing(session: &Session) {
    const LOOK_AGAIN: u64 = 1_000_000;
    let board = session.board;
    if !board.has(Word::Flags, flag::SUBREAPER) {
        return;
    }
    if reap_all() == Waited::NoChildren {
        return;
    }
    let rules = session.texts().map_or(List { block: &[], count: 0 }, |texts| texts.keep_rules);
    // Those who were waited for in vain already are not waited for again.
    let in_vain = board.get(Word::VerifyAt) != 0 && board.get(Word::Proof) & !proof::UNPOPULATED == 0;
    let patience = if in_vain || board.survivor_count() > 0 { 0 } else { board.get(Word::Verify) };
    let until = call::now().saturating_add(patience);
    loop {
        if reap_all() == Waited::NoChildren || tree::proof_by_children(rules, board) != 0 {
            return;
        }
        let _ = tree::kill_children(rules, board);
        if call::now() >= until {
            if let Some(mut tree) = Tree::new() {
                tree::note_survivors(&mut tree, rules, board);
            }
            return;
        }
        call::poll(&mut [], Some(LOOK_AGAIN));
    }
}

/// Collects all that has ended; what is said of the rest.
fn reap_all() -> Waited {
    loop {
        match call::wait_any() {
            Waited::Reaped(..) => {}
            rest => return rest,
        }
    }
}

/// Runs `on_end`, removes the leaf and the record. The report is complete then.
pub(crate) fn conclude(session: &Session) {
    if let Ok(texts) = session.texts() {
        leaf::remove(session, texts.leaf_name);
        if texts.on_end.count > 0 {
            session.board.set(Word::OnEndAt, call::now());
            run_on_end(session, &texts);
            leave_nothing(session);
        }
        close_record(session, &texts);
    }
    session.board.set(Word::DoneAt, call::now());
}

/// The server could not be started: nothing may be left of the attempt.
pub(crate) fn abandon(session: &Session) -> i32 {
    if let Ok(texts) = session.texts() {
        leaf::remove(session, texts.leaf_name);
        if let Some(folder) = session.runtime_folder {
            let _ = call::unlink(folder, texts.record_name);
        }
    }
    call::send(session.owner_socket, &[packet::FAILED], None);
    1
}

/// The record goes, unless it has to tell later sweeps whom to look for or whom to leave alone.
fn close_record(session: &Session, texts: &Texts) {
    let board = session.board;
    let (Some(record), Some(folder)) = (session.record, session.runtime_folder) else { return };
    // Without a proof something may be left, and only the record could lead to it.
    let proven = board.get(Word::Proof) & !proof::UNPOPULATED != 0 && board.survivor_count() == 0;
    if proven && board.kept_count() == 0 {
        let _ = call::unlink(folder, texts.record_name);
        return;
    }
    for i in 0..board.kept_count() {
        let [pid, ticks, _] = board.kept(i);
        let line = Line::new().text(b"kept ").number(pid).text(b" ").number(ticks).text(b"\n");
        let _ = call::write(record, line.as_bytes());
    }
    if proven {
        let _ = call::write(record, b"ended\n");
    }
}

/// Starts `on_end` and waits for it; not for ever.
fn run_on_end(session: &Session, texts: &Texts) {
    let board = session.board;
    let me = call::getpid();
    match fork::fork(Namespaces::NONE, ParentWaits::No, AtDeath::Tell, None) {
        Ok(Forked::Child) => {
            become_on_end(texts, me);
            call::exit(127)
        }
        Ok(Forked::Parent { pid, pidfd }) => {
            let mut fds = [PollFd::readable(Some(pidfd))];
            call::poll(&mut fds, Some(board.get(Word::OnEndPatience)));
            if !fds[0].is_ready() {
                let _ = call::kill(pid, call::SIGKILL);
                call::poll(&mut fds, Some(board.get(Word::Verify)));
            }
            while let Waited::Reaped(reaped, status) = call::wait_any() {
                if reaped == pid {
                    board.set(Word::OnEndStatus, u64::from(status as u32) | HAS_STATUS);
                }
            }
            call::close(pidfd);
        }
        Err(error) => board.set(Word::OnEndStatus, HAS_STATUS | u64::from(error.0 as u8) << 8),
    }
}

/// In the child: a session of its own, no input and no output, and nothing of ours.
fn become_on_end(texts: &Texts, guardian: i32) {
    call::setsid();
    // If we are killed, the other guardian or the next sweep runs it again; two at once would be in each other's way.
    if call::die_with_parent().is_err() || call::getppid() != guardian {
        return;
    }
    let Ok(null) = call::openat(Fd::CWD, c"/dev/null", call::O_RDWR) else { return };
    let Ok(null) = call::duplicate_above(null, 3) else { return };
    for number in 0..3 {
        let _ = call::duplicate_onto(null, Fd(number));
    }
    call::close_range(3, u32::MAX);
    call::default_action(call::SIGPIPE);
    call::block_signals(false);
    let arguments = Strings::take(&mut { texts.on_end.block }, texts.on_end.count);
    let environment = Strings::take(&mut { texts.on_end_environment.block }, texts.on_end_environment.count);
    if let (Ok(mut arguments), Ok(environment)) = (arguments, environment) {
        // The owner resolved the program: the first argument is where it is.
        spawn::exec_first(List { count: 1, ..texts.on_end }, &mut arguments, &environment);
    }
}
