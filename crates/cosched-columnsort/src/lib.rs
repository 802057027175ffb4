//! Leighton's columnsort out of core: files larger than memory, sorted by pipelines of stages.
//!
//! - [`shape`]: the matrix and its conditions; [`plan`] chooses one for the available memory;
//! - [`mod@format`]: records and keys; [`sort`] sorts a column;
//! - [`layout`]: where each record goes, as pure functions; [`gather`] and [`merge`] move it there;
//! - [`run`] builds the passes as pipelines and runs them, in this process or together with [`peers`];
//! - [`generate`] generates records, [`check`] checks whether they are in order and still the same.

pub mod check;
pub mod format;
pub mod gather;
pub mod generate;
pub mod layout;
pub mod merge;
pub mod mpi;
mod passes;
pub mod peers;
pub mod plan;
pub mod run;
pub mod shape;
pub mod sort;
