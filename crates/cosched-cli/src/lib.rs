//! cosched, the command: runs jobs side by side, and shows and controls them.

mod adopt;
mod advise;
mod args;
mod bench;
mod commands;
mod complete;
mod context;
mod demo;
mod format;
#[doc(hidden)]
pub mod fuzz;
mod input;
mod jobs;
mod jobset;
mod join;
mod model;
mod moment;
mod out;
mod parsers;
mod picture;
mod pipeline;
mod profile;
mod programs;
mod progress;
mod record;
mod run;
mod setup;
mod shim;
mod sim;
mod slurm;
mod state;
mod table;
mod target;
mod timely;
mod top;
mod trace;
mod web;
mod workload;

use clap::FromArgMatches;
use out::Failure;
use std::ffi::OsStr;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    if complete::answered() {
        return ExitCode::SUCCESS;
    }
    let mut words = std::env::args_os().skip(1);
    // Internal stages come before anything else: each `cosched run` passes through one.
    let result = match words.next().as_deref().and_then(OsStr::to_str) {
        Some(run::GATE) => run::gate(words),
        Some(run::AGAIN) => run::again(words),
        Some(run::SESSION) => run::session(words),
        Some(jobset::STAGE) => jobset::stage(words),
        Some(web::WORK) => web::work(words).and_then(command),
        Some(web::MEMBER) => web::member(words),
        Some(run::SUPERVISE) => {
            let task = words.next().unwrap_or_default();
            parse(words).and_then(|cli| supervise(&cli, &task))
        }
        _ => command(std::env::args_os().skip(1)),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            out::tell(&failure);
            ExitCode::from(failure.code)
        }
    }
}

fn command(words: impl Iterator<Item = std::ffi::OsString>) -> Result<u8, Failure> {
    let cli = parse(words)?;
    out::JSON_ERRORS.store(cli.context.json && cli.command.looks_at_jobs(), Ordering::Relaxed);
    commands::dispatch(&cli.context, &cli.command)
}

/// `__supervise TASK` and the command line of `cosched run --detach`.
fn supervise(cli: &args::Cli, task: &OsStr) -> Result<u8, Failure> {
    match &cli.command {
        args::Commands::Run(options) => run::supervise(&cli.context, options, task),
        _ => Err(Failure::silent(run::EXIT_FAILED)),
    }
}

fn parse(words: impl Iterator<Item = std::ffi::OsString>) -> Result<args::Cli, Failure> {
    let words: Vec<_> = std::iter::once("cosched".into()).chain(words).collect();
    let mut command = args::command();
    let matches = command.try_get_matches_from_mut(&words);
    let parsed = matches.and_then(|mut matches| args::Cli::from_arg_matches_mut(&mut matches));
    let cli = parsed.map_err(|error| {
        let error = error.format(&mut command);
        let is_run = args::is_run(&words);
        match args::equivalent(&error, is_run) {
            Some(tip) => out::say(&tip),
            // clap prints in its own style: help to standard output, errors to standard error.
            None => _ = error.print(),
        }
        let code = if !error.use_stderr() {
            0
        } else if is_run {
            run::EXIT_FAILED
        } else {
            2
        };
        Failure::silent(code)
    })?;
    match &cli.command {
        args::Commands::Run(run) => Ok(run::with_options(&words, run)?.unwrap_or(cli)),
        _ => Ok(cli),
    }
}
