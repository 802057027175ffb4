//! `cosched bench slowdown`: what does sharing cost, here, for this program?
//!
//! `plan` says which sets are run in which order, `runner` runs one of them, `results` makes numbers of the runs, and
//! `output`, `report` and `journal` write them. The slowdown is that of Strazdins and Uhlmann (2004, section 4.1):
//! s_j = t_j / t_1, t_j the elapsed time for all of j jobs.

mod args;
pub(crate) mod check;
mod compare;
mod help;
mod journal;
pub(crate) mod measured;
mod mix;
mod output;
pub(crate) mod phase;
mod plan;
pub(crate) mod policy;
mod progress;
pub(crate) mod record;
mod report;
mod results;
pub(crate) mod runner;
mod session;
mod slurm;
pub(crate) mod stats;

pub(crate) use args::Bench;
pub(crate) use output::{OTHERS_DECIDE, memory};

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
