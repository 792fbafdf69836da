//! `moored demo`: one misbehaving server, started by a client that is then SIGKILLed; once the plain way and once
//! through `moored run`. The processes that are still there are counted in /proc.
//!
//! ```text
//! demo ─▶ (containment) ─▶ stage ─▶ client ─▶ [moored run ─▶ guardians ─▶] server ─▶ child
//!                                                                            └─▶ daemon (setsid, double fork)
//! ```
//!
//! All of it is played by this program, and all of it is contained by the demo itself: whatever happens to the demo, ^C
//! and SIGKILL included, nothing stays. `parts` are the players, `stage` is what the demo holds of them.

mod parts;
mod stage;

pub(super) use parts::play;

use std::time::{Duration, Instant};

use stage::{Member, Stage, Way};

use crate::exit::{Exit, Failure};
use crate::render::{self, BAD, DIM, GOOD, Node, STRONG, paint};

/// How long the demo waits for the processes to end: longer than moored may take, which is 4 s here.
const COUNT_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two looks.
const REST: Duration = Duration::from_millis(10);

/// What was seen.
struct Seen {
    left: Vec<Member>,
    after: Duration,
}

pub(super) fn run() -> Result<Exit, Failure> {
    render::out(&paint(
        STRONG,
        "A server that ignores the end of its input and SIGTERM, with a child and a daemon.\n",
    ))?;
    render::out("Its client is killed with SIGKILL, as a crash would end it.\n")?;
    let plain = act(1, Way::Plain, "The plain way: client → server")?;
    let moored = act(2, Way::Moored, "Through moored: client → moored run → server")?;
    render::out(&format!(
        "\n{}\n  plain    {}\n  moored   {}\n",
        paint(STRONG, "Left behind by the dead client"),
        verdict(&plain),
        verdict(&moored)
    ))?;
    if !plain.left.is_empty() {
        render::out(&paint(DIM, "  (the demo has ended what the plain way left)\n"))?;
    }
    Ok(if moored.left.is_empty() { Exit::Ok } else { Exit::Failure })
}

/// One half of the show.
fn act(number: u32, way: Way, title: &str) -> Result<Seen, Failure> {
    render::out(&format!("\n{}\n", paint(STRONG, &format!("{number}. {title}"))))?;
    let mut stage = Stage::start(way)?;
    let before = stage.look()?;
    render::out(&format!("  before: {} processes\n{}", before.len(), drawn(&before)))?;
    let killed = stage.kill_client()?;
    render::out("  SIGKILL to the client …\n")?;
    let seen = watch(&stage, killed)?;
    render::out(&format!("  after {}: {}\n{}", seconds(seen.after), count(&seen.left), drawn(&seen.left)))?;
    let report = stage.end()?;
    if !report.verified {
        return Err(Failure::to("end what the demo started; see moored ps and ps -ef"));
    }
    Ok(seen)
}

/// Looks until nothing is left, or long enough.
fn watch(stage: &Stage, killed: Instant) -> Result<Seen, Failure> {
    loop {
        let left = stage.look()?;
        let after = killed.elapsed();
        if left.is_empty() || after >= COUNT_TIMEOUT {
            return Ok(Seen { left, after });
        }
        std::thread::sleep(REST);
    }
}

fn verdict(seen: &Seen) -> String {
    let after = seconds(seen.after);
    if seen.left.is_empty() {
        paint(GOOD, &format!("0 processes, after {after}"))
    } else {
        paint(BAD, &format!("{} processes, still there after {after}", seen.left.len()))
    }
}

fn count(left: &[Member]) -> String {
    match left.len() {
        0 => paint(GOOD, "all gone"),
        1 => paint(BAD, "1 process still there"),
        more => paint(BAD, &format!("{more} processes still there")),
    }
}

fn drawn(members: &[Member]) -> String {
    let node = |member: &Member| Node {
        pid: member.identity.pid,
        parent: member.parent,
        text: format!("{} ({})", member.label, member.identity.pid),
    };
    render::tree(&members.iter().map(node).collect::<Vec<_>>())
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
