//! The job that is predicted: a program on a machine, or any job by its time and CPU share.

use super::machines;
use crate::out::{Failure, say};
use crate::parsers::positive_time;
use clap::{Args, ValueEnum};
use cosched_api::parse;
use cosched_model::cache::pollution_us;
use cosched_model::{Grid, Job, Machine, Problem, lu, matmul};
use cosched_study::predict::{self, Predicted, of_profile, of_program};
use cosched_study::profile::Profile;
use std::path::{Path, PathBuf};

/// The options that say so.
#[derive(Args, Debug)]
pub(crate) struct Source {
    /// A shipped machine (`cosched model machines`) or the path of a machine file
    #[arg(long, value_name = "MACHINE", conflicts_with_all = ["t1", "cpu_share"])]
    machine: Option<String>,

    /// The program: matmul or lu
    #[arg(long, value_enum, value_name = "PROGRAM", requires_all = ["machine", "n", "grid"], hide_possible_values = true)]
    program: Option<Program>,

    /// Order of the matrix
    #[arg(long, value_name = "N", requires = "program")]
    n: Option<u32>,

    /// Rows and columns of processes, one per CPU, as 8x4
    #[arg(long, value_name = "PxQ", requires = "program")]
    grid: Option<Grid>,

    /// Block: k of matmul, that of the storage of lu [default: 128, 60]
    #[arg(long, value_name = "K", requires = "program")]
    block: Option<u32>,

    /// Leave out the startups of matmul, as in equation 8
    #[arg(long, requires = "program")]
    no_startups: bool,

    /// Model cache pollution: the size that a process reloads after each wait [without SIZE: the whole cache]
    #[arg(long, value_name = "SIZE", requires = "machine", num_args = 0..=1, default_missing_value = "inf",
          value_parser = parse_kib)]
    cache: Option<f64>,

    /// Any program: a profile from `cosched record`, with the message costs of this machine
    #[arg(long, value_name = "FILE", requires = "machine", conflicts_with = "program")]
    profile: Option<PathBuf>,

    /// Any program: its time when run alone
    #[arg(long, value_name = "TIME", requires = "cpu_share", value_parser = positive_time)]
    t1: Option<f64>,

    /// Any program: the fraction of its CPUs that it uses when run alone, 0 to 1
    #[arg(long, value_name = "SHARE", requires = "t1")]
    cpu_share: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Program {
    /// Matrix multiply
    Matmul,
    /// LU factorisation
    Lu,
}

fn parse_kib(text: &str) -> Result<f64, String> {
    match text {
        "inf" => Ok(f64::INFINITY),
        text => parse::size_bytes(text).map(|bytes| bytes as f64 / 1024.0).map_err(|error| error.to_string()),
    }
}

impl Source {
    /// The job, if these options specify one.
    pub(crate) fn find(&self) -> Result<Option<Predicted>, Failure> {
        if let (Some(t1), Some(share)) = (self.t1, self.cpu_share) {
            let job = Job::of_share(t1, share).map_err(|error| wrong("this job does not exist", &error.to_string()))?;
            return Ok(Some(Predicted { job, detail: None }));
        }
        let Some(name) = &self.machine else { return Ok(None) };
        let machine = machines::find(name)?;
        let pollution_us = self.cache.map(|kib| pollution(&machine, name, kib)).transpose()?.unwrap_or(0.0);
        match (&self.profile, self.program, self.n, self.grid) {
            (Some(path), ..) => {
                let profile = crate::profile::read(path)?;
                let predicted = of_profile(machine, &profile, &path.display().to_string(), pollution_us)?;
                note_incomplete(&profile, path);
                Ok(predicted)
            }
            (None, Some(program), Some(n), Some(grid)) => self.of_program(machine, program, n, grid, pollution_us),
            _ => Err(no_program()),
        }
        .map(Some)
    }

    fn of_program(
        &self,
        machine: Machine,
        program: Program,
        n: u32,
        grid: Grid,
        pollution_us: f64,
    ) -> Result<Predicted, Failure> {
        let usual = if program == Program::Lu { lu::BLOCK } else { matmul::BLOCK };
        let problem = Problem::new(n, grid, self.block.unwrap_or(usual.min(n)))
            .map_err(|error| wrong("this problem does not exist", &error.to_string()))?;
        if self.no_startups && program == Program::Lu {
            return Err(wrong("--no-startups is for matmul", "equation 8 leaves them out; LU has none without them"));
        }
        let program = match program {
            Program::Lu => predict::Program::Lu,
            Program::Matmul => predict::Program::Matmul { startups: !self.no_startups },
        };
        Ok(of_program(machine, program, problem, pollution_us))
    }
}

/// Says what a prediction from this profile leaves out.
pub(crate) fn note_incomplete(profile: &Profile, path: &Path) {
    if !profile.complete {
        say(&format!("note: {} is not complete; what was not recorded is not in the model", path.display()));
    }
}

fn pollution(machine: &Machine, name: &str, kib: f64) -> Result<f64, Failure> {
    let cache = machine.cache.as_ref().ok_or_else(|| {
        Failure::explained(
            super::EXIT_INVALID,
            &format!("--cache: the machine {name} has no [cache]"),
            "the cost of reloading the cache is unknown",
            "add size_bytes and refill_us_per_kib under [cache] to a machine file; `cosched model calibrate` measures both",
        )
    })?;
    Ok(pollution_us(cache, kib * 1024.0))
}

fn wrong(what: &str, why: &str) -> Failure {
    Failure::explained(2, what, why, "see `cosched model predict --help`")
}

fn no_program() -> Failure {
    wrong("--machine needs a program", "a machine alone has no time; give --program, --n and --grid, or --profile")
}
