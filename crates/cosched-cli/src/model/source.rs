//! Which job is predicted: a program on a machine, or any by its time and CPU share.

use super::machines;
use crate::out::{Failure, say};
use crate::parsers::positive_time;
use clap::{Args, ValueEnum};
use cosched_api::parse;
use cosched_model::cache::pollution_us;
use cosched_model::profile::{Totals, from_profile};
use cosched_model::{Cost, Grid, Job, Machine, Problem, lu, matmul};
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

    /// Processes down and across, one to each CPU, as 8x4
    #[arg(long, value_name = "PxQ", requires = "program")]
    grid: Option<Grid>,

    /// Block: k of matmul, that of the storage of lu [default: 128, 60]
    #[arg(long, value_name = "K", requires = "program")]
    block: Option<u32>,

    /// Leave out the startups of matmul, as equation 8 does
    #[arg(long, requires = "program")]
    no_startups: bool,

    /// With cache pollution: what a process reads again after each wait; all of the cache if no number is given
    #[arg(long, value_name = "SIZE", requires = "machine", num_args = 0..=1, default_missing_value = "inf",
          value_parser = parse_kib)]
    cache: Option<f64>,

    /// Any program: what `cosched record` wrote of it, with the messages of this machine
    #[arg(long, value_name = "FILE", requires = "machine", conflicts_with = "program")]
    profile: Option<PathBuf>,

    /// Any program: its time alone
    #[arg(long, value_name = "TIME", requires = "cpu_share", value_parser = positive_time)]
    t1: Option<f64>,

    /// Any program: the share of its CPUs that it uses alone, 0 to 1
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

/// A job, and what is known of how it comes about.
#[derive(Debug)]
pub(crate) struct Predicted {
    pub(crate) job: Job,
    pub(crate) detail: Option<Detail>,
}

/// Of a program on a machine.
#[derive(Debug)]
pub(crate) struct Detail {
    pub(crate) machine: Machine,
    pub(crate) subject: Subject,
    pub(crate) cost: Cost,
    /// α_c.
    pub(crate) context_switch_us: f64,
    /// What cold caches add to it.
    pub(crate) pollution_us: f64,
}

/// Which program.
#[derive(Debug)]
pub(crate) enum Subject {
    /// One of the paper's.
    Known { program: &'static str, problem: Problem },
    /// A recorded one.
    Recorded { path: PathBuf, tasks: u32 },
}

fn parse_kib(text: &str) -> Result<f64, String> {
    match text {
        "inf" => Ok(f64::INFINITY),
        text => parse::size_bytes(text).map(|bytes| bytes as f64 / 1024.0).map_err(|error| error.to_string()),
    }
}

impl Source {
    /// The job, if these options name one.
    pub(crate) fn find(&self) -> Result<Option<Predicted>, Failure> {
        if let (Some(t1), Some(share)) = (self.t1, self.cpu_share) {
            let job = Job::of_share(t1, share).map_err(|error| wrong("there is no such job", &error.to_string()))?;
            return Ok(Some(Predicted { job, detail: None }));
        }
        let Some(name) = &self.machine else { return Ok(None) };
        let machine = machines::find(name)?;
        let pollution_us = self.cache.map(|kib| pollution(&machine, name, kib)).transpose()?.unwrap_or(0.0);
        match (&self.profile, self.program, self.n, self.grid) {
            (Some(path), ..) => of_profile(machine, &crate::profile::read(path)?, path, pollution_us),
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
            .map_err(|error| wrong("there is no such problem", &error.to_string()))?;
        if self.no_startups && program == Program::Lu {
            return Err(wrong("--no-startups is for matmul", "equation 8 leaves them out; LU has none without them"));
        }
        let (program, cost) = match program {
            Program::Lu => ("lu", lu::cost(&machine, &problem)),
            Program::Matmul => ("matmul", matmul::cost(&machine, &problem, !self.no_startups)),
        };
        Ok(Predicted::new(machine, Subject::Known { program, problem }, cost, pollution_us))
    }
}

impl Predicted {
    fn new(machine: Machine, subject: Subject, cost: Cost, pollution_us: f64) -> Predicted {
        let context_switch_us = machine.context_switch_us;
        let job = Job { alone_s: cost.time_s(), cpu_s: cost.shared_cpu_s(context_switch_us + pollution_us) };
        Predicted { job, detail: Some(Detail { machine, subject, cost, context_switch_us, pollution_us }) }
    }
}

/// A recorded program: its mean task, with the messages of this machine.
pub(crate) fn of_profile(
    machine: Machine,
    profile: &Profile,
    path: &Path,
    pollution_us: f64,
) -> Result<Predicted, Failure> {
    let totals = profile.totals();
    let unusable = |why: &str| {
        let what = format!("{} cannot be used for a prediction", path.display());
        Failure::explained(super::EXIT_INVALID, &what, why, "record the program again: cosched record")
    };
    if totals.compute_s_mean + totals.io_s_mean + totals.messages_mean == 0.0 {
        return Err(unusable("the profile is empty: no task computed, did I/O or sent a message"));
    }
    if !profile.complete {
        say(&format!("note: {} is not complete; what was not recorded is not in the model", path.display()));
    }
    let (link, _) = machine.links_of(u64::from(totals.tasks), None);
    let totals = Totals {
        compute_s: totals.compute_s_mean,
        io_s: totals.io_s_mean,
        messages: totals.messages_mean,
        bytes: totals.bytes_mean,
        elapsed_s: Some(totals.elapsed_s),
    };
    let cost = from_profile(&link, &totals).map_err(|error| unusable(&error.to_string()))?;
    let subject = Subject::Recorded { path: path.to_owned(), tasks: profile.tasks };
    Ok(Predicted::new(machine, subject, cost, pollution_us))
}

fn pollution(machine: &Machine, name: &str, kib: f64) -> Result<f64, Failure> {
    let cache = machine.cache.as_ref().ok_or_else(|| {
        Failure::explained(
            super::EXIT_INVALID,
            &format!("--cache: the machine {name} has no [cache]"),
            "the cost of filling a cache again is not known",
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
