//! Time since boot, suspended time included (`CLOCK_BOOTTIME`): the clock that start ticks count on, and that cannot be set.

use std::time::Duration;

use moored_containment::ProcessIdentity;
use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

/// Time since the machine booted.
pub fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// The same in milliseconds.
pub fn millis_since_boot() -> u64 {
    u64::try_from(since_boot().as_millis()).unwrap_or(u64::MAX)
}

/// The same in the kernel's ticks.
pub fn ticks_since_boot() -> u64 {
    let now = since_boot();
    now.as_secs() * clock_ticks_per_second()
        + u64::from(now.subsec_nanos()) * clock_ticks_per_second() / 1_000_000_000
}

/// This many clock ticks as a duration.
pub fn from_ticks(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64)
}

/// How long a process of this boot has lived.
pub fn age_of(process: &ProcessIdentity) -> Duration {
    since_boot().saturating_sub(from_ticks(process.start_ticks))
}
