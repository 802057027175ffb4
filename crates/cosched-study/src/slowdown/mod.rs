//! The cost of sharing for a program: which sets of jobs to run, and how to evaluate their times.
//!
//! `plan` decides which sets are run and in which order, `results` computes numbers from the runs, and `record` is the document
//! with both. The slowdown is that of Strazdins and Uhlmann (2004, section 4.1): s_j = t_j / t_1, where t_j is the elapsed time
//! of all j jobs.

mod measured;
pub mod mix;
mod phase;
pub mod plan;
pub mod record;
pub mod results;
#[doc(hidden)]
pub mod samples;
pub mod stats;

pub use measured::{Measured, Outcome, Single, positive};
pub use phase::Phase;
pub use record::Baseline;
