//! How long to wait before a server that failed is started again, and when it has failed too often. Pure: how long a
//! server lived and how long ago it crashed are passed in.

use std::time::Duration;

/// A wait that doubles with each failure in a row, up to a bound.
///
/// ```
/// use std::time::Duration;
/// use moored_launch::BackOff;
///
/// let back_off = BackOff::default();
/// assert_eq!(back_off.delay(1), Duration::from_millis(250));
/// assert_eq!(back_off.delay(2), Duration::from_millis(500));
/// assert_eq!(back_off.delay(1000), Duration::from_secs(30), "never more than that");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// The wait after the first failure.
    pub first: Duration,
    /// The longest wait.
    pub most: Duration,
    /// A server that was up for so long has not failed in a row: counting begins anew.
    pub steady: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        Self::CLIENT
    }
}

impl BackOff {
    /// What `moored-client` does unless told otherwise.
    const CLIENT: Self = Self {
        first: Duration::from_millis(250),
        most: Duration::from_secs(30),
        steady: Duration::from_secs(60),
    };

    /// What `moored run --restart on-crash` does.
    pub const RUN: Self = Self { first: Duration::from_millis(500), ..Self::CLIENT };

    /// The wait after this many consecutive failures.
    ///
    /// ```
    /// use std::time::Duration;
    /// use moored_launch::BackOff;
    ///
    /// let steady = BackOff { first: Duration::from_secs(3), most: Duration::from_secs(3), ..BackOff::default() };
    /// assert_eq!((steady.delay(1), steady.delay(9)), (Duration::from_secs(3), Duration::from_secs(3)));
    /// ```
    #[must_use]
    pub fn delay(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.most)
    }

    /// How many failures in a row it is now, when the last life took so long.
    ///
    /// ```
    /// use std::time::Duration;
    /// use moored_launch::BackOff;
    ///
    /// let back_off = BackOff::default();
    /// assert_eq!(back_off.count(7, Duration::from_secs(1)), 8);
    /// assert_eq!(back_off.count(7, back_off.steady), 1, "a long life is forgiven");
    /// ```
    #[must_use]
    pub fn count(&self, failures: u32, uptime: Duration) -> u32 {
        if uptime >= self.steady { 1 } else { failures.saturating_add(1) }
    }

    /// What follows the consecutive crash of this number, under this limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use moored_launch::{AfterCrash, BackOff, CrashLimit};
    ///
    /// let after = |crashes| BackOff::RUN.after_crash(crashes, CrashLimit::default());
    /// assert_eq!(after(1), AfterCrash::StartAfter(Duration::from_millis(500)));
    /// assert_eq!(after(4), AfterCrash::StartAfter(Duration::from_secs(4)));
    /// assert_eq!(after(5), AfterCrash::CoolFor(Duration::from_secs(60)));
    /// ```
    #[must_use]
    pub fn after_crash(&self, crashes: u32, limit: CrashLimit) -> AfterCrash {
        if limit.is_reached(crashes) {
            AfterCrash::CoolFor(limit.cooling)
        } else {
            AfterCrash::StartAfter(self.delay(crashes))
        }
    }
}

/// How often a server may crash before it is not started for a while.
///
/// ```
/// use std::time::Duration;
/// use moored_launch::CrashLimit;
///
/// let limit = CrashLimit::default();
/// assert!(!limit.is_reached(4));
/// assert!(limit.is_reached(5));
/// assert!(limit.counts(Duration::from_secs(59)), "a crash of the last minute counts");
/// assert!(!limit.counts(Duration::from_secs(60)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashLimit {
    /// This many crashes are too many.
    pub crashes: u32,
    /// How long it is not started then; an older crash no longer counts.
    pub cooling: Duration,
}

impl Default for CrashLimit {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl CrashLimit {
    /// Five, and a minute.
    pub const DEFAULT: Self = Self { crashes: 5, cooling: Duration::from_secs(60) };

    /// Whether this many crashes are too many.
    #[must_use]
    pub fn is_reached(&self, crashes: u32) -> bool {
        crashes >= self.crashes
    }

    /// Whether a crash this long ago still counts.
    #[must_use]
    pub fn counts(&self, age: Duration) -> bool {
        age < self.cooling
    }
}

/// What follows a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCrash {
    /// It is started again after this wait.
    StartAfter(Duration),
    /// It has crashed too often, and is not started for this long.
    CoolFor(Duration),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_wait_never_shrinks_and_is_bounded(failures in 0_u32..10_000) {
            for back_off in [BackOff::default(), BackOff::RUN] {
                prop_assert!(back_off.delay(failures) <= back_off.delay(failures + 1));
                prop_assert!(back_off.delay(failures) >= back_off.first);
                prop_assert!(back_off.delay(failures) <= back_off.most);
            }
        }

        #[test]
        fn a_server_is_started_again_until_the_limit_and_never_beyond_it(
            crashes in 1_u32..10_000, most in 1_u32..100,
        ) {
            let limit = CrashLimit { crashes: most, ..CrashLimit::default() };
            let starts = matches!(BackOff::RUN.after_crash(crashes, limit), AfterCrash::StartAfter(_));
            prop_assert_eq!(starts, crashes < most);
        }
    }

    #[test]
    fn a_crash_loop_starts_few_processes() {
        let back_off = BackOff::default();
        let (mut failures, mut waited, mut starts) = (0, Duration::ZERO, 0);
        while waited < Duration::from_secs(3600) {
            failures = back_off.count(failures, Duration::from_millis(30));
            waited += back_off.delay(failures);
            starts += 1;
        }
        assert!(starts < 130, "{starts} starts in an hour");
    }

    #[test]
    fn a_long_life_is_forgiven() {
        let back_off = BackOff::default();
        assert_eq!(back_off.count(7, back_off.steady), 1);
        assert_eq!(back_off.count(7, Duration::from_secs(1)), 8);
    }
}
