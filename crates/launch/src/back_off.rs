//! Pure: how long to wait before a server that failed is started again.

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
        Self {
            first: Duration::from_millis(250),
            most: Duration::from_secs(30),
            steady: Duration::from_secs(60),
        }
    }
}

impl BackOff {
    /// The wait after so many failures in a row.
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
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_wait_never_shrinks_and_is_bounded(failures in 0_u32..10_000) {
            let back_off = BackOff::default();
            prop_assert!(back_off.delay(failures) <= back_off.delay(failures + 1));
            prop_assert!(back_off.delay(failures) >= back_off.first);
            prop_assert!(back_off.delay(failures) <= back_off.most);
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
