//! `cosched sim run`.

use super::input::job_list;
use super::model::Model;
use super::output::{self, Outputs};
use super::progress::Meter;
use crate::args::Cli;
use crate::out::{Failure, print, print_json};
use clap::{Args, ValueEnum};
use cosched_sim::{JobSpec, Observer, Outcome, Params, Silent, SimError, Strategy, general, paper};
use std::path::PathBuf;
use std::time::Instant;

/// Options of `cosched sim run`.
#[derive(Args, Debug)]
#[command(after_help = super::help::RUN)]
pub(crate) struct Run {
    /// The strategy
    #[arg(long, short, value_name = "NAME", value_parser = |text: &str| text.parse::<Strategy>())]
    pub(crate) strategy: Strategy,

    /// The list of jobs; - is standard input
    #[arg(long, short, value_name = "FILE")]
    pub(crate) jobs: PathBuf,

    #[command(flatten)]
    pub(crate) model: Model,

    /// Which engine: fast (the paper's model), general (everything), auto
    #[arg(long, value_enum, default_value_t = Engine::Auto, hide_possible_values = true)]
    pub(crate) engine: Engine,

    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

/// An engine. Both give the same results where both can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// The fast one where it can
    Auto,
    /// Only what changes state costs time; the paper's model under the default readings
    Fast,
    /// One queue of events; everything
    General,
}

/// A simulation's outcome and the time that its event loop took.
pub(crate) struct Timed {
    pub(crate) outcome: Outcome,
    pub(crate) wall_s: f64,
}

pub(crate) fn run(cli: &Cli, options: &Run) -> Result<u8, Failure> {
    let jobs = job_list(&options.jobs)?;
    let params = options.model.params(options.strategy);
    let mut recorder = options.outputs.open(&params, &jobs)?;
    let timed = if recorder.is_silent() {
        simulate(&params, &jobs, options.engine, &mut Silent, options.quiet)?
    } else {
        simulate(&params, &jobs, options.engine, &mut recorder.watchers, options.quiet)?
    };
    let metrics = output::metrics(&params, &jobs, &timed, options.outputs.bound_s);
    recorder.finish(&options.jobs, &params, &jobs, &timed, &metrics)?;
    if options.outputs.use_stdout() {
        return Ok(0);
    }
    if cli.json {
        print_json(&super::json::outcome(&params, &jobs, &timed, metrics))?;
    } else {
        print(&output::summary(&options.jobs, &params, &timed, &metrics))?;
    }
    Ok(0)
}

/// Simulates with the engine that was asked for.
pub(crate) fn simulate(
    params: &Params,
    jobs: &[JobSpec],
    engine: Engine,
    observer: &mut impl Observer,
    quiet: bool,
) -> Result<Timed, Failure> {
    let fast = paper::handles(params);
    if engine == Engine::Fast && !fast {
        return Err(Failure::explained(
            2,
            &format!("the fast engine cannot simulate {} with these options", params.strategy),
            "it has the paper's ten strategies under the default readings",
            "leave --engine out",
        ));
    }
    let mut meter = Meter::new(quiet);
    let mut watch = |progress| {
        meter.show(&progress);
        true
    };
    let start = Instant::now();
    let outcome = if fast && engine != Engine::General {
        paper::run(params, jobs, observer, &mut watch)
    } else {
        general::run(params, jobs, observer, &mut watch)
    };
    let wall_s = start.elapsed().as_secs_f64();
    drop(meter);
    Ok(Timed { outcome: outcome.map_err(failure)?, wall_s })
}

/// What a simulator's error means to a shell.
pub(crate) fn failure(error: SimError) -> Failure {
    let code = if matches!(error, SimError::Params(_)) { 2 } else { 1 };
    Failure { code, message: error.to_string() }
}
