//! The fuzz targets for untrusted input of the command; `fuzz/src/runner.rs` says how they run.

#[path = "../../../fuzz/src/runner.rs"]
mod runner;

use cosched_cli::fuzz;

runner::targets! { fuzz: host_list squeue slurm_environment profile recording zmtp }
