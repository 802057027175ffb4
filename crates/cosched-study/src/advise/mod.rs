//! Which policy suits a program, from what was measured of it.

mod decide;
mod facts;
#[doc(hidden)]
pub mod samples;

pub use decide::{Advice, Grain, Kind, decide};
pub use facts::{Company, Facts, Waits};
