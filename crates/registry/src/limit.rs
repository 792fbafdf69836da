//! The limit of instances: `--max-instances` counts the instances of the same server that are awake, and makes room for one more by
//! asking them. One that is busy refuses, and is never ended.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use moored_containment::RuntimeDir;

use crate::control::{Reply, Request, RunState, SleepReason, Status, StopBy};
use crate::private_files::{NOFOLLOW_NONBLOCK, private_file};
use crate::registered_run::RegisteredRun;
use crate::run_id::RunId;
use crate::run_info::{Origin, RunInfo};
use moored_launch::OverLimit;

/// How long an instance may take to answer `Status`.
const STATUS_TIMEOUT: Duration = Duration::from_millis(500);
/// How long one may take to end: both rungs of a ladder and its proof.
const END_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a start waits for others to become idle.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a wake waits for others to become idle.
const WAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait before idle instances are looked for again.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How often a turn that another process has is tried again.
const TURN_POLL: Duration = Duration::from_millis(5);

/// The ending of the file whose lock is the turn to count instances.
pub(crate) const ROOM: &str = "room";

/// There is no room.
#[derive(Debug, thiserror::Error)]
#[error(
    "{awake} instances of `{name}` are running, and {limit} are allowed{busy}\n\nhint: `moored ps` shows them; raise \
     --max-instances, or choose another --over-limit"
)]
pub struct NoRoom {
    name: String,
    awake: usize,
    limit: u32,
    busy: &'static str,
}

type Awake = (RegisteredRun, Option<Box<Status>>);

/// Who is awake besides us, the longest silent first.
fn awake(folder: &RuntimeDir, own: &RunInfo) -> Vec<Awake> {
    let others = RegisteredRun::all(folder).unwrap_or_default().into_iter();
    // A server of a `moored-client` set is counted by the set's own limit, and only its host may end it.
    let others = others.filter(|o| o.info.origin != Origin::Client);
    let others = others.filter(|o| o.info.server_key == own.server_key && o.info.run != own.run);
    let mut awake: Vec<Awake> = others
        .map(|found| {
            let status = match found.ask(&Request::Status, STATUS_TIMEOUT) {
                Ok(Reply::Status(status)) => Some(status),
                // It is starting, or has no time: it counts, and cannot be asked.
                _ => None,
            };
            (found, status)
        })
        .filter(|(_, status)| {
            let is_without_server = |s: &Status| {
                matches!(s.state, RunState::Hibernating | RunState::BackingOff | RunState::Ended)
            };
            !status.as_deref().is_some_and(is_without_server)
        })
        .collect();
    awake.sort_by_key(|(_, status)| std::cmp::Reverse(status.as_ref().map_or(0, |status| status.silent_ms)));
    awake
}

/// Those who count do so one after the other: two who count at once would both find room for one.
struct Turn {
    path: PathBuf,
    _lock: File,
}

/// What came of trying to take the turn.
enum TurnAttempt {
    Ours(#[expect(dead_code, reason = "held until it is dropped")] Turn),
    /// A folder that cannot be written to: there is no limit to keep.
    NoTurns,
    /// Another session has it.
    NotYet,
}

impl Turn {
    fn try_take(folder: &RuntimeDir, own: &RunInfo) -> TurnAttempt {
        let path = folder.path().join(format!("{}.{ROOM}", own.server_key));
        let mut options = private_file();
        options.write(true).create(true).truncate(false).custom_flags(NOFOLLOW_NONBLOCK);
        let Ok(file) = options.open(&path) else { return TurnAttempt::NoTurns };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return TurnAttempt::NotYet,
            Err(TryLockError::Error(_)) => return TurnAttempt::NoTurns,
        }
        // The session that had it before us has removed it: then the next ones wait for another file.
        let is_there = fs::metadata(&path)
            .is_ok_and(|there| file.metadata().is_ok_and(|ours| ours.ino() == there.ino()));
        if is_there { TurnAttempt::Ours(Self { path, _lock: file }) } else { TurnAttempt::NotYet }
    }

