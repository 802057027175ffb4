//! Commands and options.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use cosched_columnsort::generate::Keys;
use cosched_columnsort::sort::Version;
use cosched_pipeline::{Kind, Priorities};
use cosched_units::{duration, size_bytes};

use super::help;

/// Sorts files of records that are larger than memory, with Leighton's columnsort, as pipelines of stages.
#[derive(Debug, Parser)]
#[command(name = "cosched-columnsort", version, after_help = help::MAIN, infer_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sort a file of records
    #[command(after_help = help::SORT)]
    Sort(Box<SortArgs>),
    /// Say what a sort would do: matrix, passes, memory, room on the disk
    #[command(after_help = help::PLAN)]
    Plan(PlanArgs),
    /// Say whether a matrix sorts, and which near it do
    #[command(after_help = help::SHAPE)]
    Shape(ShapeArgs),
    /// Make a file of records
    #[command(after_help = help::GENERATE)]
    Generate(GenerateArgs),
    /// Look whether a file is in order, and sum up its records
    #[command(after_help = help::CHECK)]
    Check(CheckArgs),
    /// Measure how fast bytes go from a file to a directory: the disk's part of a sort's bound
    #[command(after_help = help::RATE)]
    Rate(RateArgs),
    /// Write man pages
    #[command(hide = true)]
    Man {
        /// All pages, to this directory
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Write a shell's completions
    #[command(hide = true)]
    Completions {
        /// bash, zsh, fish, …
        shell: clap_complete::Shell,
    },
}

/// What records look like.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Records")]
pub(crate) struct RecordArgs {
    /// Bytes of a record
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    pub(crate) record_size: usize,
    /// Where the key begins in it
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) key_offset: usize,
    /// Bytes of the key
    #[arg(long, value_name = "BYTES", default_value_t = 10)]
    pub(crate) key_size: usize,
}

