//! The inner guardian: the parent of the server, and the one who ends its tree.

use core::ffi::CStr;

use crate::bare::call::{self, Errno, Fd, PollFd};
use crate::shared::board::{Word, flag, layer, packet, stage};
use crate::proc::Line;
use crate::session::Session;
use crate::watch::Watch;
use crate::{finish, spawn};

/// `outer` is a pidfd of the outer guardian; `map_to` the user and group to be again in a fresh user namespace.
pub(crate) fn run(session: Session, outer: Fd, map_to: Option<[u64; 2]>) -> i32 {
    let board = session.board;
    call::setsid();
    call::set_name(c"moored-inner");
    call::go_on_when_parent_dies();
    if board.has(Word::Flags, flag::STRICT) {
        wait_to_be_known(&session);
    } else {
        board.set(Word::InnerPid, call::getpid() as u64);
    }
    match start(&session, map_to) {
        Ok(server) => {
            let _ = call::chdir(c"/");
            session.close_stdio();
            Watch::begin(session, server, outer).run();
        }
        Err(error) => {
            board.set(Word::StageError, error.0 as u64);
            return if is_over(outer) { finish::abandon(&session) } else { 1 };
        }
    }
    board.set(Word::TreeDone, 1);
    if is_over(outer) {
        // The outer guardian is dead: its last duties are ours.
        finish::conclude(&session);
        call::send(session.owner_socket, &[packet::ENDED], None);
    } else {
        // It may have been stopped, and has work to do now.
        let _ = call::pidfd_send(outer, call::SIGCONT);
    }
    0
}

/// In a PID namespace only the outer guardian knows our number outside. It writes it down right after the fork; the owner
/// must not hear of the server before.
fn wait_to_be_known(session: &Session) {
    const LOOK_EVERY: u64 = 20_000;
    const LONGEST: u64 = 1_000_000_000;
    let until = call::now() + LONGEST;
    while session.board.get(Word::InnerPid) == 0 && call::now() < until {
        call::poll(&mut [], Some(LOOK_EVERY));
    }
}

fn is_over(process: Fd) -> bool {
    let mut fds = [PollFd::readable(Some(process))];
    call::poll(&mut fds, Some(0));
    fds[0].is_ready()
}

/// From a fresh fork to a running server.
fn start(session: &Session, map_to: Option<[u64; 2]>) -> Result<i32, Errno> {
    let board = session.board;
    if board.has(Word::Flags, flag::SUBREAPER) {
        call::become_subreaper()?;
        board.add_bits(Word::Layers, layer::GUARDIAN);
    }
    if board.has(Word::Flags, flag::STRICT) {
        board.set(Word::Stage, stage::NAMESPACE);
        // The server is not started yet, and our maps have to be written.
        call::let_others_look(true);
        settle_namespace(map_to)?;
        call::let_others_look(false);
        board.add_bits(Word::Layers, layer::PIDNS);
    }
    if board.has(Word::Flags, flag::SEALED) {
        board.set(Word::Stage, stage::SEAL);
        seal(session)?;
        board.add_bits(Word::Layers, layer::LANDLOCK);
    }
    spawn::spawn(session)
}

/// Inside fresh namespaces: the same user as outside, and a /proc that shows this namespace's processes.
fn settle_namespace(map_to: Option<[u64; 2]>) -> Result<(), Errno> {
    const MS_REC_SLAVE: usize = 0x4000 | 0x8_0000;
    const MS_NOSUID_NODEV_NOEXEC: usize = 2 | 4 | 8;
    if let Some([uid, gid]) = map_to {
        // The old /proc is still mounted, and knows us by our number outside.
        put(c"/proc/self/setgroups", b"deny")?;
        put(c"/proc/self/uid_map", Line::new().number(uid).text(b" ").number(uid).text(b" 1").as_bytes())?;
        put(c"/proc/self/gid_map", Line::new().number(gid).text(b" ").number(gid).text(b" 1").as_bytes())?;
    }
    // Mounts made outside still arrive here; ours do not leave.
    call::mount(c"none", c"/", c"none", MS_REC_SLAVE)?;
    call::mount(c"proc", c"/proc", c"proc", MS_NOSUID_NODEV_NOEXEC)
}

fn put(path: &CStr, bytes: &[u8]) -> Result<(), Errno> {
    let file = call::openat(Fd::CWD, path, call::O_WRONLY)?;
    let written = call::write(file, bytes);
    call::close(file);
    written.map(|_| ())
}

/// Shuts us in with what we will start, and proves that the door is shut: `kill(-1)` is loosed behind it later.
fn seal(session: &Session) -> Result<(), Errno> {
    if call::getuid() == 0 {
        return Err(Errno::PERM);
    }
    // In a PID namespace the owner cannot be addressed at all, and `kill(-1)` is not used.
    let strict = session.board.has(Word::Flags, flag::STRICT);
    // What is refused before cannot prove anything by being refused after.
    if !strict && call::pidfd_send(session.owner_pidfd, 0).is_err() {
        return Err(Errno::SRCH);
    }
    call::set_no_new_privs()?;
    call::seal_signals()?;
    if strict {
        return Ok(());
    }
    match call::pidfd_send(session.owner_pidfd, 0) {
        Err(Errno::PERM) => Ok(()),
        // Reached, or gone: either way there is no proof, and without proof there is no `kill(-1)`.
        _ => Err(Errno::ACCES),
    }
}
