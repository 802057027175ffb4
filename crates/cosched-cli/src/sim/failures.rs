//! The options of `cosched sim backfill` for nodes that fail.

use super::sharing::Chosen;
use crate::format::grouped;
use crate::out::{EXIT_REFUSED, Failure};
use crate::workload::input;
use clap::Args;
use cosched_api::parse::duration;
use cosched_sim::batch::{
    BatchJob, Checkpoint, Drawn, EventOrder, FailureReport, Failures, OUTAGES_MAX, Policy, Schedule, Source,
    simulate_failing,
};
use cosched_sim::workload::outages::{Outage, read_outages};
use serde::Serialize;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The most nodes: each has a failure that is to come.
const NODES_MAX: u32 = 1_000_000;

/// `None`: not given.
#[derive(Args, Debug)]
#[command(next_help_heading = "Failures")]
pub(super) struct FailureOptions {
    /// Mean time from a repair of a node to its next failure, at random
    #[arg(long, value_name = "TIME", value_parser = time_us, requires = "mttr")]
    mtbf: Option<u64>,

    /// Mean time of a repair (exponential)
    #[arg(long, value_name = "TIME", value_parser = time_us, requires = "mtbf")]
    mttr: Option<u64>,

    /// Shape of the Weibull distribution of times to failures: 1 is exponential, measured ones are about 0.7 [default: 1]
    #[arg(long, value_name = "K", value_parser = shape, requires = "mtbf")]
    failure_shape: Option<f64>,

    /// Draws failures and repairs: one seed, one list of outages for all policies [default: 1]
    #[arg(long, value_name = "SEED", requires = "mtbf")]
    failure_seed: Option<u64>,

    /// Outages from a file: CSV with the header node,down_s,up_s
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mtbf", "mttr"])]
    outages: Option<PathBuf>,

    /// Processors of a node, which fail together [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    node_procs: Option<u32>,

    /// How often a job starts again after failures, before it is given up; 0: failures end jobs [default: 1000]
    #[arg(long, value_name = "N")]
    restarts: Option<u32>,

    /// Jobs store their work in intervals, for which they take COST, and start again from there [default: from the beginning]
    #[arg(long, value_name = "INTERVAL[,COST]", value_parser = checkpoint)]
    checkpoint: Option<Checkpoint>,
}

impl FailureOptions {
    /// How nodes of a machine of `procs` processors fail, if they do.
    pub(super) fn of(
        &self,
        chosen: &Chosen,
        order: EventOrder,
        is_fair: bool,
        procs: u32,
    ) -> Result<Option<Failures>, Failure> {
        let refused = |what: &str, why: &str, hint: &str| Err(Failure::explained(2, what, why, hint));
        let node_procs = self.node_procs.unwrap_or(1);
        let source = match (&self.outages, self.mtbf) {
            (Some(path), _) => Source::Listed(listed(path, procs.div_ceil(node_procs))?),
            (None, Some(mtbf_us)) => Source::Drawn(Drawn {
                mtbf_us: mtbf_us as f64,
                mttr_us: self.mttr.unwrap_or(1) as f64,
                shape: self.failure_shape.unwrap_or(1.0),
                seed: self.failure_seed.unwrap_or(1),
            }),
            (None, None) => {
                let given = [
                    ("--node-procs", self.node_procs.is_some()),
                    ("--restarts", self.restarts.is_some()),
                    ("--checkpoint", self.checkpoint.is_some()),
                ];
                let Some((name, _)) = given.iter().find(|(_, given)| *given) else { return Ok(None) };
                let what = format!("{name} means nothing without failures");
                return refused(&what, "no node fails", "give --mtbf 30d --mttr 4h, or --outages FILE");
            }
        };
        let is_possible = matches!(chosen, Chosen::Space(Policy::Fcfs | Policy::Easy | Policy::EasySjbf));
        if !is_possible || is_fair || order != EventOrder::All {
            let why = "nodes fail under --policy fcfs, easy and easy-sjbf with --event-order all";
            return refused("failures conflict with the other options", why, "use those, or leave failures out");
        }
        let nodes = procs.div_ceil(node_procs);
        if nodes > NODES_MAX {
            let what = format!("{} nodes are too many", grouped(nodes.into()));
            return refused(
                &what,
                "at most 1,000,000 can fail",
                "say with --node-procs N how many processors fail together",
            );
        }
        let (checkpoint, restarts_max) = (self.checkpoint, self.restarts.unwrap_or(1000));
        Ok(Some(Failures { node_procs, source, checkpoint, restarts_max }))
    }
}

