//! The policies, one file each.

pub(crate) mod auto;
pub(crate) mod boost;
pub(crate) mod cap;
pub(crate) mod columns;
pub(crate) mod dynamic;
pub mod fill;
pub(crate) mod gang;
pub(crate) mod held;
pub(crate) mod local;
pub(crate) mod neighbours;
pub(crate) mod place;
pub(crate) mod share;
pub mod subgangs;

use core::ops::RangeInclusive;

/// The lengths that a slot may have, in nanoseconds: 10 ms to 30 s. Below that, the switch itself costs too much; the LLNL
/// gang scheduler used 30 s ("Gang Scheduler Design").
pub const SLOT_LENGTH_NS: RangeInclusive<u64> = 10_000_000..=30_000_000_000;
