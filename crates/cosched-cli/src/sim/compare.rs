//! `cosched sim compare`: strategies on one workload.

use super::cells::{self, Cells};
use super::machine::Machine;
use super::model::{Cost, Model, cost_us};
use super::output::positive_seconds;
use super::replications::Replications;
use crate::context::Context;
use crate::out::Failure;
use clap::Args;
use cosched_sim::metrics::BOUND_S;
use cosched_sim::sweep::{Description, Plan, SEEDS, Seeds};
use cosched_sim::{Params, Strategy};
use std::path::PathBuf;

/// Options of `cosched sim compare`.
#[derive(Args, Debug)]
#[command(after_help = super::help::COMPARE)]
pub(crate) struct Compare {
    /// The strategies; ratios are to the first. `paper`: the ten of Zhang et al. 2000; `all`: all available ones
    #[arg(long, short, value_name = "NAME,…", value_delimiter = ',', default_value = "paper")]
    pub(crate) strategies: Vec<String>,

    /// A job list (CSV) or a trace (SWF, Batsim), plain or gzip; or WL1 to WL8
    #[arg(long, short, value_name = "FILE|WL1…WL8")]
    pub(crate) jobs: String,

    /// Scale the arrivals to this load [default: 0.7 for WL1 to WL8, unchanged for lists]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) load: Option<f64>,

    /// Jobs to generate, or to take from a trace
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) count: usize,

    /// Their mean execution time alone
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = positive_seconds)]
    pub(crate) mean_exec_s: f64,

    /// Jump where no job arrives or ends, once rates have settled: estimates, for long jobs of the paper's strategies
    #[arg(long, conflicts_with = "max_sim_s")]
    pub(crate) sampled: bool,

    /// Context switch of gangs, including synchronisation of the nodes; --cs-us is for the others [default: 2000]
    #[arg(long, value_name = "US", value_parser = cost_us, allow_negative_numbers = true, help_heading = "Costs")]
    pub(crate) gang_cs_us: Option<Cost>,

    /// Threshold of bounded slowdown: shorter jobs count as this long
    #[arg(long, value_name = "S", default_value_t = BOUND_S, value_parser = positive_seconds)]
    pub(crate) bound_s: f64,

    /// Save results of finished cells in this file, and reuse existing ones
    #[arg(long, value_name = "FILE", help_heading = cells::RUNNING)]
    pub(crate) journal: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) model: Model,

    #[command(flatten)]
    pub(crate) replications: Replications,

    #[command(flatten)]
    pub(crate) machine: Machine,

    #[command(flatten)]
    pub(crate) cells: Cells,
}

pub(crate) fn compare(context: &Context, options: &Compare) -> Result<u8, Failure> {
    let plan = plan(options)?;
    let table = cells::run(&plan, &options.cells, options.journal.as_deref())?;
    cells::give(&format!("Strategies on {}", options.jobs), &table, &options.cells, context.json)
}

fn plan(options: &Compare) -> Result<Plan, Failure> {
    let (first, seeds) = (options.model.seed, options.replications.seeds.unwrap_or(SEEDS));
    let last = first.checked_add(seeds - 1).ok_or_else(|| {
        let what = format!("there are no {seeds} seeds from {first} on");
        Failure::explained(2, &what, "a seed is a 64-bit number", "give a smaller --seed")
    })?;
    let mut description = Description {
        strategies: options.strategies.clone(),
        workloads: vec![options.jobs.clone()],
        load: options.load.into_iter().collect(),
        seeds: Seeds::List((first..=last).collect()),
        jobs: options.count,
        mean_exec_s: options.mean_exec_s,
        bound_s: options.bound_s,
        sampled: options.sampled,
        ..Description::default()
    };
    options.replications.replace(&mut description);
    Plan::new(&description, &|strategy, _| options.machine.config(params(options, strategy))).map_err(cells::failure)
}

fn params(options: &Compare, strategy: Strategy) -> Params {
    let mut params = options.model.params(strategy);
    if strategy.is_gang() {
        let paper = Params::paper(strategy, params.nodes);
        params.switch_ns = options.gang_cs_us.map_or(paper.switch_ns, |cost| cost.0);
    }
    params
}
