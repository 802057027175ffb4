//! For the fuzzer: what is not public.

pub use crate::slurm::fuzz::{host_list, slurm_environment, squeue};

use crate::profile::summary;
use cosched_study::profile::{Profile, fuzz};

/// A profile's text.
pub fn profile(data: &[u8]) {
    fuzz::profile(data, show);
}

/// What a rank wrote.
pub fn recording(data: &[u8]) {
    fuzz::recording(data, show);
}

fn show(profile: &Profile) {
    summary(profile, Some(80));
}
