//! For the fuzzer: what is not public.

pub use crate::profile::fuzz::{profile, recording};
pub use crate::slurm::fuzz::{host_list, slurm_environment, squeue};
