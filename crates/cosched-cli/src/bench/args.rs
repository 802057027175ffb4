//! The options of `cosched bench`.

use crate::parsers::positive_time;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use cosched_study::slowdown::Baseline;
use std::path::PathBuf;

/// Options of `cosched bench`.
#[derive(Args, Debug)]
#[command(after_help = super::help::BENCH, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

/// The subcommands of `cosched bench`.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure the slowdown of concurrent jobs of a command under several policies
    Slowdown(Box<Slowdown>),
    /// Compare measured slowdowns with those of the model and the simulator
    Compare(super::compare::Compare),
}

/// Options of `cosched bench slowdown`.
#[derive(Args, Debug)]
#[command(after_help = super::help::SLOWDOWN)]
pub(crate) struct Slowdown {
    /// Numbers of concurrent jobs
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,2,4",
          value_parser = clap::value_parser!(u32).range(1..=512))]
    pub(crate) jobs: Vec<u32>,

    /// What to compare: linux, gang, gang-strict, gang-soft, paired, local, pb, dcs, auto (each also with a way to wait:
    /// local+spin-block), a short name of the literature (GS, SB, PB-SB, …), slurm-gang
    #[arg(long, value_name = "POLICY,…", value_delimiter = ',', default_value = "linux,local,gang")]
    pub(crate) policies: Vec<String>,

    /// Number of repetitions
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) repeat: u32,

    /// End a set of jobs after this time, as 90s [default: 30 t_1 for each job, at least 60s; 1h for the first job alone]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub(crate) limit: Option<f64>,

    /// The t_1 of slowdowns: linux (alone under plain Linux) or own (alone under the same policy)
    #[arg(long, value_name = "WHICH", value_parser = baseline(), default_value = "linux", hide_possible_values = true)]
    pub(crate) baseline: Baseline,

    /// Run different jobs concurrently: a list of commands (TOML)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["jobs", "command"])]
    pub(crate) mix: Option<PathBuf>,

    /// A regular expression whose group matches the seconds of the main phase in the program's output
    #[arg(long, value_name = "REGEX")]
    pub(crate) phase_regex: Option<String>,

    /// Write results, journal, report.html and the jobs' output to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Resume the benchmark in DIR
    #[arg(long, value_name = "DIR", conflicts_with_all = ["jobs", "policies", "repeat", "limit", "baseline", "mix",
          "phase_regex", "out", "command"])]
    pub(crate) resume: Option<PathBuf>,

    /// Print the results as CSV
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,

    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// The command and its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", required_unless_present_any = ["mix", "resume"])]
    pub(crate) command: Vec<String>,
}

fn baseline() -> impl TypedValueParser<Value = Baseline> {
    let linux = PossibleValue::new("linux").help("One job alone under plain Linux");
    let own = PossibleValue::new("own").help("One job alone under the same policy");
    PossibleValuesParser::new([linux, own]).map(|text| if text == "own" { Baseline::Own } else { Baseline::Linux })
}
