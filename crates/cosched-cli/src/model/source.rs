//! Which job is predicted: a program on a machine, or any by its time and CPU share.

use super::machines;
use crate::out::Failure;
use clap::{Args, ValueEnum};
use cosched_model::cache::pollution_us;
use cosched_model::{Cost, Grid, Job, Machine, Problem, lu, matmul};

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

    /// With cache pollution: KiB that a process reads again after each wait; all of the cache if no number is given
    #[arg(long, value_name = "KIB", requires = "machine", num_args = 0..=1, default_missing_value = "inf",
          value_parser = parse_kib)]
    cache: Option<f64>,

    /// Any program: its time alone
    #[arg(long, value_name = "S", requires = "cpu_share")]
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
    pub(crate) program: &'static str,
    pub(crate) problem: Problem,
    pub(crate) cost: Cost,
    /// α_c.
    pub(crate) context_switch_us: f64,
    /// What cold caches add to it.
    pub(crate) pollution_us: f64,
}

fn parse_kib(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(kib) if kib >= 0.0 => Ok(kib),
        _ => Err("give KiB from 0, or no number for the whole cache".into()),
    }
}

impl Source {
    /// The job, if these options name one.
    pub(crate) fn find(&self) -> Result<Option<Predicted>, Failure> {
        if let (Some(t1), Some(share)) = (self.t1, self.cpu_share) {
            let job = Job::of_share(t1, share).map_err(|error| wrong("there is no such job", &error.to_string()))?;
            return Ok(Some(Predicted { job, detail: None }));
        }
        let (Some(name), Some(program), Some(n), Some(grid)) = (&self.machine, self.program, self.n, self.grid) else {
            return if self.machine.is_some() { Err(no_program()) } else { Ok(None) };
        };
        let machine = machines::find(name)?;
        let pollution = self.cache.map(|kib| pollution(&machine, name, kib)).transpose()?;
        Ok(Some(self.of_program(machine, program, n, grid, pollution.unwrap_or(0.0))?))
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
        let (program, cost) = match program {
            Program::Lu => ("lu", lu::cost(&machine, &problem)),
            Program::Matmul => ("matmul", matmul::cost(&machine, &problem, !self.no_startups)),
        };
        let context_switch_us = machine.context_switch_us;
        let job = Job { alone_s: cost.time_s(), cpu_s: cost.shared_cpu_s(context_switch_us + pollution_us) };
        let detail = Detail { machine, program, problem, cost, context_switch_us, pollution_us };
        Ok(Predicted { job, detail: Some(detail) })
    }
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
    wrong("--machine needs a program", "a machine alone has no time; give --program, --n and --grid")
}
