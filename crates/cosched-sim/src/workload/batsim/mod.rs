//! Batsim's workload JSON: its 4.x and 5.x profiles are read, 5.x is written.

mod amounts;
mod described;
mod profile;
mod programs;
mod read;
mod written;

pub use described::{DescribedJob, DescribedWorkload, WORKLOAD, read_batsim_described};
pub use programs::{BatsimJob, BatsimPrograms, of_types, read_batsim_programs};
pub use read::{BatsimError, BatsimWorkload, read_batsim};
pub use written::{write_batsim, write_batsim_programs};
