//! `cosched model`: computes instead of running or simulating.

mod calibrate;
mod errors;
pub(crate) mod help;
pub(crate) mod machines;
mod predict;
pub(crate) mod source;
mod table3;

use crate::context::Context;
use crate::out::Failure;
use clap::{Args, Subcommand};

/// An input is not valid: a machine file, a measurement.
const EXIT_INVALID: u8 = crate::out::EXIT_REFUSED;

#[derive(Args, Debug)]
#[command(after_help = help::MODEL, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Model {
    #[command(subcommand)]
    pub(crate) command: ModelCommand,
}

/// The subcommands of `cosched model`.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Predict time and slowdown of jobs that share CPUs
    Predict(predict::Predict),
    /// Attribute the model's error to its two assumptions, from a measurement
    Errors(errors::ErrorsOf),
    /// Measure this machine's constants and write a machine file
    Calibrate(calibrate::Calibrate),
    /// List the machines shipped with cosched
    Machines(machines::Machines),
    /// Compare the model with Table 3 of the paper
    Table3,
}

/// Runs a subcommand; returns the exit code.
pub(crate) fn model(context: &Context, options: &Model) -> Result<u8, Failure> {
    match &options.command {
        ModelCommand::Predict(options) => predict::predict(context, options),
        ModelCommand::Errors(options) => errors::errors(context, options),
        ModelCommand::Calibrate(options) => calibrate::calibrate(context, options),
        ModelCommand::Machines(options) => machines::machines(context, options),
        ModelCommand::Table3 => table3::table3(context),
    }
}
