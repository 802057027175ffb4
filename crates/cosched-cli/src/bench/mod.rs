//! `cosched bench slowdown`: what does sharing CPUs cost this program on this machine?
//!
//! `cosched_study::slowdown` decides which sets are run in which order and computes the numbers from the runs, `runner` runs a
//! set, and `output`, `report` and `journal` write the results.

mod args;
pub(crate) mod check;
mod compare;
mod help;
mod journal;
pub(crate) mod measured;
mod mix;
mod output;
pub(crate) mod policy;
mod progress;
mod report;
pub(crate) mod runner;
mod session;
mod slurm;

pub(crate) use args::Bench;
pub(crate) use output::memory;

use crate::context::Context;
use crate::out::Failure;
use args::BenchCommand;

/// Runs a subcommand; returns the exit code.
pub(crate) fn bench(context: &Context, options: &Bench) -> Result<u8, Failure> {
    match &options.command {
        BenchCommand::Slowdown(options) => session::slowdown(context, options),
        BenchCommand::Compare(options) => compare::compare(context, options),
    }
}
