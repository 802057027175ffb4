//! `cosched-swarm`: runs seeds of the simulation, and reproduces single seeds.

use clap::Parser;
use cosched_swarm::run::{Options, Outcome, quiet_panics, replay};
use cosched_swarm::swarm::{Seeds, Total, swarm};
use cosched_swarm::world::{Counts, Log, Violation};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  cosched-swarm --seconds 60              as many seeds as fit into a minute, on all CPUs
  cosched-swarm --seeds 0..200            these seeds
  cosched-swarm --seed 17                 one seed; if it fails, with the last things that happened
  cosched-swarm --seed 17 --verbose       with all that happens
  cosched-swarm --seeds 0..50 --nodes 8 --jobs 200 --minutes 10
  cosched-swarm --seconds 60 --from 5000 --json

A seed and the options together set everything: the same ones give the same world on every machine.

Exit codes: 0 all that must hold held, 1 a seed failed, 2 wrong use.";

/// Simulates the whole control plane of a cluster, with faults, and checks what must always hold.
#[derive(Debug, Parser)]
#[command(name = "cosched-swarm", version, after_help = EXAMPLES)]
struct Args {
    /// Run this seed alone
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "seconds", "from"])]
    seed: Option<u64>,
    /// Run these seeds: the first, and the one after the last
    #[arg(long, value_name = "A..B", value_parser = range, conflicts_with_all = ["seconds", "from"])]
    seeds: Option<(u64, u64)>,
    /// Start no more seeds after this number of seconds (60 unless seeds are named)
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// The first seed, with --seconds
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// Nodes of the cluster, 1 to 64; otherwise the seed says: 2 to 5
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    nodes: Option<u64>,
    /// Jobs that users submit
    #[arg(long, value_name = "N", default_value_t = Options::default().jobs)]
    jobs: u64,
    /// How long users and faults continue, in minutes of simulated time
    #[arg(long, value_name = "M", default_value_t = Options::default().minutes, value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
    /// Stop after this number of failed seeds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    failures: u64,
    /// Print all that happens; with --seed
    #[arg(long, requires = "seed")]
    verbose: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn range(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    match parts {
        Some((a, b)) if a < b => Ok((a, b)),
        _ => Err("it takes two numbers, the smaller first: 0..200".to_owned()),
    }
}

impl Args {
    fn options(&self) -> Options {
        Options { nodes: self.nodes.map(|n| n as usize), jobs: self.jobs, minutes: self.minutes, broken: None }
    }

    /// The command that reproduces a seed.
    fn command(&self, seed: u64) -> String {
        let mut command = format!("cosched-swarm --seed {seed}");
        if let Some(nodes) = self.nodes {
            command += &format!(" --nodes {nodes}");
        }
        let usual = Options::default();
        if self.jobs != usual.jobs {
            command += &format!(" --jobs {}", self.jobs);
        }
        if self.minutes != usual.minutes {
            command += &format!(" --minutes {}", self.minutes);
        }
        command + " --verbose"
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    quiet_panics();
    match args.seed {
        Some(seed) => one(&args, seed),
        None => many(&args),
    }
}

fn one(args: &Args, seed: u64) -> ExitCode {
    let log = Log { prints: args.verbose && !args.json, ..Log::default() };
    let (outcome, last) = replay(seed, &args.options(), Some(log));
    if args.json {
        println!("{}", serde_json::to_string(&outcome).unwrap_or_default());
    } else {
        if outcome.violation.is_some() && !args.verbose {
            last.iter().for_each(|line| println!("{line}"));
        }
        println!("{}", tell(args, &outcome));
    }
    ExitCode::from(u8::from(outcome.violation.is_some()))
}

fn many(args: &Args) -> ExitCode {
    let seconds = args.seeds.is_none().then(|| Duration::from_secs(args.seconds.unwrap_or(60)));
    let (from, to) = args.seeds.unwrap_or((args.from, u64::MAX));
    let seeds = Seeds { from, to, for_at_most: seconds, failures_max: args.failures as usize };
    let terminal = std::io::stderr().is_terminal();
    let total = swarm(seeds, &args.options(), |total| {
        if terminal {
            eprint!("\r{}\x1b[K", progress(total));
        }
    });
    if terminal {
        eprint!("\r\x1b[K");
    }
    if args.json {
        println!("{}", serde_json::to_string(&total).unwrap_or_default());
    } else {
        for outcome in &total.failures {
            // Runs the seed again, with a log, to get the last events.
            let (_, last) = replay(outcome.seed, &args.options(), Some(Log::default()));
            last.iter().for_each(|line| println!("{line}"));
            println!("{}", tell(args, outcome));
        }
        println!("{}", sum(&total));
    }
    ExitCode::from(u8::from(!total.failures.is_empty()))
}

fn progress(total: &Total) -> String {
    let Total { seeds, last, failures, counts, wall_s, .. } = total;
    let (failed, jobs, faults) = (failures.len(), counts.jobs, counts.faults);
    format!("{wall_s:.0} s: {seeds} seeds (to {last}), {failed} failed; {jobs} jobs, {faults} faults")
}

fn tell(args: &Args, outcome: &Outcome) -> String {
    let Outcome { seed, violation, counts, simulated_ns, renewals_per_h, others_per_h } = outcome;
    match violation {
        Some(Violation { invariant, what, at_ns }) => {
            let (at_s, command) = (*at_ns as f64 / 1e9, args.command(*seed));
            format!("seed {seed} FAILED after {at_s:.4} s: {invariant}: {what}\nto repeat it: {command}")
        }
        None => {
            let Counts { jobs, plans, slots, asks, faults, .. } = counts;
            format!(
                "seed {seed}: ok; {jobs} jobs, {plans} plans, {slots} slots, {asks} requests, {faults} faults in {:.0} s; \
                 quiet: {renewals_per_h} renewals and {others_per_h} other operations in an hour",
                *simulated_ns as f64 / 1e9
            )
        }
    }
}

fn sum(total: &Total) -> String {
    let Total { seeds, first, last, failures, counts, simulated_h, wall_s, .. } = total;
    let Counts { jobs, plans, slots, asks, faults, conflicts, chosen, .. } = counts;
    format!(
        "{seeds} seeds ({first} to {last}) in {wall_s:.0} s, {} failed: {jobs} jobs, {plans} plans, {slots} slots, {asks} \
         requests, {faults} faults, {conflicts} conflicts, {chosen} choices of auto, {simulated_h:.1} h of simulated time\nquiet clusters: at most {} \
         renewals and {} other operations in an hour",
        failures.len(),
        total.renewals_per_h_max,
        total.others_per_h_max
    )
}
