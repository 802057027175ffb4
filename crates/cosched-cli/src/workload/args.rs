//! The command line of `cosched workload`.

use crate::commands::help;
use crate::parsers::{explained, flops};
use clap::builder::TypedValueParser;
use clap::{Args, Subcommand, ValueEnum};
use cosched_sim::workload::TypeMix;
use cosched_sim::workload::estimates::EstimateBin;
use cosched_sim::workload::generate::FitMethod;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = help::WORKLOAD, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Workload {
    #[command(subcommand)]
    pub(crate) command: WorkloadCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadCommand {
    /// Show the statistics of a trace or a job list
    Show(Show),
    /// Fit distributions to a trace: a model from which jobs can be generated
    Fit(Fit),
    /// Generate jobs from a model
    Generate(Generate),
    /// Convert a workload to another format, optionally only some of its jobs
    Convert(Convert),
}

#[derive(Args, Debug)]
#[command(after_help = help::WORKLOAD_SHOW)]
pub(crate) struct Show {
    /// The trace or job list, or - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Processors of the machine [default: the header's]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) procs: Option<u32>,

    #[command(flatten)]
    pub(crate) window: Window,

    /// Also write an HTML page with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) strict: Strict,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Only jobs submitted at or after this second of the log
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) from_s: Option<f64>,

    /// Only jobs submitted before this second of the log
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) to_s: Option<f64>,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Strict {
    /// Fail on invalid lines instead of skipping and counting them
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Args, Debug)]
#[command(after_help = help::WORKLOAD_FIT)]
pub(crate) struct Fit {
    /// The trace or job list, or - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Method of the model's fits: moments or em
    #[arg(long, value_name = "METHOD", default_value = "em", value_parser = method(), hide_possible_values = true)]
    pub(crate) method: FitMethod,

    /// Leave out gaps between submissions above this, s: they are outages
    #[arg(long, value_name = "S")]
    pub(crate) max_gap_s: Option<f64>,

    /// Processors of the machine [default: the header's]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) procs: Option<u32>,

    #[command(flatten)]
    pub(crate) window: Window,

    /// Write the model here, for `cosched workload generate`
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) strict: Strict,
}

fn method() -> impl TypedValueParser<Value = FitMethod> {
    explained([("moments", "Three moments", FitMethod::Moments), ("em", "Maximum likelihood", FitMethod::Likelihood)])
}

#[derive(Args, Debug)]
#[command(after_help = help::WORKLOAD_GENERATE)]
pub(crate) struct Generate {
    /// WL1 to WL8, hyper-erlang, ctc-1996-refit, lublin, lublin-batch, lublin-interactive, lublin-no-types or FILE.json
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: String,

    /// Number of jobs
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) jobs: u32,

    /// Nodes of the machine, with one processor each
    #[arg(long, value_name = "P", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) nodes: u32,

    /// Maximum tasks of a job [default: the number of nodes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tasks: Option<u32>,

    /// The mean execution time, s [default: 10 for WL1 to WL8, the model's own for others]
    #[arg(long, value_name = "S")]
    pub(crate) mean_exec_s: Option<f64>,

    /// The load [default: 0.7 for WL1 to WL8, the model's own for others]
    #[arg(long, value_name = "RHO", conflicts_with = "together")]
    pub(crate) load: Option<f64>,

    /// All jobs arrive at 0
    #[arg(long)]
    pub(crate) together: bool,

    #[command(flatten)]
    pub(crate) draw: Draw,

    #[command(flatten)]
    pub(crate) estimates: Estimates,

    #[command(flatten)]
    pub(crate) output: OutputFormat,

    /// Where to write; - is standard output
    #[arg(long = "output", short, value_name = "FILE", default_value = "-")]
    pub(crate) output_file: PathBuf,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Draw {
    /// The mix of types, WL1 to WL8, for jobs without a type [default: WL7, or the model's]
    #[arg(long, value_name = "MIX")]
    pub(crate) types: Option<TypeMix>,

    /// Seed of the random numbers
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Estimates {
    /// Generate estimates of run times (Tsafrir et al. 2005); this is the longest, s
    #[arg(long, value_name = "S")]
    pub(crate) estimates_max_s: Option<u64>,

    /// An estimate and the number of jobs that have it, as 64800:4000
    #[arg(long, value_name = "S:JOBS,…", value_delimiter = ',', requires = "estimates_max_s", value_parser = parse_bin)]
    pub(crate) estimates_known: Vec<EstimateBin>,
}

fn parse_bin(text: &str) -> Result<EstimateBin, String> {
    let bin = text
        .split_once(':')
        .and_then(|(time_s, jobs)| Some(EstimateBin { time_s: time_s.parse().ok()?, jobs: jobs.parse().ok()? }));
    bin.ok_or_else(|| "give seconds and a number of jobs, as 64800:4000".into())
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct OutputFormat {
    /// csv (job list), swf or batsim [default: by the output's name, else csv]
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true)]
    pub(crate) format: Option<Format>,

    /// Batsim: what the jobs' types compute and send, on processors of this speed, flop/s; else delays
    #[arg(long, value_name = "F", value_parser = flops)]
    pub(crate) work_flops: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Job list: arrival_s,tasks,exec_s,type
    Csv,
    /// Standard Workload Format
    Swf,
    /// Batsim's workload JSON (5.x)
    Batsim,
}

#[derive(Args, Debug)]
#[command(after_help = help::WORKLOAD_CONVERT)]
pub(crate) struct Convert {
    /// The trace, job list or Batsim workload, or - for standard input
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// Where to write, or - for standard output
    #[arg(value_name = "OUT")]
    pub(crate) output_file: PathBuf,

    #[command(flatten)]
    pub(crate) output: OutputFormat,

    #[command(flatten)]
    pub(crate) window: Window,

    /// Nodes: larger jobs are left out, and the load is relative to this number [default: the header's processors]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) nodes: Option<u32>,

    /// Leave out jobs with more tasks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tasks: Option<u32>,

    /// Only jobs of these states: 1 completed, 0 failed, 5 cancelled, -1 unknown
    #[arg(long, value_name = "N,…", value_delimiter = ',', allow_negative_numbers = true)]
    pub(crate) status: Vec<i64>,

    /// Take only the first N jobs
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,

    /// Multiply run times by this
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    pub(crate) lengths: Option<f64>,

    /// Multiply arrival times by this
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    pub(crate) times: Option<f64>,

    /// Scale arrival times so that the load is exactly this
    #[arg(long, value_name = "RHO", allow_negative_numbers = true, conflicts_with = "together")]
    pub(crate) load: Option<f64>,

    /// All jobs arrive at 0
    #[arg(long)]
    pub(crate) together: bool,

    #[command(flatten)]
    pub(crate) draw: Draw,

    #[command(flatten)]
    pub(crate) estimates: Estimates,

    /// Speed of a processor, flop/s, for Batsim profiles that compute
    #[arg(long, value_name = "F")]
    pub(crate) flops: Option<f64>,

    #[command(flatten)]
    pub(crate) strict: Strict,
}
