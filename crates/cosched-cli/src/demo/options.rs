//! What `cosched demo` may be told.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::DEMO)]
pub(crate) struct Demo {
    /// How long one job alone takes
    #[arg(long, value_name = "S", default_value = "1.0", value_parser = parse_seconds)]
    pub(crate) seconds: f64,

    /// Numbers of concurrent jobs
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "2,4",
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) jobs: Vec<u32>,

    /// What to compare: linux, local, gang
    #[arg(
        long,
        value_name = "ARM,…",
        value_delimiter = ',',
        default_value = "linux,local,gang",
        value_enum,
        hide_possible_values = true
    )]
    pub(crate) policies: Vec<Arm>,

    /// Number of repetitions; medians are shown
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeat: u32,

    /// Path of the parallel program: barrier-mpi, barrier-omp, barrier-threads, or another with the same options
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<PathBuf>,

    /// Print plain lines even on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
}

/// What the demo compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Arm {
    /// Jobs without cosched
    Linux,
    /// Jobs in cgroups with shares, no slots
    Local,
    /// Jobs in slots
    Gang,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.05..=600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds from 0.05 to 600, as 1.5".into()),
    }
}
