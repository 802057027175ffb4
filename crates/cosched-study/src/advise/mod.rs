//! Which policy suits a program, according to its measurements.

mod decide;
mod facts;
#[doc(hidden)]
pub mod samples;

pub use decide::{Advice, Grain, Kind, decide};
pub use facts::{Company, Facts, Waits};
