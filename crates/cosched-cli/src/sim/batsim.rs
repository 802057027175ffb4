//! `cosched sim batsim`: a workload of Batsim with its computation and messages.

use super::files::{Output, distinct, is_stdout};
use super::machine::Machine;
use super::model::Model;
use super::platform::OnPlatform;
use super::progress::watch;
use crate::context::Context;
use crate::out::{EXIT_REFUSED, Failure, say};
use crate::parsers::flops;
use crate::workload::{input, say_left_out};
use clap::Args;
use cosched_report::short;
use cosched_sim::general::{self, Work};
use cosched_sim::metrics::{BatsimRow, SUCCESSFUL, interval_set, write_batsim_rows};
use cosched_sim::trace::Places;
use cosched_sim::workload::batsim::{BatsimJob, BatsimPrograms, read_batsim_programs};
use cosched_sim::{Outcome, Strategy};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `cosched sim batsim`.
#[derive(Args, Debug)]
#[command(after_help = super::help::BATSIM)]
pub(crate) struct Batsim {
    /// The workload (JSON of Batsim 4 or 5); - is standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,

    /// The strategy
    #[arg(long, short, value_name = "NAME", default_value = "EASY", value_parser = |text: &str| text.parse::<Strategy>())]
    strategy: Strategy,

    /// Speed of a processor without a platform, in flop/s
    #[arg(long, value_name = "F", default_value_t = 1e9, value_parser = flops, conflicts_with = "file")]
    flops: f64,

    #[command(flatten)]
    platform: OnPlatform,

    #[command(flatten)]
    model: Model,

    #[command(flatten)]
    machine: Machine,

    /// Write Batsim's jobs.csv, for evalys; - is standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// The result as JSON; means are over the jobs that ended.
#[derive(Serialize)]
struct Summary {
    strategy: &'static str,
    nodes: u32,
    jobs: usize,
    ended: usize,
    makespan_s: f64,
    #[serde(flatten)]
    means: Means,
    messages: u64,
}

pub(crate) fn run(context: &Context, options: &Batsim) -> Result<u8, Failure> {
    let (mut model, mut machine) = (options.model.clone(), options.machine.clone());
    let platform = options.platform.read(&mut model, &mut machine)?;
    let flops = platform.as_ref().map_or(options.flops, |platform| platform.hosts()[0].flops);
    let BatsimPrograms { procs, jobs, dropped } = read(options, flops)?;
    // Each processor of the workload is a CPU.
    let cpus = machine.cpus_per_node.unwrap_or(1);
    model.nodes = model.nodes.or(Some(procs.div_ceil(cpus)));
    let params = model.params(options.strategy);
    let config = machine.config(params);
    let all = params.nodes.saturating_mul(config.cpus_per_node);
    let (jobs, larger): (Vec<BatsimJob>, Vec<_>) = jobs.into_iter().partition(|job| job.job.tasks <= all);
    let mut reasons: Vec<(&str, u64)> = dropped.iter().map(|(why, count)| (why.as_str(), *count)).collect();
    reasons.push(("larger than the machine", larger.len() as u64));
    say_left_out(&reasons);
    if let Some(path) = &options.csv {
        distinct(&options.workload, &[path.as_path()])?;
    }
    let csv = options.csv.as_deref().map(Output::create).transpose()?;
    let works: Vec<Work> = jobs.iter().map(|job| Work::Program(job.job.clone())).collect();
    let mut places = Places::new(works.len());
    let outcome = general::simulate_on(&config, platform.as_ref(), &works, &mut places, &mut watch(options.quiet))?;
    if let Some(mut out) = csv {
        let name = options.workload.file_stem().map_or("workload".into(), |name| name.to_string_lossy());
        let of = |job: usize| interval_set(&places.places()[job].nodes);
        let written = write_batsim_rows(&mut out, &name, jobs.iter().map(row), &outcome.jobs, of);
        let left_out = out.written(written)?;
        if left_out > 0 {
            say(&format!("{left_out} jobs have not ended and are not in {}", out.path().display()));
        }
    }
    if options.csv.as_deref().is_some_and(is_stdout) {
        return Ok(0);
    }
    let summary = summary(options.strategy, params.nodes, &jobs, &outcome);
    context.give(&summary, || text(&summary))
}

fn read(options: &Batsim, flops: f64) -> Result<BatsimPrograms, Failure> {
    let read = read_batsim_programs(input::open(&options.workload)?, flops);
    read.map_err(|error| Failure { code: EXIT_REFUSED, message: format!("{}: {error}", options.workload.display()) })
}

fn row(job: &BatsimJob) -> BatsimRow<'_> {
    BatsimRow {
        id: job.id.clone(),
        profile: &job.profile,
        arrival_ns: job.job.arrival_ns,
        tasks: job.job.tasks,
        requested_s: job.job.estimate_ns.map(|ns| ns as f64 / 1e9),
        state: SUCCESSFUL,
    }
}

fn summary(strategy: Strategy, nodes: u32, jobs: &[BatsimJob], outcome: &Outcome) -> Summary {
    let times: Vec<[u64; 3]> = jobs
        .iter()
        .zip(&outcome.jobs)
        .filter_map(|(job, times)| Some([job.job.arrival_ns, times.start_ns?, times.finish_ns?]))
        .collect();
    Summary {
        strategy: strategy.name(),
        nodes,
        jobs: jobs.len(),
        ended: times.len(),
        makespan_s: outcome.sim_end_ns as f64 / 1e9,
        means: Means::of(times.into_iter()),
        messages: outcome.messages,
    }
}

/// Means over jobs that ended.
#[derive(Serialize)]
pub(super) struct Means {
    mean_wait_s: Option<f64>,
    mean_turnaround_s: Option<f64>,
    mean_stretch: Option<f64>,
}

impl Means {
    /// Of arrivals, starts and ends, in ns.
    pub(super) fn of(jobs: impl Iterator<Item = [u64; 3]>) -> Means {
        let (mut sums, mut count) = ([0.0; 3], 0_u32);
        for [arrival, start, finish] in jobs {
            let (turnaround, execution) = ((finish - arrival) as f64, (finish - start) as f64);
            let stretch = if execution > 0.0 { turnaround / execution } else { 1.0 };
            let of_job = [(start - arrival) as f64 / 1e9, turnaround / 1e9, stretch];
            sums.iter_mut().zip(of_job).for_each(|(sum, value)| *sum += value);
            count += 1;
        }
        let [mean_wait_s, mean_turnaround_s, mean_stretch] =
            sums.map(|sum| (count > 0).then(|| sum / f64::from(count)));
        Means { mean_wait_s, mean_turnaround_s, mean_stretch }
    }
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [wait, turnaround, stretch] = [self.mean_wait_s, self.mean_turnaround_s, self.mean_stretch]
            .map(|value| value.map_or("-".to_owned(), short));
        write!(f, "mean wait {wait} s, turnaround {turnaround} s, stretch {stretch}")
    }
}

fn text(of: &Summary) -> String {
    format!(
        "{} on {} nodes: {} of {} jobs ended in {} s, {} messages\n{}\n",
        of.strategy,
        of.nodes,
        of.ended,
        of.jobs,
        short(of.makespan_s),
        of.messages,
        of.means
    )
}
