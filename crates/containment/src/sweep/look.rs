//! Looking for what is left of a session among all processes, some of which never stand still.
//!
//! A look lists all processes and then reads each one's mark. It is stable if no process was born while the list was read, and
//! no listed process was gone, or a zombie of the session, when its turn came. Then it misses none: every process of the session
//! that lived when the list was complete is in the list, and is seen. Else it raced with births or deaths, and proves little: a
//! process that forks and exits all the time may be missed each time. So a look begins with the newest processes, reads one file
//! for each that is not of the session, and looks where numbers are given out before it says that there is none.

use std::io;
use std::os::unix::ffi::OsStrExt as _;

use crate::process::identity::{BootId, ProcessIdentity, stat_of};
use crate::record::session_record::Record;
use crate::shared::keep_rule::{self, Program};
use crate::sweep::plan::{Marked, targets};
use crate::sys;

/// One look at all processes.
pub(crate) struct Look {
    pub(crate) marked: Vec<Marked>,
    /// A process ended or was born while we looked, and may have been missed.
    pub(crate) raced: bool,
}

/// Looks at every process, and tells `seen` of each that carries a mark of the session the moment it is seen: some are gone
/// the next.
pub(crate) fn look(record: &Record, mut seen: impl FnMut(&Marked)) -> io::Result<Look> {
    let mut look = Look { marked: Vec::new(), raced: false };
    let (mut pids, still) = list()?;
    look.raced |= !still;
    // The newest first: a process that forks and exits all the time is gone by the time the old ones have been looked at.
    pids.sort_unstable_by(|a, b| b.cmp(a));
    for pid in pids {
        look.at(record, pid, &mut seen)?;
    }
    if look.raced && targets(record, &look.marked, &[]).is_empty() {
        look.hunt(record, &mut seen)?;
    }
    Ok(look)
}

/// All processes, and whether none was born while they were listed: a new process, and its parent that is gone, may both be
/// missing from the list.
fn list() -> io::Result<(Vec<u32>, bool)> {
    const TIMES: u32 = 10;
    let mut listed = Vec::new();
    for _ in 0..TIMES {
        let newest = sys::last_pid()?;
        listed = sys::process_ids()?;
        if sys::last_pid()? == newest {
            return Ok((listed, true));
        }
    }
    Ok((listed, false))
}

impl Look {
    fn at(&mut self, record: &Record, pid: u32, seen: &mut impl FnMut(&Marked)) -> io::Result<()> {
        if pid == std::process::id() {
            return Ok(());
        }
        let cookie = match sys::cookie_of(pid) {
            Ok(Some(cookie)) if record.id.covers(cookie) => cookie,
            Ok(_) => return Ok(()),
            Err(error) => {
                // Gone, or about to be: it may have been one of the session. One that we may not look at is not ours.
                self.raced |= error.kind() != io::ErrorKind::PermissionDenied;
                return Ok(());
            }
        };
        match stat_of(pid) {
            Ok(stat) if !stat.is_zombie() && may_be_ours(pid) => {
                let identity = ProcessIdentity { pid, start_ticks: stat.ticks, boot: BootId::current()? };
                let runs_kept = runs_kept(record, pid);
                let marked = Marked { identity, parent: stat.ppid.unsigned_abs(), cookie, runs_kept };
                seen(&marked);
                self.marked.push(marked);
            }
            Ok(stat) => self.raced |= stat.is_zombie(),
            Err(_) => self.raced = true,
        }
        Ok(())
    }

    /// Looks where numbers are given out, again and again: there a hopping lineage is, whenever it is.
    fn hunt(&mut self, record: &Record, seen: &mut impl FnMut(&Marked)) -> io::Result<()> {
        const TIMES: u32 = 12;
        const BEHIND: u32 = 48;
        const AHEAD: u32 = 8;
        for _ in 0..TIMES {
            let last = sys::last_pid()?;
            for pid in (last.saturating_sub(BEHIND).max(1)..=last.saturating_add(AHEAD)).rev() {
                self.at(record, pid, seen)?;
            }
            if !targets(record, &self.marked, &[]).is_empty() {
                break;
            }
        }
        Ok(())
    }
}

/// Whether it runs a program that the session keeps.
fn runs_kept(record: &Record, pid: u32) -> bool {
    if record.keep.is_empty() {
        return false;
    }
    let Some(running) = sys::program_of(pid) else { return false };
    let program = Program { exe: running.exe.as_deref(), name: &running.name, args: &running.args };
    record.keep.iter().any(|rule| keep_rule::matches(rule.as_bytes(), &program))
}

fn may_be_ours(pid: u32) -> bool {
    sys::own_user() == 0 || sys::status_uid(pid).is_ok_and(|uid| uid == sys::own_user())
}

/// Consecutive looks that found no process of the session, and how many of these were stable. Two stable ones are enough; on a
/// machine where processes always come and go, many that raced have to do.
#[derive(Default)]
pub(crate) struct EmptyScanStreak {
    stable: u32,
    all: u32,
}

impl EmptyScanStreak {
    const STABLE_ENOUGH: u32 = 2;
    /// A lineage that hops all the time was once missed by thirty, on a machine where others were born all the time too.
    const RACED_ENOUGH: u32 = 80;

    pub(crate) fn add(&mut self, raced: bool) {
        self.all += 1;
        self.stable = if raced { 0 } else { self.stable + 1 };
    }

    pub(crate) fn are_enough(&self) -> bool {
        self.stable >= Self::STABLE_ENOUGH || self.all >= Self::RACED_ENOUGH
    }
}
