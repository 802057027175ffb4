//! What sharing costs a program: which sets of jobs are run, and what their times say.
//!
//! `plan` says which sets are run in which order, `results` makes numbers of the runs, and `record` is the document of both. The
//! slowdown is that of Strazdins and Uhlmann (2004, section 4.1): s_j = t_j / t_1, t_j the elapsed time for all of j jobs.

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
