//! What a crash of everything left: found by record, cookie and identity, and ended.
//!
//! A session whose record can be locked and whose owner is dead has lost all of its keepers. What is left of it carries
//! its cookie. The plan is pure ([`targets`]); the doing looks again before every signal, and goes on until two looks in
//! a row find nothing. A process without the cookie is never touched, whatever else speaks for it.

use std::io;
use std::time::{Duration, Instant};

use crate::command::{Command, Recording};
use crate::cookie::SessionId;
use crate::identity::{ProcessIdentity, gone, stat_of};
use crate::record::Record;
use crate::report::{ServerExit, Survivor, SurvivorReason};
use crate::runtime_dir::{FoundRecord, RuntimeDir};
use crate::sys;

/// What is left of a session may take this long to end after SIGTERM.
const KILL_AFTER: Duration = Duration::from_millis(500);
/// After this long, what is still there is a survivor.
const GIVE_UP_AFTER: Duration = Duration::from_secs(5);
/// How often to look.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// What a sweep did about one dead session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SweptSession {
    /// Which.
    pub session: SessionId,
    /// What its owner called it.
    pub label: String,
    /// Who was ended.
    pub ended: Vec<ProcessIdentity>,
    /// Who was left alone, because it was meant to live on.
    pub kept: Vec<ProcessIdentity>,
    /// Who should be gone and is not.
    pub survivors: Vec<Survivor>,
    /// How the session's `on_end` command ended, if there was one to run.
    pub on_end: Option<ServerExit>,
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SweepReport {
    /// Each dead session that was found. Of a session that had ended as it should there is nothing to tell.
    pub sessions: Vec<SweptSession>,
    /// What could not be done, as sentences.
    pub errors: Vec<String>,
}

/// Ends what dead sessions of this user left behind, and forgets them.
///
/// ```no_run
/// use moored_containment::{RuntimeDir, sweep};
///
/// let report = sweep(&RuntimeDir::of_user()?)?;
/// for session in &report.sessions {
///     eprintln!("swept {}: {} processes", session.label, session.ended.len());
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If the folder of records cannot be read. What goes wrong with one session is in the report, and does not keep the
/// others from being swept.
pub fn sweep(folder: &RuntimeDir) -> io::Result<SweepReport> {
    let found = folder.sessions()?;
    let mut report = SweepReport::default();
    if let Err(error) = folder.remove_dead_drafts() {
        report.errors.push(format!("failed to tidy `{}`: {error}", folder.path().display()));
    }
    let (dead, live): (Vec<_>, Vec<_>) = found.into_iter().partition(|f| is_dead(f).unwrap_or(false));
    let live: Vec<SessionId> = live.iter().map(|f| f.record.id).collect();
    for session in dead {
        match sweep_one(&session, &live) {
            Ok(swept) => report.sessions.extend(swept),
            Err(error) => {
                report.errors.push(format!("failed to sweep session `{}`: {error}", session.record.id));
            }
        }
    }
    Ok(report)
}

/// Its guardians are gone and its owner is; a living owner cleans up itself. Cannot tell: not dead.
fn is_dead(found: &FoundRecord) -> io::Result<bool> {
    Ok(found.claim()? && !found.record.owner.is_alive()?)
}

/// Sweeps one session whose record the caller has claimed.
pub(crate) fn sweep_one(found: &FoundRecord, live: &[SessionId]) -> io::Result<Option<SweptSession>> {
    let record = &found.record;
    if record.owner.boot != crate::identity::BootId::current()? {
        // Nothing outlives a boot.
        found.remove()?;
        return Ok(None);
    }
    if record.ended {
        return forget_when_kept_are_gone(found).map(|()| None);
    }
    let swept = finish(record, live)?;
    if swept.survivors.is_empty() {
        found.remove()?;
    }
    Ok(Some(swept))
}