/// What the matrix is to be like.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Matrix and memory")]
pub(crate) struct MatrixArgs {
    /// Memory for all buffers of a process [default: a quarter of what is available, shared by the processes]
    #[arg(long, short = 'S', value_name = "SIZE", value_parser = size_bytes)]
    pub(crate) memory: Option<u64>,
    /// Records in a column [default: by the memory]
    #[arg(long, value_name = "N")]
    pub(crate) rows: Option<u64>,
    /// Columns [default: by the memory]
    #[arg(long, value_name = "N")]
    pub(crate) columns: Option<u64>,
    /// Columns in memory at once [default: 3 more than sorters]
    #[arg(long, value_name = "N")]
    pub(crate) buffers: Option<usize>,
    /// Bytes of a block that is written or sent [default: an eighth of a column, 64 KiB to 4 MiB]
    #[arg(long, value_name = "SIZE", value_parser = size_bytes)]
    pub(crate) block: Option<u64>,
    /// 3 joins steps 5 to 8 in one pass; 4 does 5-6 and 7-8 one after the other
    #[arg(long, value_name = "3|4", default_value_t = 3, value_parser = clap::value_parser!(u8).range(3..=4))]
    pub(crate) passes: u8,
    /// How a column is sorted: whole records by comparison, or pointers by radix
    #[arg(long, value_name = "compute|io", default_value = "io",
          value_parser = named([("compute", Version::Compute), ("io", Version::Io)]))]
    pub(crate) version: Version,
    /// Columns that are sorted at once
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) incarnations: usize,
    /// Workers for stages that compute, and threads for a sort in one piece [default: CPUs]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct SortArgs {
    /// The records; only read
    pub(crate) input: PathBuf,
    /// Where the sorted records go
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace the output if it is there
    #[arg(long, short)]
    pub(crate) force: bool,
    /// Directory of working files, which have no name [default: the output itself, or its directory]
    #[arg(long, short = 'T', value_name = "DIR")]
    pub(crate) temp: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
    #[command(flatten)]
    pub(crate) matrix: MatrixArgs,
    #[command(flatten)]
    pub(crate) pipeline: PipelineArgs,
    /// Library for messages between processes [default: by what started them]
    #[arg(long, value_name = "none|FILE", help_heading = "Processes")]
    pub(crate) mpi: Option<PathBuf>,
    /// Wait until the output is on the disk
    #[arg(long)]
    pub(crate) sync: bool,
    /// The result as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress, no plan
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// How pipelines run.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Pipelines")]
pub(crate) struct PipelineArgs {
    /// How files are read and written: auto, uring, direct or buffered
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = parse_engine)]
    pub(crate) io: EngineArg,
    /// Stages that compute on workers, or each on a thread of its own
    #[arg(long, value_name = "workers|threads", default_value = "workers",
          value_parser = named([("workers", Kind::Worker), ("threads", Kind::Thread)]))]
    pub(crate) executor: Kind,
    /// One CPU for each stage that has a thread of its own, in turn
    #[arg(long)]
    pub(crate) affinity: bool,
    /// How the stages are scheduled: default, nice-up-io, nice-down-io, adjust-once, adjust-up-down, auto, short-slices, …
    #[arg(long, value_name = "RULE", default_value = "default")]
    pub(crate) priorities: Priorities,
    /// Write what each pass was like as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write a Chrome trace of all passes (chrome://tracing, Perfetto)
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Answer `cosched pipeline show` while it runs
    #[arg(long)]
    pub(crate) serve: bool,
    /// End the sort when a stage works on one buffer for longer than this, as 30s
    #[arg(long, value_name = "TIME", value_parser = stall_limit)]
    pub(crate) stall_limit: Option<Duration>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct PlanArgs {
    /// The records
    #[arg(required_unless_present = "count")]
    pub(crate) input: Option<PathBuf>,
    /// The number of records, without a file
    #[arg(long = "records", value_name = "N", conflicts_with = "input")]
    pub(crate) count: Option<u64>,
    /// Processes
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) processes: u64,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
    #[command(flatten)]
    pub(crate) matrix: MatrixArgs,
    /// As one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ShapeArgs {
    /// Records to sort
    #[arg(long, value_name = "N")]
    pub(crate) records: u64,
    /// Records in a column
    #[arg(long, value_name = "N")]
    pub(crate) rows: u64,
    /// Columns
    #[arg(long, value_name = "N")]
    pub(crate) columns: u64,
    /// Processes
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) processes: u64,
    /// As one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct GenerateArgs {
    /// The file to make
    pub(crate) output: PathBuf,
    /// How many records
    #[arg(long = "records", value_name = "N", required_unless_present = "bytes")]
    pub(crate) count: Option<u64>,
    /// About this size of the records, in bytes
    #[arg(long, value_name = "SIZE", value_parser = size_bytes, conflicts_with = "count")]
    pub(crate) bytes: Option<u64>,
    /// Other seeds, other records
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// What keys are like
    #[arg(long, value_name = "KIND", default_value = "random", value_parser = named([
        ("random", Keys::Random), ("sorted", Keys::Sorted), ("reversed", Keys::Reversed), ("few", Keys::Few),
    ]))]
    pub(crate) keys: Keys,
    /// Printable records that end with a newline, which programs for text can sort too
    #[arg(long)]
    pub(crate) lines: bool,
    /// Replace the file if it is there
    #[arg(long, short)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
    /// How the file is written: auto, uring, direct or buffered
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = parse_engine)]
    pub(crate) io: EngineArg,
    /// The result as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct CheckArgs {
    /// The records
    pub(crate) input: PathBuf,
    /// They have to be this file's records, in any order
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
    /// They have to have this checksum
    #[arg(long, value_name = "HEX", conflicts_with = "against")]
    pub(crate) checksum: Option<String>,
    #[command(flatten)]
    pub(crate) records: RecordArgs,
    /// How files are read: auto, uring, direct or buffered
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = parse_engine)]
    pub(crate) io: EngineArg,
    /// The result as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RateArgs {
    /// What to read
    pub(crate) input: PathBuf,
    /// Where to write, to a file without a name [default: the input's directory]
    #[arg(long, short = 'T', value_name = "DIR")]
    pub(crate) temp: Option<PathBuf>,
    /// How files are read and written: auto, uring, direct or buffered
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = parse_engine)]
    pub(crate) io: EngineArg,
    /// The result as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// An engine, or the best one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EngineArg(pub(crate) Option<cosched_pipeline::file::Engine>);

fn parse_engine(text: &str) -> Result<EngineArg, String> {
    match text {
        "auto" => Ok(EngineArg(None)),
        "uring" => Ok(EngineArg(Some(cosched_pipeline::file::Engine::Uring))),
        _ => text
            .parse()
            .map(|engine| EngineArg(Some(engine)))
            .map_err(|_| "there are auto, uring, direct and buffered".into()),
    }
}

/// A parser that accepts these words.
fn named<const N: usize, T: Copy + Send + Sync + 'static>(
    all: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    // The parser lets only words of the list pass.
    let value = move |word: String| all.iter().find(|(name, _)| *name == word).unwrap_or(&all[0]).1;
    PossibleValuesParser::new(all.map(|(name, _)| name)).map(value)
}

/// A duration above 0.
fn stall_limit(text: &str) -> Result<Duration, String> {
    let limit = duration(text).map_err(|error| error.to_string())?;
    if limit.is_zero() { Err("it must be above 0".to_owned()) } else { Ok(limit) }
}
