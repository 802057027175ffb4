//! `cosched sim`: simulate schedulers on workloads.

mod backfill;

use crate::args::Cli;
use crate::commands::help;
use crate::out::Failure;
use clap::{Args, Subcommand};

#[derive(Args, Debug)]
#[command(after_help = help::SIM, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Sim {
    #[command(subcommand)]
    pub(crate) command: SimCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Schedule a trace as a batch system does: first come first served, or with backfilling
    Backfill(backfill::Backfill),
}

/// Runs the subcommand; returns the exit code.
pub(crate) fn sim(cli: &Cli, options: &Sim) -> Result<u8, Failure> {
    match &options.command {
        SimCommand::Backfill(options) => backfill::backfill(cli, options),
    }
}
