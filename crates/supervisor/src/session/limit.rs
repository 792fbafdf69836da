//! Keeping few: `--max-instances` counts the instances of the same server that are awake, and makes room for one more by
//! asking them. One that is busy refuses, and is never ended.

use std::time::{Duration, Instant};

use moored_containment::RuntimeDir;

use crate::berth::{self, Facts, Found};
use crate::control::{Reply, Request, RunState, Status, StopBy};
use crate::event::SleepReason;
use crate::spec::OverLimit;

/// How long an instance may take to say how it is.
const ANSWER: Duration = Duration::from_millis(500);
/// How long one may take to end: both rungs of a ladder and its proof.
const END: Duration = Duration::from_secs(15);
/// How long a start waits for others to become idle.
const QUEUE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(250);

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

/// Who is awake besides us, the longest silent first.
fn awake(folder: &RuntimeDir, own: &Facts, who: Who) -> Vec<(Found, Option<Box<Status>>)> {
    let others = berth::all(folder).unwrap_or_default().into_iter().filter(|found| {
        found.facts.server_key == own.server_key
            && match who {
                Who::Older => found.facts.run < own.run,
                Who::Others => found.facts.run != own.run,
            }
    });
    let mut awake: Vec<_> = others
        .map(|found| {
            let status = match found.ask(&Request::Status, ANSWER) {
                Ok(Reply::Status(status)) => Some(status),
                // It is starting, or has no time: it counts, and cannot be asked.
                _ => None,
            };
            (found, status)
        })
        .filter(|(_, status)| {
            !status.as_ref().is_some_and(|s| matches!(s.state, RunState::Hibernating | RunState::Ended))
        })
        .collect();
    awake.sort_by_key(|(_, status)| std::cmp::Reverse(status.as_ref().map_or(0, |status| status.silent_ms)));
    awake
}

/// Whom a start counts: only those before it, so that of many at once the first ones go ahead. A wake counts all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Older,
    Others,
}

/// Makes room for a first start. Blocks until there is some.
pub(super) fn make_room(folder: &RuntimeDir, own: &Facts, limit: u32, how: OverLimit) -> Result<(), NoRoom> {
    let began = Instant::now();
    loop {
        let awake = awake(folder, own, Who::Older);
        if (awake.len() as u64) < u64::from(limit) {
            return Ok(());
        }
        let no_room = |busy| NoRoom { name: own.name.clone(), awake: awake.len(), limit, busy };
        match how {
            OverLimit::Refuse => return Err(no_room("")),
            OverLimit::Hibernate if ask_to_sleep(&awake) => {}
            OverLimit::StopOldest if stop_oldest(&awake) => {}
            OverLimit::Hibernate | OverLimit::StopOldest => {
                if began.elapsed() > QUEUE {
                    return Err(no_room("; all of them are busy"));
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// Makes room for a server that wakes: its client waits, so it is not held up if there is none.
pub(super) fn make_room_for_wake(folder: &RuntimeDir, own: &Facts, limit: u32) {
    let awake = awake(folder, own, Who::Others);
    if (awake.len() as u64) >= u64::from(limit) {
        ask_to_sleep(&awake);
    }
}

fn ask_to_sleep(awake: &[(Found, Option<Box<Status>>)]) -> bool {
    let request = Request::Hibernate { why: SleepReason::OverLimit };
    awake
        .iter()
        .filter(|(_, status)| status.is_some())
        .any(|(found, _)| matches!(found.ask(&request, END), Ok(Reply::Hibernating { .. })))
}

fn stop_oldest(awake: &[(Found, Option<Box<Status>>)]) -> bool {
    let mut idle: Vec<&Found> = awake
        .iter()
        .filter(|(_, status)| status.as_ref().is_some_and(|status| status.in_flight == 0))
        .map(|(found, _)| found)
        .collect();
    idle.sort_by_key(|found| found.facts.run);
    let request = Request::Stop { by: StopBy::OverLimit };
    idle.iter().any(|found| matches!(found.ask(&request, END), Ok(Reply::Stopped { .. })))
}
