//! `cosched sim backfill`.

use super::failures::{Damage, FailureOptions, failing};
use super::sharing::{Chosen, Named, SharingOptions, policy};
use crate::commands::help;
use crate::context::Context;
use crate::format::{duration_s, grouped};
use crate::out::{EXIT_REFUSED, Failure, say};
use crate::parsers::explained;
use crate::workload::{input, say_left_out, write_to};
use clap::Args;
use clap::builder::TypedValueParser;
use cosched_api::parse::duration;
use cosched_sim::batch::{
    BatchJob, Dropped, EventOrder, FairShare, Filter, Policy, Schedule, Sharing, Summary, simulate, simulate_fair,
    simulate_shared, summarise, write_jobs_csv,
};
use cosched_sim::workload::swf::SwfHeader;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Args, Debug)]
#[command(after_help = help::SIM_BACKFILL)]
pub(crate) struct Backfill {
    /// The trace (SWF or Batsim, plain or gzip), or - for standard input
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,

    /// fcfs, easy, easy-sjbf, conservative; soft-gang, oversubscribe, round-robin, malleable
    #[arg(long, value_name = "POLICY", value_parser = policy(), hide_possible_values = true)]
    policy: Named,

    /// Processors of the machine [default: the header's]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..))]
    procs: Option<u32>,

    /// When to schedule the queue: after all events of an instant, or after each event
    #[arg(long, value_name = "ORDER", default_value = "all", value_parser = order(), hide_possible_values = true)]
    event_order: EventOrder,

    /// Order the queue by fair share among users, with easy: usage halves in H, and a job is treated as if it arrived up to W later
    #[arg(long, value_name = "H,W", value_parser = fair_share)]
    fair_share: Option<FairShare>,

    /// Write all jobs to this file, with the columns of Batsim's jobs.csv
    #[arg(long, value_name = "FILE")]
    jobs_csv: Option<PathBuf>,

    /// Fail on invalid lines instead of skipping and counting them
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    sharing: SharingOptions,

    #[command(flatten)]
    failures: FailureOptions,
}

fn order() -> impl TypedValueParser<Value = EventOrder> {
    explained([
        ("all", "All ends, all submissions, one pass", EventOrder::All),
        ("one", "A pass after every event", EventOrder::One),
    ])
}

/// The result as JSON.
#[derive(Serialize)]
struct Output<'a> {
    trace: &'a str,
    policy: &'static str,
    event_order: &'static str,
    fair_share: bool,
    /// The values of a policy under which jobs share processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    sharing: Option<Sharing>,
    procs: u32,
    #[serde(flatten)]
    summary: Summary,
    /// If nodes fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<Damage>,
    dropped: Dropped,
    dropped_total: u64,
    cut_to_estimate: u64,
    bound_s: f64,
    wall_s: f64,
}

/// `cosched sim backfill`.
pub(crate) fn backfill(context: &Context, options: &Backfill) -> Result<u8, Failure> {
    let chosen = options.sharing.of(options.policy)?;
    let order = options.event_order;
    let refused = |what: &str, why: &str| Failure::explained(2, what, why, "use those, or leave it out");
    if options.fair_share.is_some() && (options.policy, order) != (Named::Space(Policy::Easy), EventOrder::All) {
        let why = "the order of a queue by fair share is simulated with --policy easy --event-order all";
        return Err(refused("--fair-share conflicts with the other options", why));
    }
    if matches!(chosen, Chosen::Shared(_)) && order != EventOrder::All {
        let why = "where jobs share processors, a pass follows all events of an instant: --event-order all";
        return Err(refused("--event-order conflicts with the policy", why));
    }
    let (mut jobs, procs, dropped, cut_to_estimate) = jobs(options)?;
    let failures = options.failures.of(&chosen, order, options.fair_share.is_some(), procs)?;
    say_left_out(&dropped.by_reason());
    let start = Instant::now();
    let (schedule, damage) = match &failures {
        Some(failures) if !jobs.is_empty() => failing(&mut jobs, procs, &chosen, failures)?,
        _ => (scheduled(&jobs, procs, &chosen, options), None),
    };
    if schedule.end_us.contains(&u64::MAX) {
        let why = "jobs would end after the end of the clock, in 584,000 years";
        return Err(Failure::explained(EXIT_REFUSED, "the schedule is too long", why, "check the times of the trace"));
    }
    let wall_s = start.elapsed().as_secs_f64();
    let Some(summary) = summarise(&jobs, procs, &schedule) else {
        let what = format!("{}: no job can be scheduled", options.trace.display());
        let (why, hint) = match &damage {
            Some(damage) => (damage.text(), "nodes that fail less often, or --checkpoint, let jobs end"),
            None => (
                format!("all {} were left out, for the reasons above", grouped(dropped.total())),
                "backfilling needs estimates (column 9) and jobs that fit on the machine (--procs)",
            ),
        };
        return Err(Failure::explained(EXIT_REFUSED, &what, &why, hint));
    };
    write_jobs(options, &jobs, procs, &schedule)?;
    let trace = options.trace.display().to_string();
    let output = Output {
        trace: &trace,
        policy: chosen.name(),
        sharing: match chosen {
            Chosen::Space(_) => None,
            Chosen::Shared(sharing) => Some(sharing),
        },
        event_order: if order == EventOrder::All { "all" } else { "one" },
        fair_share: options.fair_share.is_some(),
        procs,
        summary,
        failures: damage,
        dropped_total: dropped.total(),
        dropped,
        cut_to_estimate,
        bound_s: cosched_sim::workload::stats::BOUND_S,
        wall_s,
    };
    context.give(&output, || text(&output))
}

