//! Workloads: what is read, fitted, generated and converted. Text comes in as readers and goes out to writers; files
//! are opened by the command.

mod classes;
mod decimal;
pub mod fit;
mod jobs;
mod lines;
mod random;
pub mod stats;
pub mod swf;

pub use classes::SizeClass;
pub use jobs::{JOB_LIST_HEADER, JobListError, read_jobs, write_jobs};
pub use random::Random;
