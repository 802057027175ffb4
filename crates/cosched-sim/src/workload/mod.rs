//! Workloads: reading, fitting, generating and converting. Input is read from readers and output goes to writers; files
//! are opened by the command.

pub mod batsim;
mod classes;
mod decimal;
pub mod estimates;
pub mod fit;
pub mod generate;
mod jobs;
mod lines;
pub mod outages;
pub mod phase_jobs;
mod random;
pub mod scale;
pub mod select;
pub mod stats;
pub mod swf;
mod trace_job;
mod types;

pub use classes::SizeClass;
pub use jobs::{JOB_LIST_HEADER, JobListError, read_jobs, write_jobs};
pub(crate) use lines::excerpt;
pub use random::Random;
pub use trace_job::{TraceJob, from_specs, to_records, to_specs};
pub use types::{TypeMix, assign_types};