/// For an owner whose guardians are both gone: the same for its own session, with or without a record.
pub(crate) fn sweep_own(record: &Record, found: Option<&FoundRecord>) -> io::Result<SweptSession> {
    let swept = finish(found.map_or(record, |found| &found.record), &[])?;
    if let Some(found) = found
        && swept.survivors.is_empty()
    {
        found.remove()?;
    }
    Ok(swept)
}

fn finish(record: &Record, live: &[SessionId]) -> io::Result<SweptSession> {
    let mut swept = end_targets(record, live)?;
    if let Some(leaf) = record.leaf.as_ref().and_then(|path| sys::adopt_leaf(path, &leaf_name(record.id))) {
        // Not empty: somebody without our cookie is in it. It is not ours to touch, and neither is the leaf then.
        let _ = leaf.remove();
    }
    if swept.survivors.is_empty() {
        swept.on_end = run_on_end(record);
    }
    Ok(swept)
}

/// The name of a session's cgroup leaf.
pub(crate) fn leaf_name(id: SessionId) -> String {
    format!("moored-{id}")
}

fn forget_when_kept_are_gone(found: &FoundRecord) -> io::Result<()> {
    for kept in &found.record.kept {
        if kept.is_alive()? {
            return Ok(());
        }
    }
    found.remove()
}

// === deciding ===

/// A process and its mark.
#[derive(Clone, Copy, Debug)]
struct Marked {
    identity: ProcessIdentity,
    parent: u32,
    cookie: u64,
}

/// Who is left of that session: carries its cookie (or that of a session inside it), is not older than the session, is
/// not kept nor below a kept one, and does not belong to a live session that happens to have the same cookie.
fn targets(record: &Record, marked: &[Marked], live: &[SessionId]) -> Vec<ProcessIdentity> {
    let foreign = |cookie| live.iter().any(|other| other.covers(cookie) && !record.id.encloses(*other));
    marked
        .iter()
        .filter(|m| record.id.covers(m.cookie) && m.identity.start_ticks >= record.started_ticks)
        .filter(|m| !foreign(m.cookie) && !is_below_kept(record, marked, m))
        .map(|m| m.identity)
        .collect()
}

fn is_below_kept(record: &Record, marked: &[Marked], of: &Marked) -> bool {
    let mut at = *of;
    // A chain of parents is shorter than the table.
    for _ in 0..=marked.len() {
        if record.kept.contains(&at.identity) {
            return true;
        }
        match marked.iter().find(|m| m.identity.pid == at.parent) {
            Some(parent) => at = *parent,
            None => return false,
        }
    }
    false
}

// === doing ===

/// Every process that carries a mark. One whose mark cannot be read has none that we could act on.
fn marked_processes() -> io::Result<Vec<Marked>> {
    let boot = crate::identity::BootId::current()?;
    let me = std::process::id();
    let mut found = Vec::new();
    for pid in sys::process_ids()?.into_iter().filter(|pid| *pid != me) {
        let Ok(Some(cookie)) = sys::cookie_of(pid) else { continue };
        let Ok(stat) = stat_of(pid) else { continue };
        if stat.is_zombie()
            || sys::status_uid(pid).is_ok_and(|uid| uid != sys::own_user()) && sys::own_user() != 0
        {
            continue;
        }
        let identity = ProcessIdentity { pid, start_ticks: stat.ticks, boot };
        found.push(Marked { identity, parent: stat.ppid.unsigned_abs(), cookie });
    }
    Ok(found)
}

