//! Bringing the server to its exec.
//!
//! The child is a plain fork of the inner guardian, and the guardian waits until it has become the server or has given
//! up. What went wrong, and where, the child writes on the board: it shares that memory, so no pipe is needed.

use crate::bare::call::{self, Errno, Fd};
use crate::bare::fork::{self, AtDeath, Forked, Namespaces, ParentWaits, Strings};
use crate::shared::board::{Word, flag, layer, packet, stage};
use crate::proc;
use crate::session::Session;

/// The server's number, once it runs; the owner has then been told.
pub(crate) fn spawn(session: &Session) -> Result<i32, Errno> {
    let board = session.board;
    let me = call::getpid();
    let (forked, in_leaf) = fork_server(session);
    match forked? {
        Forked::Child => {
            let error = become_server(session, me);
            board.set(Word::StageError, error.0 as u64);
            call::exit(127)
        }
        Forked::Parent { pid, pidfd } => {
            match board.get(Word::StageError) {
                0 if board.get(Word::Stage) == stage::EXEC => {}
                // It was killed on its way, before it could say anything.
                0 => return Err(Errno::SRCH),
                error => return Err(Errno(error as i32)),
            }
            if in_leaf {
                board.add_bits(Word::Layers, layer::CGROUP);
            }
            board.set(Word::ServerPid, pid as u64);
            // It may have ended already, but we have not reaped it: the line is still there.
            board.set(Word::ServerTicks, proc::stat(pid).map_or(0, |stat| stat.ticks));
            board.set(Word::Stage, stage::RUNNING);
            call::send(session.owner_socket, &[packet::STARTED], Some(pidfd));
            call::close(pidfd);
            Ok(pid)
        }
    }
}

/// Forks into the leaf if there is one, and beside it if that fails: weaker, and the board says so. Where the leaf is
/// required the failure stands.
fn fork_server(session: &Session) -> (Result<Forked, Errno>, bool) {
    let board = session.board;
    if session.leaf.is_some() {
        board.set(Word::Stage, stage::ENTER_LEAF);
        let forked = fork::fork(Namespaces::NONE, ParentWaits::UntilExec, AtDeath::Tell, session.leaf);
        if forked.is_ok() || board.has(Word::Flags, flag::LEAF_REQUIRED) {
            return (forked, true);
        }
    }
    board.set(Word::Stage, stage::FORK_SERVER);
    (fork::fork(Namespaces::NONE, ParentWaits::UntilExec, AtDeath::Tell, None), false)
}

/// In the child; comes back only if the server could not be started.
fn become_server(session: &Session, guardian: i32) -> Errno {
    match prepare(session, guardian) {
        Ok((candidates, mut arguments, environment)) => {
            session.board.set(Word::Stage, stage::EXEC);
            exec_first(candidates, &mut arguments, &environment)
        }
        Err(error) => error,
    }
}

type Program = (crate::session::List, Strings, Strings);

fn prepare(session: &Session, guardian: i32) -> Result<Program, Errno> {
    let board = session.board;
    board.set(Word::Stage, stage::PREPARE);
    call::setsid();
    call::die_with_parent()?;
    if call::getppid() != guardian {
        // It died before the line above, so PR_SET_PDEATHSIG would not tell us any more.
        return Err(Errno::SRCH);
    }
    let cookie = board.get(Word::Cookie);
    if cookie != 0 && call::set_cookie(cookie).is_ok() {
        board.add_bits(Word::Layers, layer::COOKIE);
    }
    if board.has(Word::Flags, flag::SEALED) {
        // A domain of the server's own inside the guardian's: the guardian reaches in, the server does not reach out.
        board.set(Word::Stage, stage::SEAL);
        call::seal_signals()?;
        board.set(Word::Stage, stage::PREPARE);
    }
    let texts = session.texts()?;
    let arguments = Strings::take(&mut { texts.arguments.block }, texts.arguments.count)?;
    let environment = Strings::take(&mut { texts.environment.block }, texts.environment.count)?;
    place_stdio(session.stdio)?;
    if board.has(Word::Flags, flag::HAS_CWD) {
        board.set(Word::Stage, stage::CWD);
        call::chdir(texts.cwd)?;
    }
    call::close_range(3, u32::MAX);
    // Rust programs ignore it, and what is ignored is inherited.
    call::default_action(call::SIGPIPE);
    call::block_signals(false);
    Ok((texts.candidates, arguments, environment))
}

/// The three files become 0, 1 and 2, whatever numbers they have now, those three included.
fn place_stdio(from: [Fd; 3]) -> Result<(), Errno> {
    let mut out_of_the_way = from;
    for fd in &mut out_of_the_way {
        *fd = call::duplicate_above(*fd, 3)?;
    }
    for (number, fd) in (0..).zip(out_of_the_way) {
        call::duplicate_onto(fd, Fd(number))?;
    }
    Ok(())
}

/// As execvp does: the first candidate that can be executed; a refusal is remembered, an absence passed over.
pub(crate) fn exec_first(
    candidates: crate::session::List,
    arguments: &mut Strings,
    environment: &Strings,
) -> Errno {
    let mut error = Errno::NOENT;
    for path in candidates.iter() {
        match fork::exec(path, arguments, environment) {
            Errno::NOENT | Errno::NOTDIR => {}
            Errno::ACCES => error = Errno::ACCES,
            Errno::NOEXEC => return fork::exec_script(path, arguments, environment),
            other => return other,
        }
    }
    error
}
