//! `cosched sim phases`: jobs that alternate between two pools.

use crate::context::Context;
use crate::format::{duration_s, exact_percent};
use crate::out::{EXIT_REFUSED, Failure};
use crate::parsers::explained;
use crate::table::Listing;
use crate::workload::input;
use clap::Args;
use clap::builder::TypedValueParser;
use cosched_api::parse::duration;
use cosched_report::short;
use cosched_sim::phases::{
    Lengths, PhaseJob, PhasePolicy, PhaseSettings, PhaseSummary, generate_phase_jobs, simulate_phases, summarise_phases,
};
use cosched_sim::workload::phase_jobs::{PHASE_JOBS_MAX, read_phase_jobs};
use serde::Serialize;
use std::io::BufReader;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = super::help::PHASES)]
pub(crate) struct Phases {
    /// The jobs (CSV), or - for standard input
    #[arg(value_name = "FILE", required_unless_present = "jobs")]
    file: Option<PathBuf>,

    /// Generate this number of jobs instead
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=PHASE_JOBS_MAX as i64), conflicts_with = "file")]
    jobs: Option<u32>,

    /// dedicated, round-robin, phases, or all; may be given several times
    #[arg(long, value_name = "POLICY", default_value = "all", value_parser = policy(), hide_possible_values = true)]
    policy: Vec<Named>,

    /// Draws generated jobs, and the lengths of phases: one seed, the same lengths under all policies
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// Coefficient of variation of the lengths of phases (log-normal); 0: all have their mean length
    #[arg(long, value_name = "CV", default_value_t = 0.0)]
    cv: f64,

    /// The longest phase, in mean lengths: longer ones are cut, and plans are made with it
    #[arg(long, value_name = "X", default_value_t = 1.5)]
    longest: f64,

    /// Price of a node-hour in each pool
    #[arg(long, value_name = "FIRST,SECOND", default_value = "15,42", value_parser = prices)]
    prices: [f64; 2],

    /// Memory of a node: the states of all its jobs are in it
    #[arg(long, value_name = "GB", default_value_t = 2000)]
    memory_gb: u32,

    /// What a node needs to change to another of its jobs (a warm start)
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time_us)]
    switch: u64,

    /// What a job needs to load its state, once
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = time_us)]
    cold: u64,

    /// The length of a turn of round-robin
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = time_us)]
    slot: u64,
}

/// One policy, or all.
type Named = Option<PhasePolicy>;

fn policy() -> impl TypedValueParser<Value = Named> {
    explained([
        ("dedicated", "Each job has nodes of its own", Some(PhasePolicy::Dedicated)),
        ("round-robin", "Whole jobs take turns on the nodes of a group", Some(PhasePolicy::RoundRobin)),
        ("phases", "The phases of a group take turns on each node (RollMux)", Some(PhasePolicy::Phases)),
        ("all", "All of them", None),
    ])
}

/// The result as JSON.
#[derive(Serialize)]
struct Output {
    jobs: usize,
    settings: PhaseSettings,
    policies: Vec<PhaseSummary>,
}

/// `cosched sim phases`.
pub(crate) fn run(context: &Context, options: &Phases) -> Result<u8, Failure> {
    let settings = PhaseSettings {
        prices: options.prices,
        memory_gb: options.memory_gb,
        switch_us: options.switch,
        cold_us: options.cold,
        slot_us: options.slot,
        lengths: Lengths { seed: options.seed, cv: options.cv, longest: options.longest },
    };
    let refused = |(what, hint)| Failure::explained(2, what, "such a machine is not simulated", hint);
    settings.check().map_err(refused)?;
    let jobs = jobs(options)?;
    if let Some(job) = jobs.iter().find(|job| job.memory_gb > settings.memory_gb) {
        let what = format!("the job {} needs {} GB on each node", job.name, job.memory_gb);
        let why = format!("a node has {} GB", settings.memory_gb);
        return Err(Failure::explained(EXIT_REFUSED, &what, &why, "give larger nodes with --memory-gb"));
    }
    let chosen = PhasePolicy::ALL
        .into_iter()
        .filter(|policy| options.policy.contains(&None) || options.policy.contains(&Some(*policy)));
    let summary = |policy| summarise_phases(&jobs, &settings, policy, &simulate_phases(&jobs, policy, &settings));
    let output = Output { jobs: jobs.len(), settings, policies: chosen.filter_map(summary).collect() };
    context.give(&output, || text(&output))
}

fn jobs(options: &Phases) -> Result<Vec<PhaseJob>, Failure> {
    let Some(path) = &options.file else {
        return Ok(generate_phase_jobs(options.jobs.unwrap_or(1) as usize, options.seed));
    };
    let refused = |error| Failure { code: EXIT_REFUSED, message: format!("{}: {error}", path.display()) };
    read_phase_jobs(BufReader::new(input::open(path)?)).map_err(refused)
}

/// `10s`, in µs.
fn time_us(text: &str) -> Result<u64, String> {
    let time = duration(text).map_err(|error| error.to_string())?;
    u64::try_from(time.as_micros()).map_err(|_| "it is too long".to_owned())
}

/// `15,42`.
fn prices(text: &str) -> Result<[f64; 2], String> {
    let (first, second) = text.split_once(',').ok_or("it is two prices, as 15,42")?;
    let price = |text: &str| text.trim().parse().map_err(|_| format!("`{text}` is not a number"));
    Ok([price(first)?, price(second)?])
}

fn text(output: &Output) -> String {
    let PhaseSettings { prices: [first, second], lengths, .. } = output.settings;
    let head = format!(
        "{} jobs; a node-hour costs {first} in the first pool and {second} in the second; phases vary by {}\n\n",
        output.jobs,
        exact_percent(lengths.cv)
    );
    let listing = Listing::of(&output.policies)
        .words("POLICY", 0, |of| of.policy.name())
        .numbers("COST", 0, |of| short(of.cost))
        .numbers("RELATIVE", 0, |of| format!("{:.3}", of.relative_cost))
        .numbers("FIRST USED", 2, |of| exact_percent(of.first_utilisation))
        .numbers("SECOND USED", 2, |of| exact_percent(of.second_utilisation))
        .numbers("TURNAROUND", 3, |of| duration_s(of.mean_turnaround_s))
        .numbers("SLOWDOWN", 0, |of| format!("{:.3}", of.mean_slowdown))
        .numbers("P95", 1, |of| format!("{:.2}", of.p95_slowdown))
        .numbers("MAX", 1, |of| format!("{:.2}", of.max_slowdown))
        .numbers("IN LIMIT", 0, |of| exact_percent(of.within_limit))
        .numbers("AS RUN", 1, |of| exact_percent(of.within_limit_as_run));
    let notes = "\nRELATIVE: cost over that of dedicated nodes. SLOWDOWN: turnaround over the time on nodes of its own. IN LIMIT: jobs within their limit of \
                 the time alone with the longest phases, as planned; AS RUN: of their time alone as it was.\n";
    head + &listing.render(None) + notes
}
