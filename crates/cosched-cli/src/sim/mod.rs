//! `cosched sim`: simulate instead of run.

mod backfill;
pub(crate) mod help;
mod input;
mod json;
mod model;
mod progress;
mod run;

use crate::args::Cli;
use crate::out::Failure;
use clap::{Args, Subcommand};

#[derive(Args, Debug)]
#[command(after_help = help::SIM, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Sim {
    #[command(subcommand)]
    pub(crate) command: SimCommand,
}

/// The subcommands of `cosched sim`.
#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Simulate one strategy on a list of jobs
    Run(Box<run::Run>),
    /// Schedule a trace as a batch system does: first come first served, or with backfilling
    Backfill(backfill::Backfill),
}

/// Runs a subcommand; returns the exit code.
pub(crate) fn sim(cli: &Cli, options: &Sim) -> Result<u8, Failure> {
    match &options.command {
        SimCommand::Run(options) => run::run(cli, options),
        SimCommand::Backfill(options) => backfill::backfill(cli, options),
    }
}
