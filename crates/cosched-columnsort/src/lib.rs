//! Leighton's columnsort out of core: files larger than memory, sorted by pipelines of stages.
//!
//! - [`shape`]: the matrix and what it has to be like; [`plan`] chooses one for the memory that there is;
//! - [`mod@format`]: records and keys; [`sort`] puts a column in order;
//! - [`layout`]: where each record goes, as pure functions; [`gather`] and [`merge`] take it there;
//! - [`run`] makes the passes pipelines and runs them, on this process or with [`peers`];
//! - [`generate`] makes records, [`check`] looks whether they are in order and still the same.

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
