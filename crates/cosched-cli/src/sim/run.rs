//! `cosched sim run`.

use super::cells::on_threads;
use super::machine::Machine;
use super::model::Model;
use super::output::Outputs;
use super::platform::OnPlatform;
use super::progress::watch;
use super::timed::Timed;
use super::{table, workloads};
use crate::context::Context;
use crate::out::{Failure, print, print_json};
use clap::{Args, ValueEnum};
use cosched_sim::general::{Config, Work};
use cosched_sim::metrics::run_metrics;
use cosched_sim::paper::Sampling;
use cosched_sim::platform::Platform;
use cosched_sim::{JobSpec, Observer, Silent, Strategy, general, paper};
use cosched_study::engine::is_papers;
use std::path::PathBuf;
use std::time::Instant;

/// Options of `cosched sim run`.
#[derive(Args, Debug)]
#[command(after_help = super::help::RUN)]
pub(crate) struct Run {
    /// The strategy
    #[arg(long, short, value_name = "NAME", value_parser = |text: &str| text.parse::<Strategy>())]
    pub(crate) strategy: Strategy,

    /// A job list (CSV) or a trace (SWF, Batsim), plain or gzip; - is standard input
    #[arg(long, short, value_name = "FILE")]
    pub(crate) jobs: PathBuf,

    #[command(flatten)]
    pub(crate) model: Model,

    #[command(flatten)]
    pub(crate) machine: Machine,

    #[command(flatten)]
    pub(crate) platform: OnPlatform,

    /// For long jobs: skip intervals in which no job arrives or ends, once all rates have settled; an estimate, with its error
    #[arg(long, conflicts_with_all = ["max_sim_s", "trace", "trace_text", "paje", "html", "file"])]
    pub(crate) sampled: bool,

    /// Number of copies of a sampled run to simulate concurrently [default: the CPUs of this machine]
    #[arg(long, value_name = "N", requires = "sampled", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,

    /// Which engine: fast (the paper's model), general (everything), auto
    #[arg(long, value_enum, default_value_t = Engine::Auto, hide_possible_values = true)]
    pub(crate) engine: Engine,

    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

/// An engine. Both give the same results where both can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// The fast engine if it supports the options
    Auto,
    /// Computes only at changes of state; the paper's model under the default readings
    Fast,
    /// One queue of events; supports everything
    General,
}

pub(crate) fn run(context: &Context, options: &Run) -> Result<u8, Failure> {
    let (mut model, mut machine) = (options.model.clone(), options.machine.clone());
    let platform = options.platform.read(&mut model, &mut machine)?;
    let params = model.params(options.strategy);
    let config = machine.config(params);
    let jobs =
        workloads::of_file(&options.jobs, config.params.nodes.saturating_mul(config.cpus_per_node), params.seed)?;
    let mut recorder = options.outputs.open(&options.jobs, &params, config.cpus_per_node, &jobs)?;
    let timed = if options.sampled {
        sample(&config, &jobs, on_threads(options.threads), options.quiet)?
    } else if recorder.is_silent() {
        simulate(&config, platform.as_ref(), &jobs, options.engine, &mut Silent, options.quiet)?
    } else {
        simulate(&config, platform.as_ref(), &jobs, options.engine, &mut recorder.watchers, options.quiet)?
    };
    let metrics = run_metrics(&params, &jobs, &timed.outcome, options.outputs.bound_s);
    let energy = recorder.energy(timed.outcome.sim_end_ns);
    recorder.finish(&options.jobs, &params, &jobs, &timed, &metrics)?;
    if options.outputs.use_stdout() {
        return Ok(0);
    }
    if context.json {
        print_json(&super::json::outcome(&params, config.cpus_per_node, &jobs, &timed, metrics, energy))?;
    } else {
        print(&table::run(&options.jobs.display().to_string(), &params, &timed, &metrics, energy.as_ref()))?;
    }
    Ok(0)
}

/// Simulates with the selected engine.
pub(crate) fn simulate(
    config: &Config,
    platform: Option<&Platform>,
    jobs: &[JobSpec],
    engine: Engine,
    observer: &mut impl Observer,
    quiet: bool,
) -> Result<Timed, Failure> {
    let fast = is_papers(config) && platform.is_none();
    if engine == Engine::Fast && !fast {
        return Err(not_fast(config, "leave --engine out"));
    }
    let mut watch = watch(quiet);
    let works: Vec<Work> = if fast { Vec::new() } else { jobs.iter().map(|job| Work::Paper(*job)).collect() };
    let start = Instant::now();
    let outcome = match engine {
        Engine::Auto | Engine::Fast if fast => paper::run(&config.params, jobs, observer, &mut watch),
        Engine::General if fast => general::run(&config.params, jobs, observer, &mut watch),
        _ => general::simulate_on(config, platform, &works, observer, &mut watch),
    };
    let wall_s = start.elapsed().as_secs_f64();
    Ok(Timed { outcome: outcome?, wall_s, sampled: None })
}

/// Simulates with jumps over steady intervals.
fn sample(config: &Config, jobs: &[JobSpec], threads: usize, quiet: bool) -> Result<Timed, Failure> {
    if !is_papers(config) {
        return Err(not_fast(config, "leave --sampled out"));
    }
    let mut watch = watch(quiet);
    let start = Instant::now();
    let sampled = paper::run_sampled(&config.params, jobs, &Sampling::default(), threads, &mut watch);
    let wall_s = start.elapsed().as_secs_f64();
    let (outcome, sampled) = sampled?;
    Ok(Timed { outcome, wall_s, sampled: Some(sampled) })
}

fn not_fast(config: &Config, hint: &str) -> Failure {
    let what = format!("the fast engine cannot simulate {} with these options", config.params.strategy);
    Failure::explained(2, &what, "it supports only the paper's ten strategies, machine and default readings", hint)
}