fn listed(path: &Path, nodes: u32) -> Result<Vec<Outage>, Failure> {
    let refused = |message: String| Failure { code: EXIT_REFUSED, message: format!("{}: {message}", path.display()) };
    let outages = read_outages(BufReader::new(input::open(path)?)).map_err(|error| refused(error.to_string()))?;
    match outages.last().filter(|last| last.node >= nodes) {
        Some(last) => Err(refused(format!(
            "there is no node {}\n  why: the machine has the nodes 0 to {}\n  hint: --procs and --node-procs say how large it is",
            last.node,
            nodes - 1
        ))),
        None => Ok(outages),
    }
}

/// The schedule of the jobs that ended; those that were given up are left out of both.
pub(super) fn failing(
    jobs: &mut Vec<BatchJob>,
    procs: u32,
    chosen: &Chosen,
    failures: &Failures,
) -> Result<(Schedule, Option<Damage>), Failure> {
    let found = match chosen {
        Chosen::Space(policy) => simulate_failing(jobs, procs, *policy, failures),
        Chosen::Shared(_) => None,
    };
    let Some((mut schedule, report)) = found else {
        let why = format!("a run has at most {}", grouped(OUTAGES_MAX));
        let hint = "nodes fail too often for this trace: a longer --mtbf, or fewer nodes (--node-procs)";
        return Err(Failure::explained(EXIT_REFUSED, "there are too many outages", &why, hint));
    };
    let damage = Damage::of(report, jobs, &mut schedule);
    Ok((schedule, Some(damage)))
}

/// What failures did, as JSON.
#[derive(Serialize)]
pub(super) struct Damage {
    #[serde(flatten)]
    report: FailureReport,
    given_up: usize,
}

impl Damage {
    fn of(report: FailureReport, jobs: &mut Vec<BatchJob>, schedule: &mut Schedule) -> Damage {
        let given_up = report.given_up.iter().filter(|given_up| **given_up).count();
        let keep = |place: &mut usize| {
            *place += 1;
            !report.given_up[*place - 1]
        };
        let (mut a, mut b, mut c) = (0, 0, 0);
        jobs.retain(|_| keep(&mut a));
        schedule.start_us.retain(|_| keep(&mut b));
        schedule.end_us.retain(|_| keep(&mut c));
        Damage { report, given_up }
    }

    pub(super) fn text(&self) -> String {
        let FailureReport { outages, restarts, lost_processor_s, availability, .. } = self.report;
        format!(
            "{outages} outages, {:.3}% of the machine was up; {restarts} restarts, {} jobs given up, {:.1} processor hours lost",
            availability * 100.0,
            self.given_up,
            lost_processor_s / 3600.0
        )
    }
}

/// `30d`, in µs.
fn time_us(text: &str) -> Result<u64, String> {
    let time = duration(text).map_err(|error| error.to_string())?;
    match u64::try_from(time.as_micros()) {
        Ok(us @ 1_000_000..=1_000_000_000_000_000) => Ok(us),
        _ => Err("give 1s to 11000d".to_owned()),
    }
}

fn shape(text: &str) -> Result<f64, String> {
    let shape = text.parse::<f64>().ok().filter(|shape| (0.2..=10.0).contains(shape));
    shape.ok_or_else(|| "a number from 0.2 to 10, as 0.7".to_owned())
}

/// `1h` or `1h,2min`.
fn checkpoint(text: &str) -> Result<Checkpoint, String> {
    let (every, cost) = text.split_once(',').map_or((text, None), |(every, cost)| (every, Some(cost)));
    Ok(Checkpoint { every_us: time_us(every)?, cost_us: cost.map_or(Ok(0), time_us)? })
}
