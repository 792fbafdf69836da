//! Whether a session still has a keeper: its owner, or a guardian.
//!
//! The guardians hold the record's lock, so a lock that can be taken means that they are gone. A lock that cannot be taken
//! means little by itself: any process of this user can hold it, also one that is left of the session. Then the processes on
//! record are looked up, by identity. This file decides which sessions are dead; what is done about them is in `execution`.

use std::io;

use crate::process::identity::{BootId, ProcessIdentity, stat_of};
use crate::record::runtime_dir::FoundRecord;
use crate::record::session_record::Record;
use crate::sys;

/// Its guardians are gone and its owner is; a living owner cleans up itself. Cannot tell: not dead. Of a session of
/// another PID namespace we cannot tell: neither its owner nor what is left of it can be seen from here.
pub(crate) fn is_dead(found: &mut FoundRecord) -> io::Result<bool> {
    let claimed = found.claim()?;
    if is_elsewhere(&found.record)? {
        return Ok(claimed && sys::pid_namespace_is_gone(found.record.pid_namespace)?);
    }
    if found.record.owner.is_alive()? {
        return Ok(false);
    }
    if claimed {
        return Ok(true);
    }
    // The two guardians come first on record; before they were written down there is only the lock to go by.
    let Some(guardians) = found.record.processes.get(..2) else { return Ok(false) };
    let mut all_dead = true;
    for guardian in guardians {
        all_dead &= !guardian.is_alive()?;
        resume_if_stopped(guardian)?;
    }
    // They may have let go of it just now, with their last lines written.
    Ok(all_dead && (found.claim()? || found.read_again()? && !is_anothers(found)?))
}

/// Of this boot, but of another PID namespace.
pub(crate) fn is_elsewhere(record: &Record) -> io::Result<bool> {
    Ok(record.owner.boot == BootId::current()? && record.pid_namespace != sys::pid_namespace()?)
}

/// SIGCONT to a guardian that was stopped: it has not seen that its owner is dead.
fn resume_if_stopped(guardian: &ProcessIdentity) -> io::Result<()> {
    const SIGCONT: i32 = 18;
    if let Some(held) = guardian.hold()?
        && is_guardian(guardian.pid)
        && stat_of(guardian.pid).is_ok_and(|stat| stat.state == b'T')
        && held.is_alive()
    {
        held.send(SIGCONT)?;
    }
    Ok(())
}

/// By the name that a guardian gives itself: any process of this user can write a record that names another process.
fn is_guardian(pid: u32) -> bool {
    sys::name_of(pid).is_ok_and(|name| matches!(&*name, b"moored-outer" | b"moored-inner"))
}

/// Whether a live process outside of the session has the lock: another sweep. A process that took the lock and died has left
/// it to a fork, which no sweep does.
fn is_anothers(found: &FoundRecord) -> io::Result<bool> {
    for pid in found.lockers()? {
        match sys::cookie_of(pid) {
            Ok(Some(cookie)) if found.record.id.covers(cookie) => {}
            Ok(_) => return Ok(true),
            Err(error) if crate::process::identity::gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
