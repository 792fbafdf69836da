//! Time since boot, suspended time included: the clock that start ticks count on. It does not step when the wall clock is set.

use std::time::Duration;

use super::identity::ProcessIdentity;
use crate::sys;

/// Time since the machine booted.
#[must_use]
pub fn since_boot() -> Duration {
    sys::since_boot()
}

/// The same in milliseconds.
#[must_use]
pub fn millis_since_boot() -> u64 {
    u64::try_from(since_boot().as_millis()).unwrap_or(u64::MAX)
}

/// The same in the kernel's clock ticks.
#[must_use]
pub fn ticks_since_boot() -> u64 {
    let (now, per_second) = (since_boot(), sys::ticks_per_second());
    now.as_secs() * per_second + u64::from(now.subsec_nanos()) * per_second / 1_000_000_000
}

/// Clock ticks as a duration.
#[must_use]
pub fn from_ticks(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / sys::ticks_per_second() as f64)
}

/// How long a process of this boot has lived.
#[must_use]
pub fn age_of(process: &ProcessIdentity) -> Duration {
    since_boot().saturating_sub(from_ticks(process.start_ticks))
}
