//! How long history is kept. Pure: what has the time and the size at hand asks here.

use std::time::Duration;

use jiff::Timestamp;

/// How long history is kept, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// What ended longer ago goes.
    pub age: Duration,
    /// The oldest go until the rest takes no more bytes than this.
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { age: Duration::from_hours(30 * 24), bytes: 64 << 20 }
    }
}

/// Between two looks at what is too old.
const REST: Duration = Duration::from_hours(24);

impl Retention {
    /// What last happened before this is too old.
    pub(super) fn cutoff(&self, now: Timestamp) -> Timestamp {
        now.checked_sub(self.age).unwrap_or(Timestamp::MIN)
    }

    /// Whether it is time to look again: a day from the last time, before or after. A clock that was set back does not
    /// put it off for ever, and a process that read the clock a moment before another one did is not a day late.
    pub(super) fn is_due(last: Option<Timestamp>, now: Timestamp) -> bool {
        last.is_none_or(|last| now.duration_since(last).unsigned_abs() >= REST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_once_a_day() {
        let at = |hours: i64| Timestamp::from_second(hours * 3600).expect("a time");
        assert!(Retention::is_due(None, at(0)));
        assert!(!Retention::is_due(Some(at(0)), at(23)));
        assert!(Retention::is_due(Some(at(0)), at(24)));
        assert!(!Retention::is_due(Some(at(1)), at(0)), "two who looked at the clock in another order");
        assert!(Retention::is_due(Some(at(99)), at(0)), "the clock was set back");
    }

    #[test]
    fn an_age_beyond_all_time_keeps_everything() {
        let all = Retention { age: Duration::MAX, bytes: u64::MAX };
        assert_eq!(all.cutoff(Timestamp::UNIX_EPOCH), Timestamp::MIN);
    }
}
