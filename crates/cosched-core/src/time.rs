//! Time in the core.

use core::ops::{Add, Sub};

/// Nanoseconds since an epoch that the host chooses: the Unix epoch live, the start of the run in the simulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Add<u64> for Time {
    type Output = Time;
    /// `ns` nanoseconds later.
    fn add(self, ns: u64) -> Time {
        Time(self.0.saturating_add(ns))
    }
}

impl Sub<Time> for Time {
    type Output = u64;
    /// The nanoseconds from `earlier` to `self`; 0 when the clock went back.
    fn sub(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
