//! How long calls in flight may be waited for when the client has closed its end, and what is left of the ladder then.

use std::time::Duration;

use moored_containment::{Ladder, Rung};

/// How long calls in flight may keep a session alive whose writer has left, as in a shell's pipeline: only the answer is
/// waited for.
pub(in crate::session) const ONE_SHOT: Duration = Duration::from_secs(30);
/// What is left for SIGTERM when calls in flight have taken all the time that there is for an ending.
const TERMINATE_RESERVE: Duration = Duration::from_secs(1);

/// How long calls in flight may be waited for so that the tree is gone by the bound of its ladder.
pub(in crate::session) fn draining_time(ladder: &Ladder) -> Duration {
    let reserve = TERMINATE_RESERVE.min(ladder.kill_after);
    ladder.grace.saturating_add(ladder.kill_after).saturating_sub(reserve)
}

/// The ladder from this rung, cut so that its bound counts from the client's EOF: what calls in flight have taken of it is
/// taken from the grace first.
pub(in crate::session) fn within_bound(ladder: Ladder, from: Rung, since_eof: Option<Duration>) -> Ladder {
    let ladder = Ladder { from, ..ladder };
    let Some(since) = since_eof else { return ladder };
    let left = ladder.grace.saturating_add(ladder.kill_after).saturating_sub(since);
    let kill_after = ladder.kill_after.min(left);
    match from {
        Rung::Close if left > kill_after => ladder.grace(ladder.grace.min(left - kill_after)),
        Rung::Close | Rung::Terminate => Ladder { from: Rung::Terminate, ..ladder }.kill_after(kill_after),
        Rung::Kill => ladder,
    }
}
