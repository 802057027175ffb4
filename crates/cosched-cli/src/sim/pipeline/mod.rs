//! `cosched sim pipeline`: a pipeline of stages on simulated CPUs, under rules for priorities.

mod json;
mod predict;
mod text;

use crate::context::Context;
use crate::input;
use crate::out::{Failure, terminal_width};
use clap::Args;
use cosched_sim::pipeline::{self, PipelineError, PipelineOutcome, PipelineSpec, Priorities};
use std::path::{Path, PathBuf};

/// Options of `cosched sim pipeline`.
#[derive(Args, Debug)]
#[command(after_help = super::help::PIPELINE)]
pub(crate) struct RunPipeline {
    /// The pipeline, its machine and competing processes, in TOML
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Rules for priorities; ratios are to the first
    #[arg(long, short, value_name = "NAME,…", value_delimiter = ',', default_value = "default,auto",
          value_parser = |text: &str| text.parse::<Priorities>())]
    priorities: Vec<Priorities>,

    /// Number of rounds, instead of the file's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,

    /// Seed of the random numbers, instead of the file's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Show the stages under each of the rules
    #[arg(long)]
    stages: bool,

    /// Show the changes of autotune, and those that were refused
    #[arg(long)]
    actions: bool,
}

/// A rule and its result.
struct Simulated {
    priorities: Priorities,
    outcome: PipelineOutcome,
}

pub(crate) fn run(context: &Context, options: &RunPipeline) -> Result<u8, Failure> {
    let mut spec = read(&options.file)?;
    spec.rounds = options.rounds.unwrap_or(spec.rounds);
    spec.seed = options.seed.unwrap_or(spec.seed);
    spec.check().map_err(|error| failure(&options.file, error))?;
    let simulate = |priorities: &Priorities| {
        let outcome = pipeline::simulate(&spec, *priorities).map_err(|error| failure(&options.file, error))?;
        Ok(Simulated { priorities: *priorities, outcome })
    };
    let all = options.priorities.iter().map(simulate).collect::<Result<Vec<_>, Failure>>()?;
    let predicted = predict::predict(&spec)?;
    context.give(&json::output(&spec, &all, &predicted), || {
        text::output(options, &spec, &all, &predicted, terminal_width())
    })
}

fn read(path: &Path) -> Result<PipelineSpec, Failure> {
    let text = input::read(path, "give the path of a pipeline in TOML; docs/pipeline-rules.md has the format")?;
    toml::from_str(&text).map_err(|e| {
        let hint = "see `cosched sim pipeline --help` for what a pipeline has";
        Failure::explained_in_lines(1, &format!("{} is not a pipeline", path.display()), &e.to_string(), hint)
    })
}

fn failure(path: &Path, error: PipelineError) -> Failure {
    Failure::other(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
