//! The wall clock, in the units of core and of the wire.

use cosched_core::Time;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Now, in nanoseconds since the Unix epoch.
pub(crate) fn now() -> Time {
    Time(since_epoch().as_nanos() as u64)
}

/// Now, in milliseconds since the Unix epoch.
pub(crate) fn unix_ms() -> u64 {
    since_epoch().as_millis() as u64
}
