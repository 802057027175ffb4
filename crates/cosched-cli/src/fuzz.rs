//! Functions for the fuzzer that are not public otherwise.

pub use crate::slurm::fuzz::{host_list, slurm_environment, squeue};

use crate::profile::summary;
use cosched_study::profile::{Profile, fuzz};

/// Parses a profile.
pub fn profile(data: &[u8]) {
    fuzz::profile(data, show);
}

/// Parses a rank's recording.
pub fn recording(data: &[u8]) {
    fuzz::recording(data, show);
}

fn show(profile: &Profile) {
    summary(profile, Some(80));
}
