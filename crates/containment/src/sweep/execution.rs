//! What a crash of everything left: found by record, cookie and identity, and ended.
//!
//! What is left of a session whose owner and guardians are all dead (`life`) carries its cookie. The plan is pure (`plan`); the
//! execution looks again (`look`) before every signal, and goes on until two looks in a row find nothing. A process
//! without the cookie is never touched, whatever else speaks for it.

use std::io;
use std::time::{Duration, Instant};

use crate::owner::command::{Command, Recording};
use crate::owner::report::{ServerExit, Survivor, SurvivorReason};
use crate::owner::stdio::Stdio;
use crate::process::identity::{BootId, ProcessIdentity, gone, stat_of};
use crate::record::cookie::SessionId;
use crate::record::runtime_dir::{FoundRecord, RuntimeDir};
use crate::record::session_record::Record;
use crate::sweep::life::{is_dead, is_elsewhere};
use crate::sweep::look::{EmptyScanStreak, look};
use crate::sweep::plan::targets;
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
#[non_exhaustive]
pub struct SweptSession {
    /// The session's id.
    pub session: SessionId,
    /// What its owner called it.
    pub label: String,
    /// Its processes that were ended.
    pub ended: Vec<ProcessIdentity>,
    /// Its processes that were left alone, because they are meant to live on.
    pub kept: Vec<ProcessIdentity>,
    /// Its processes that should be gone and are not.
    pub survivors: Vec<Survivor>,
    /// How the session's `on_end` command ended, if there was one to run.
    pub on_end: Option<ServerExit>,
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
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
    let (mut dead, mut live) = (Vec::new(), Vec::new());
    for mut session in found {
        match is_dead(&mut session) {
            Ok(true) => dead.push(session),
            // Could not tell: as good as alive.
            Ok(false) | Err(_) => live.push(session.record.id),
        }
    }
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

/// Sweeps one session whose record the caller has claimed.
pub(crate) fn sweep_one(found: &FoundRecord, live: &[SessionId]) -> io::Result<Option<SweptSession>> {
    let record = &found.record;
    if record.owner.boot != BootId::current()? || is_elsewhere(record)? {
        // Nothing outlives a boot, or its namespace; but for the folder of a group, in the same boot.
        if let Some(leaf) = record.leaf.as_ref().and_then(|path| sys::adopt_leaf(path, &leaf_name(record.id)))
        {
            leaf.remove()?;
        }
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
    let swept = finish(record, &[])?;
    if let Some(found) = found
        && swept.survivors.is_empty()
    {
        found.remove()?;
    }
    Ok(swept)
}

fn finish(record: &Record, live: &[SessionId]) -> io::Result<SweptSession> {
    let leaf = record.leaf.as_ref().and_then(|path| sys::adopt_leaf(path, &leaf_name(record.id)));
    let mut swept = end_targets(record, live, leaf.as_ref())?;
    if let Some(leaf) = leaf {
        remove_leaf(&leaf, &mut swept);
    }
    if record.id.cookie().is_none() {
        // There was no mark to look for; those on record are all we know of.
        let alive = record.processes.iter().filter(|process| process.is_alive().unwrap_or(true));
        swept.survivors.extend(alive.map(|p| Survivor { process: *p, reason: SurvivorReason::Foreign }));
    }
    if swept.survivors.is_empty() {
        swept.on_end = run_on_end(record);
    }
    Ok(swept)
}

/// Removes the leaf, but for those who are kept, and who leave it. Somebody else without our cookie is not ours to touch,
/// and the session is not over then.
fn remove_leaf(leaf: &sys::Leaf, swept: &mut SweptSession) {
    for kept in &swept.kept {
        // A group takes numbers only; one that is a member's, and whose bearer is held and alive, is no stranger's.
        if let Ok(Some(held)) = kept.hold()
            && leaf.members().contains(&kept.pid)
            && held.is_alive()
        {
            leaf.move_out(kept.pid);
        }
    }
    if leaf.remove().is_err() {
        let left = leaf.members().into_iter().filter_map(|pid| ProcessIdentity::of(pid).ok());
        swept.survivors.extend(left.map(|process| Survivor { process, reason: SurvivorReason::Foreign }));
    }
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

/// A leaf that stands still as long as this lives.
struct Frozen<'a>(&'a sys::Leaf);

impl<'a> Frozen<'a> {
    fn new(leaf: &'a sys::Leaf) -> Self {
        let _ = leaf.set_frozen(true);
        Self(leaf)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = self.0.set_frozen(false);
    }
}

fn end_targets(record: &Record, live: &[SessionId], leaf: Option<&sys::Leaf>) -> io::Result<SweptSession> {
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
    let mut clean = EmptyScanStreak::default();
    let mut asked: Vec<ProcessIdentity> = Vec::new();
    let mut strikes = 0;
    while !clean.are_enough() {
        let killing = began.elapsed() >= KILL_AFTER;
        // What stands still cannot fork behind our back; it can be killed all the same.
        let _frozen = leaf.filter(|_| killing).map(Frozen::new);
        let seen = look(record, |marked| {
            // At sight, while it is there; which ones are below a kept one can only be told when all have been seen.
            let spares_nobody = record.keep.is_empty() && record.kept.is_empty();
            let is_target = || !targets(record, &[*marked], live).is_empty();
            if killing && spares_nobody && is_target() && signal(record, &marked.identity, SIGKILL).is_ok() {
                swept.ended.push(marked.identity);
            }
        })?;
        let left = targets(record, &seen.marked, live);
        for kept in seen.marked.iter().filter(|m| m.runs_kept).map(|m| m.identity) {
            if !swept.kept.contains(&kept) {
                swept.kept.push(kept);
            }
        }
        if left.is_empty() {
            clean.add(seen.raced);
            continue;
        }
        clean = EmptyScanStreak::default();
        swept.survivors.clear();
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
        // A look can take seconds on a machine that is full; no process is given up before it was sent SIGKILL.
        strikes += u32::from(killing);
        if began.elapsed() >= GIVE_UP_AFTER && strikes >= 3 {
            break;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    if clean.are_enough() {
        swept.survivors.clear();
    }
    swept.ended.sort_unstable();
    swept.ended.dedup();
    Ok(swept)
}

fn note(swept: &mut SweptSession, process: ProcessIdentity, result: io::Result<()>) {
    let reason = match result {
        Err(error) if gone(&error) => return,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => SurvivorReason::NotPermitted,
        _ if stat_of(process.pid).is_ok_and(|stat| stat.state == b'D') => SurvivorReason::Uninterruptible,
        _ => SurvivorReason::Unknown,
    };
    if !swept.ended.contains(&process) && reason != SurvivorReason::NotPermitted {
        swept.ended.push(process);
    }
    swept.survivors.push(Survivor { process, reason });
}

/// Holds the process first, then looks again at who it is and what it carries, and signals it only if it is alive after
/// that: then what was read by its number was about it. The cookie is the proof; no process outside the session has it.
fn signal(record: &Record, process: &ProcessIdentity, signal: i32) -> io::Result<()> {
    let Some(held) = process.hold()? else { return Err(io::ErrorKind::NotFound.into()) };
    match sys::cookie_of(process.pid)? {
        Some(cookie) if record.id.covers(cookie) && held.is_alive() => held.send(signal),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// What the guardians would have run, as they would have: with no input, no output, in `/`, and not for ever.
fn run_on_end(record: &Record) -> Option<ServerExit> {
    let (program, args) = record.on_end.split_first()?;
    let mut command = Command::new(program);
    command.args(args).current_dir("/").recording(Recording::Off);
    command.stdin(Stdio::Null).stdout(Stdio::Null).stderr(Stdio::Null);
    command.spawn().ok()?.wait_at_most(record.on_end_patience)
}
