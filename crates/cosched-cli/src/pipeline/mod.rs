//! `cosched pipeline`: shows running pipelines, and reports of runs.

mod help;
mod list;
mod page;
mod report;
mod show;

use crate::context::Context;
use crate::out::{EXIT_NO_JOB, Failure};
use clap::{Args, Subcommand};

/// There is no such pipeline.
const EXIT_NO_PIPELINE: u8 = EXIT_NO_JOB;
/// The input is not a report.
const EXIT_INVALID: u8 = crate::out::EXIT_REFUSED;

#[derive(Args, Debug)]
#[command(after_help = help::PIPELINE, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Pipeline {
    #[command(subcommand)]
    pub(crate) command: PipelineCommand,
}

/// The subcommands of `cosched pipeline`.
#[derive(Debug, Subcommand)]
pub(crate) enum PipelineCommand {
    /// List the running pipelines
    #[command(visible_alias = "ls", after_help = help::LIST)]
    List,
    /// Show the limiting resource of running pipelines, and how their stages spend time
    Show(show::Show),
    /// Print a run's report, or write it as an HTML page or a Chrome trace
    Report(report::ReportOf),
}

/// Runs a subcommand; returns the exit code.
pub(crate) fn pipeline(context: &Context, options: &Pipeline) -> Result<u8, Failure> {
    match &options.command {
        PipelineCommand::List => list::list(context),
        PipelineCommand::Show(options) => show::show(context, options),
        PipelineCommand::Report(options) => report::report(context, options),
    }
}