fn scheduled(jobs: &[BatchJob], procs: u32, chosen: &Chosen, options: &Backfill) -> Schedule {
    match (chosen, options.fair_share) {
        (Chosen::Space(_), Some(fair)) => simulate_fair(jobs, procs, fair),
        (Chosen::Space(policy), None) => simulate(jobs, procs, *policy, options.event_order),
        (Chosen::Shared(sharing), _) => simulate_shared(jobs, procs, sharing),
    }
}

/// `7d,1d`.
fn fair_share(text: &str) -> Result<FairShare, String> {
    let (half_life, weight) = text.split_once(',').ok_or("it is two durations, as 7d,1d")?;
    let ns = |text: &str| {
        let time = duration(text).map_err(|e| format!("{text}: {e}"))?;
        Ok::<u64, String>(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    };
    match (ns(half_life)?, ns(weight)?) {
        (0, _) => Err("the half-life must be above 0".to_owned()),
        (half_life_ns, weight_ns) => Ok(FairShare { half_life_ns, weight_ns }),
    }
}

/// The jobs that can be scheduled, the machine's processors, the jobs left out, and how many run times were truncated.
fn jobs(options: &Backfill) -> Result<(Vec<BatchJob>, u32, Dropped, u64), Failure> {
    let path = &options.trace;
    let size = |header: &SwfHeader| options.procs.or_else(|| header.processors());
    let (mut kept, mut has_waits) = (None, false);
    let (header, report) = input::stream(path, options.strict, |header, record| {
        has_waits |= record.wait_s().is_some();
        let begin = || size(header).map_or((None, Filter::new(u32::MAX)), |procs| (Some(procs), Filter::new(procs)));
        kept.get_or_insert_with(begin).1.add(record);
    })?;
    let Some(procs) = size(&header) else {
        let what = format!("{}: the machine's size is unknown", path.display());
        let why = "the header has no usable MaxProcs or MaxNodes";
        return Err(Failure::explained(EXIT_REFUSED, &what, why, "give it with --procs"));
    };
    // Workloads generated by our own models have submission times but no wait times.
    let is_ours = header.get("Conversion").is_some_and(|by| by.starts_with("cosched"));
    if !is_ours && !has_waits {
        say(&format!("{}: the log has no waits: its submissions may be the starts of jobs", path.display()));
    }
    if kept.as_ref().is_some_and(|(first, _)| *first != Some(procs)) {
        let what = format!("{}: the machine's size stands behind the first jobs", path.display());
        return Err(Failure::explained(
            EXIT_REFUSED,
            &what,
            "jobs are filtered by it as they are read",
            "give it with --procs",
        ));
    }
    let (_, mut filter) = kept.unwrap_or_else(|| (None, Filter::new(procs)));
    filter.malformed(report.malformed);
    let (jobs, dropped, cut) = filter.finish();
    Ok((jobs, procs, dropped, cut))
}

fn write_jobs(options: &Backfill, jobs: &[BatchJob], procs: u32, schedule: &Schedule) -> Result<(), Failure> {
    let Some(path) = &options.jobs_csv else { return Ok(()) };
    let name = options.trace.file_name().unwrap_or_default().to_string_lossy();
    let name = name.split('.').next().unwrap_or_default();
    write_to(path, |out| write_jobs_csv(out, name, jobs, procs, schedule))
}

fn text(output: &Output<'_>) -> String {
    let Summary { jobs_used, mean_wait_s, mean_flow_s, max_flow_s, avebsld, max_bsld, .. } = output.summary;
    let Summary { median_bsld, p95_bsld, p99_bsld, utilization, makespan_s, loss_of_capacity, .. } = output.summary;
    let order = match output.event_order {
        "all" => "all ends, all submissions, one pass",
        _ => "a pass after every event",
    };
    let lines = [
        ("policy", format!("{} on {} processors ({order})", output.policy, grouped(output.procs.into()))),
        (
            "jobs",
            format!(
                "{} used, {} left out, {} run times cut to their estimates",
                grouped(jobs_used),
                grouped(output.dropped_total),
                grouped(output.cut_to_estimate)
            ),
        ),
        ("wait", format!("mean {} ({mean_wait_s:.3} s)", duration_s(mean_wait_s))),
        ("flow", format!("mean {} ({mean_flow_s:.3} s), at most {}", duration_s(mean_flow_s), duration_s(max_flow_s))),
        (
            "bounded slowdown",
            format!(
                "mean {avebsld:.4}, median {median_bsld:.2}, 95% {p95_bsld:.1}, 99% {p99_bsld:.1}, at most \
                 {max_bsld:.1} (threshold {} s)",
                output.bound_s
            ),
        ),
        ("utilisation", format!("{:.2}%", utilization * 100.0)),
        ("loss of capacity", format!("{:.2}% of the machine was idle while jobs waited", loss_of_capacity * 100.0)),
        ("makespan", format!("{} ({makespan_s} s)", duration_s(makespan_s))),
    ];
    let failures = output.failures.as_ref().map(|damage| ("failures", damage.text()));
    lines.iter().chain(&failures).map(|(name, value)| format!("{name:<17}{value}\n")).collect()
}