fn end_targets(record: &Record, live: &[SessionId]) -> io::Result<SweptSession> {
    const SIGKILL: i32 = 9;
    const SIGTERM: i32 = 15;
    const SIGCONT: i32 = 18;
    let began = Instant::now();
    let mut swept = SweptSession {
        session: record.id,
        label: record.label.clone(),
        ended: Vec::new(),
        kept: record.kept.clone(),
        survivors: Vec::new(),
        on_end: None,
    };
    let mut clean_looks = 0;
    let mut asked: Vec<ProcessIdentity> = Vec::new();
    while clean_looks < 2 {
        let left = targets(record, &marked_processes()?, live);
        if left.is_empty() {
            clean_looks += 1;
            continue;
        }
        clean_looks = 0;
        swept.survivors.clear();
        let killing = began.elapsed() >= KILL_AFTER;
        for process in left {
            if !killing && asked.contains(&process) {
                continue;
            }
            let result = signal(record, &process, if killing { SIGKILL } else { SIGTERM });
            if !killing {
                let _ = signal(record, &process, SIGCONT);
                asked.push(process);
            }
            note(&mut swept, process, result);
        }
        if began.elapsed() >= GIVE_UP_AFTER {
            return Ok(swept);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    swept.survivors.clear();
    Ok(swept)
}

fn note(swept: &mut SweptSession, process: ProcessIdentity, result: io::Result<()>) {
    let reason = match result {
        Err(error) if gone(&error) => return,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => SurvivorReason::NotPermitted,
        _ => SurvivorReason::Unknown,
    };
    if !swept.ended.contains(&process) && reason != SurvivorReason::NotPermitted {
        swept.ended.push(process);
    }
    swept.survivors.push(Survivor { process, reason });
}

/// Holds the process first, then looks again at who it is and what it carries, and only then signals it.
fn signal(record: &Record, process: &ProcessIdentity, signal: i32) -> io::Result<()> {
    let Some(held) = process.hold()? else { return Err(io::ErrorKind::NotFound.into()) };
    match sys::cookie_of(process.pid)? {
        Some(cookie) if record.id.covers(cookie) => held.send(signal),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// What the guardians would have run.
fn run_on_end(record: &Record) -> Option<ServerExit> {
    let (program, args) = record.on_end.split_first()?;
    let mut command = Command::new(program);
    command.args(args).recording(Recording::Off);
    command.spawn().ok()?.wait().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::BootId;

    fn process(pid: u32, start_ticks: u64) -> ProcessIdentity {
        ProcessIdentity { pid, start_ticks, boot: BootId::current().expect("a boot") }
    }

    fn record(id: SessionId) -> Record {
        Record {
            id,
            label: String::new(),
            owner: process(2, 50),
            started_ticks: 100,
            leaf: None,
            on_end: Vec::new(),
            processes: Vec::new(),
            kept: Vec::new(),
            ended: false,
        }
    }

    fn marked(pid: u32, ticks: u64, parent: u32, cookie: u64) -> Marked {
        Marked { identity: process(pid, ticks), parent, cookie }
    }

    #[test]
    fn only_those_with_the_cookie_that_are_not_older_are_left_of_a_session() {
        let (ours, other) = (SessionId::choose(None, 1 << 40), SessionId::choose(None, 1 << 41));
        let (ours_value, other_value) = (ours.cookie().expect("one"), other.cookie().expect("one"));
        let table = [
            marked(10, 100, 1, ours_value),
            marked(11, 99, 1, ours_value),
            marked(12, 200, 1, other_value),
            marked(13, 200, 1, 1024),
        ];
        assert_eq!(targets(&record(ours), &table, &[]), [process(10, 100)]);
    }

    #[test]
    fn a_session_inside_goes_with_it_and_a_live_one_beside_it_stays() {
        let ours = SessionId::choose(None, 1 << 40);
        let inside = SessionId::choose(ours.cookie(), 77 << 17);
        let value = inside.cookie().expect("one");
        let table = [marked(10, 100, 1, value)];
        assert_eq!(targets(&record(ours), &table, &[inside]), [process(10, 100)], "it was started by ours");
        assert_eq!(targets(&record(inside), &table, &[ours]), [], "a live session has a claim on it");
    }

    #[test]
    fn what_is_kept_stays_with_all_below_it() {
        let ours = SessionId::choose(None, 1 << 40);
        let value = ours.cookie().expect("one");
        let table = [marked(10, 100, 1, value), marked(11, 100, 10, value), marked(12, 100, 11, value)];
        let kept = Record { kept: vec![process(11, 100)], ..record(ours) };
        assert_eq!(targets(&kept, &table, &[]), [process(10, 100)]);
    }
}
