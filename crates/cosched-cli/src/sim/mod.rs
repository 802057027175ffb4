//! `cosched sim`: simulate instead of run.

mod cells;
mod compare;
mod files;
pub(crate) mod help;
mod input;
mod json;
mod model;
mod output;
mod parquet;
mod progress;
mod report;
mod run;
mod sweep;
mod table;
mod workloads;

use crate::args::Cli;
use crate::out::Failure;
use clap::Subcommand;

/// The subcommands of `cosched sim`.
#[derive(Debug, Subcommand)]
pub(crate) enum Sim {
    /// Simulate one strategy on a list of jobs
    Run(Box<run::Run>),
    /// Compare strategies on the same jobs, with intervals
    Compare(Box<compare::Compare>),
    /// Simulate every combination of what varies; goes on when it was killed
    Sweep(Box<sweep::Sweep>),
    /// Show what a sweep has so far
    Report(Box<report::Report>),
}

/// Runs a subcommand; returns the exit code.
pub(crate) fn dispatch(cli: &Cli, command: &Sim) -> Result<u8, Failure> {
    match command {
        Sim::Run(options) => run::run(cli, options),
        Sim::Compare(options) => compare::compare(cli, options),
        Sim::Sweep(options) => sweep::sweep(cli, options),
        Sim::Report(options) => report::report(cli, options),
    }
}
