//! `cosched sim`: simulate instead of run.

mod backfill;
mod batsim;
mod cells;
mod compare;
mod costs;
pub(crate) mod decide;
mod failures;
mod files;
pub(crate) mod help;
mod json;
mod machine;
pub(crate) mod memory;
mod model;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
mod phases;
mod pipeline;
mod platform;
mod program;
mod progress;
mod replications;
mod report;
mod run;
mod sharing;
mod sweep;
mod table;
mod timed;
mod whatif;
mod workloads;

use crate::context::Context;
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
    /// Simulate concurrent copies of a short program, and their slowdown
    Program(Box<program::RunProgram>),
    /// Simulate a pipeline of stages under rules for priorities
    Pipeline(pipeline::RunPipeline),
    /// Compare strategies on the same jobs, with confidence intervals
    Compare(Box<compare::Compare>),
    /// Simulate every combination of parameters; resumes after an interruption
    Sweep(Box<sweep::Sweep>),
    /// Show the results of a sweep so far
    Report(Box<report::Report>),
    /// Schedule a trace like a batch system: first come, first served, or backfilling
    Backfill(Box<backfill::Backfill>),
    /// Simulate jobs whose phases alternate between two pools of nodes, and what sharing these saves
    Phases(phases::Phases),
    /// Simulate a workload of Batsim with its computation and messages
    Batsim(Box<batsim::Batsim>),
    /// Let a scheduler outside decide, by Batsim's protocol over ZeroMQ
    Decide(decide::Decide),
    /// Predict the jobs of the running daemon, under its policy and under others
    Whatif(Box<whatif::WhatIf>),
}

/// Runs a subcommand; returns the exit code.
pub(crate) fn sim(context: &Context, options: &Sim) -> Result<u8, Failure> {
    match &options.command {
        SimCommand::Run(options) => run::run(context, options),
        SimCommand::Program(options) => program::run(context, options),
        SimCommand::Pipeline(options) => pipeline::run(context, options),
        SimCommand::Compare(options) => compare::compare(context, options),
        SimCommand::Sweep(options) => sweep::sweep(context, options),
        SimCommand::Report(options) => report::report(context, options),
        SimCommand::Backfill(options) => backfill::backfill(context, options),
        SimCommand::Phases(options) => phases::run(context, options),
        SimCommand::Batsim(options) => batsim::run(context, options),
        SimCommand::Decide(options) => decide::run(context, options),
        SimCommand::Whatif(options) => whatif::whatif(context, options),
    }
}
