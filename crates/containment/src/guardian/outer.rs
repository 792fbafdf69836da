//! The outer guardian: it waits for the inner one.
//!
//! ```text
//!              inner cannot be made, or cannot start the server ──▶ clean up, tell the owner, exit
//!  fork inner ─┤
//!              └▶ waiting ──inner done──▶ finish (check, on_end, record, report), exit
//!                    │
//!                    └──inner killed, or stuck too long after the owner's death──▶ watch its orphans, then finish
//! ```

use crate::bare::call::{self, Fd, PollFd, Waited};
use crate::bare::fork::{self, AtDeath, Forked, Namespaces, ParentWaits};
use crate::shared::board::{Word, flag, layer, packet, proof, reason, stage};
use crate::session::Session;
use crate::shared::ladder::State;
use crate::watch::Watch;
use crate::{finish, inner};

/// How much longer than its own bound the inner guardian may take, once the owner is dead, before it counts as stuck.
const SLACK: u64 = 2_000_000_000;

pub(crate) fn run(session: Session) -> i32 {
    let board = session.board;
    call::block_signals(true);
    // An owner that ignores SIGCHLD hands that down, and then nothing could be waited for.
    call::default_action(call::SIGCHLD);
    call::setsid();
    call::set_name(c"moored-outer");
    call::go_on_when_parent_dies();
    // The server is of our user, and could write on the board, speak with our socket, or hold us by ptrace.
    call::let_others_look(false);
    session.close_all_else();
    board.set(Word::OuterPid, call::getpid() as u64);
    if board.has(Word::Flags, flag::SUBREAPER) && call::become_subreaper().is_err() {
        board.set(Word::Flags, board.get(Word::Flags) & !flag::SUBREAPER);
    }

    board.set(Word::Stage, stage::FORK_INNER);
    let strict = board.has(Word::Flags, flag::STRICT);
    // Only root may make a PID namespace without a user namespace around it.
    let map_to = (strict && call::getuid() != 0).then(|| [call::getuid(), call::getgid()].map(u64::from));
    let namespaces = if strict { Namespaces::strict(map_to.is_some()) } else { Namespaces::NONE };
    // A server may stop both guardians and kill one: the kernel sends SIGCONT to the other one then, in either direction.
    let fork = || fork::fork(namespaces, ParentWaits::No, AtDeath::Continue, None);
    let made = call::pidfd_open(call::getpid()).and_then(|own| fork().map(|forked| (own, forked)));
    match made {
        Err(error) => {
            board.set(Word::StageError, error.0 as u64);
            finish::abandon(&session)
        }
        Ok((own, Forked::Child)) => inner::run(session, own, map_to),
        Ok((own, Forked::Parent { pid, pidfd })) => {
            call::close(own);
            session.close_stdio();
            let _ = call::chdir(c"/");
            board.set_once(Word::InnerPid, pid as u64);
            wait_for_inner(&session, pid, pidfd);
            after_inner(session)
        }
    }
}

/// Until the inner guardian has ended, by itself or not.
fn wait_for_inner(session: &Session, inner: i32, pidfd: Fd) {
    let signals = call::child_signal_fd().ok();
    let mut owner = Some(session.owner_pidfd);
    let mut owner_died_at = 0;
    let mut stuck_at = None;
    loop {
        let mut fds = [PollFd::readable(Some(pidfd)), PollFd::readable(owner), PollFd::readable(signals)];
        call::poll(&mut fds, stuck_at.map(|at: u64| at.saturating_sub(call::now())));
        if fds[1].is_ready() {
            owner = None;
            owner_died_at = call::now();
            stuck_at = Some(latest_end(session, owner_died_at));
        }
        if fds[2].is_ready()
            && let Some(signals) = signals
        {
            drain(signals);
            // A process that may signal us stopped the inner guardian; a stopped one guards nothing.
            let _ = call::kill(inner, call::SIGCONT);
        }
        if stuck_at.is_some_and(|at| call::now() >= at) {
            // Looked at again: the ladder may have gone on to a step that has its own time.
            let latest = latest_end(session, owner_died_at);
            let stuck = call::now() >= latest;
            stuck_at = (!stuck).then_some(latest);
            if stuck {
                let _ = call::kill(inner, call::SIGKILL);
            }
        }
        if fds[0].is_ready() {
            // A debugger can hold it back from us; it is dead all the same, and what it had is ours.
            reap(session, inner);
            call::close(pidfd);
            if let Some(signals) = signals {
                call::close(signals);
            }
            return;
        }
    }
}

/// When the ladder that is under way is over at the latest; one that is not under way should have begun when the owner
/// died, and that moment stands.
fn latest_end(session: &Session, owner_died_at: u64) -> u64 {
    let board = session.board;
    let (kill_after, verify) = (board.get(Word::LadderKillAfter), board.get(Word::Verify));
    let from = |at: u64, patience: &[u64]| patience.iter().fold(at.saturating_add(SLACK), |sum, p| sum.saturating_add(*p));
    match State::from_code(board.get(Word::LadderState), board.get(Word::LadderUntil)) {
        State::Running => from(owner_died_at, &[board.get(Word::LadderGrace), kill_after, verify]),
        State::Closing { until } => from(until, &[kill_after, verify]),
        State::Terminating { until } => from(until, &[verify]),
        State::Killing { until } => from(until, &[]),
        State::Ended => from(owner_died_at.max(board.get(Word::VerifyAt)), &[]),
    }
}

/// Empties a signal fd: one record is enough to know, the rest say the same.
pub(crate) fn drain(signals: Fd) {
    let mut records = [0_u8; 1024];
    while call::read(signals, &mut records).is_ok_and(|n| n == records.len()) {}
}

/// Collects what has ended, the inner guardian among it unless a debugger holds it back.
fn reap(session: &Session, inner: i32) {
    loop {
        match call::wait_any() {
            Waited::Reaped(pid, _) if pid == inner => {
                if session.board.has(Word::Layers, layer::PIDNS) {
                    // The kernel lets the first process of a namespace be reaped only when all the others are gone.
                    session.board.add_bits(Word::Proof, proof::NAMESPACE);
                }
                return;
            }
            Waited::Reaped(..) => {}
            Waited::NoneYet | Waited::NoChildren => return,
        }
    }
}

/// The inner guardian is gone; what it left decides what is left to do.
fn after_inner(session: Session) -> i32 {
    let board = session.board;
    if board.get(Word::TreeDone) == 0 {
        if board.get(Word::Stage) != stage::RUNNING {
            if board.get(Word::StageError) == 0 {
                // Killed before it could say anything.
                board.set(Word::StageError, call::Errno::SRCH.0 as u64);
            }
            finish::leave_nothing(&session);
            return finish::abandon(&session);
        }
        board.set_once(Word::Reason, reason::GUARDIAN_DIED);
        Watch::take_over(session).run();
    } else {
        finish::leave_nothing(&session);
    }
    finish::conclude(&session);
    call::send(session.owner_socket, &[packet::ENDED], None);
    0
}
