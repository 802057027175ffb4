//! `cosched sim`: simulate instead of run.

mod files;
pub(crate) mod help;
mod input;
mod json;
mod model;
mod output;
mod parquet;
mod progress;
mod run;
mod table;

use crate::args::Cli;
use crate::out::Failure;
use clap::Subcommand;

/// The subcommands of `cosched sim`.
#[derive(Debug, Subcommand)]
pub(crate) enum Sim {
    /// Simulate one strategy on a list of jobs
    Run(Box<run::Run>),
}

/// Runs a subcommand; returns the exit code.
pub(crate) fn dispatch(cli: &Cli, command: &Sim) -> Result<u8, Failure> {
    match command {
        Sim::Run(options) => run::run(cli, options),
    }
}