    /// Blocks until it is ours, or there are none, or until the deadline: the session that has it may have been stopped.
    fn take(
        folder: &RuntimeDir,
        own: &RunInfo,
        until: Instant,
        is_wanted: &impl Fn() -> bool,
    ) -> Option<TurnAttempt> {
        loop {
            match Self::try_take(folder, own) {
                TurnAttempt::NotYet if Instant::now() < until && is_wanted() => std::thread::sleep(TURN_POLL),
                TurnAttempt::NotYet => return None,
                attempt => return Some(attempt),
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // While it is still locked.
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes room for a first start, and has it taken by `take`, after which we count. Blocks until there is some, or
/// the client has left.
pub fn make_room<T>(
    folder: &RuntimeDir,
    own: &RunInfo,
    limit: u32,
    how: OverLimit,
    is_wanted: impl Fn() -> bool,
    take: impl FnOnce() -> T,
) -> Result<T, NoRoom> {
    let (until, mut stopped) = (Instant::now() + QUEUE_TIMEOUT, Vec::new());
    loop {
        let turn = Turn::take(folder, own, until, &is_wanted);
        let mut awake = awake(folder, own);
        // One that was stopped for us is there until it has told its end.
        awake.retain(|(found, _)| !stopped.contains(&found.info.run));
        if turn.is_some() && (awake.len() as u64) < u64::from(limit) {
            return Ok(take());
        }
        let no_room = |busy| NoRoom { name: own.name.clone(), awake: awake.len(), limit, busy };
        if !is_wanted() {
            return Err(no_room("; its client has left meanwhile"));
        }
        if turn.is_none() {
            return Err(no_room("; another session that makes room takes too long"));
        }
        match how {
            OverLimit::Refuse => return Err(no_room("")),
            OverLimit::Hibernate if ask_to_sleep(&awake, END_TIMEOUT) => {}
            OverLimit::StopOldest if stop_oldest(&awake, &mut stopped) => {}
            OverLimit::Hibernate | OverLimit::StopOldest => {
                if Instant::now() > until {
                    return Err(no_room("; all of them are busy"));
                }
                drop(turn);
                std::thread::sleep(RETRY_PAUSE);
            }
        }
    }
}

/// Makes room for a server that is to wake, and wakes it by `wake`, after which it counts. Its client waits for an answer,
/// so it is woken all the same if there is no room for long, and room is made when another one has become idle.
pub fn make_room_for_wake(
    folder: &RuntimeDir,
    own: &RunInfo,
    limit: u32,
    is_wanted: impl Fn() -> bool,
    wake: impl FnOnce(),
) {
    let (began, mut wake) = (Instant::now(), Some(wake));
    let mut wake = move || wake.take().into_iter().for_each(|wake| wake());
    while is_wanted() && began.elapsed() < QUEUE_TIMEOUT {
        // The client waits for the wake: the server is woken all the same if we cannot have the turn in time.
        let turn = Turn::take(folder, own, began + WAKE_TIMEOUT, &is_wanted);
        let awake = awake(folder, own);
        let has_room = turn.is_some() && (awake.len() as u64) < u64::from(limit);
        if has_room || began.elapsed() >= WAKE_TIMEOUT {
            wake();
        }
        if has_room {
            return;
        }
        if turn.is_none() || !ask_to_sleep(&awake, WAKE_TIMEOUT) {
            drop(turn);
            std::thread::sleep(RETRY_PAUSE);
        }
    }
    if is_wanted() {
        wake();
    }
}

fn ask_to_sleep(awake: &[Awake], timeout: Duration) -> bool {
    let request = Request::Hibernate { why: SleepReason::OverLimit };
    awake
        .iter()
        .filter(|(_, status)| status.is_some())
        .any(|(found, _)| matches!(found.ask(&request, timeout), Ok(Reply::Hibernating { .. })))
}

fn stop_oldest(awake: &[Awake], stopped: &mut Vec<RunId>) -> bool {
    let mut idle: Vec<&RegisteredRun> = awake
        .iter()
        .filter(|(_, status)| status.as_ref().is_some_and(|status| status.in_flight == 0))
        .map(|(found, _)| found)
        .collect();
    idle.sort_by_key(|found| found.info.order());
    let request = Request::Stop { by: StopBy::OverLimit };
    let gone =
        idle.iter().find(|found| matches!(found.ask(&request, END_TIMEOUT), Ok(Reply::Stopped { .. })));
    stopped.extend(gone.map(|found| found.info.run));
    gone.is_some()
}
