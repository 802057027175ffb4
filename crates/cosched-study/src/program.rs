//! Copies of a program under different strategies, and their slowdown.

use crate::error::Error;
use cosched_sim::general::{self, Config, ProgramJob, Work};
use cosched_sim::platform::Platform;
use cosched_sim::program::Program;
use cosched_sim::{Footprint, Outcome, Progress, Silent, Strategy};
use serde::Serialize;
use std::sync::Arc;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name in messages: its file.
    pub name: String,
    /// What each task does.
    pub program: Arc<Program>,
    /// The number of its tasks.
    pub tasks: u32,
    /// What each task wants of the memory.
    pub footprint: Footprint,
}

/// One strategy with one number of copies.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The strategy's name.
    pub strategy: &'static str,
    /// The number of concurrent copies.
    pub copies: u32,
    /// The number of copies that had not ended by the end of the simulated time.
    pub unfinished: usize,
    /// None if a copy had not ended.
    pub mean_execution_s: Option<f64>,
    /// The time until all had ended.
    pub makespan_s: f64,
    /// Of the mean execution time, relative to one copy alone.
    pub slowdown: Option<f64>,
    /// The share of all CPUs' time that was computation.
    pub util_compute: f64,
    /// The share of sending and receiving, if processes pay for it.
    pub messages: f64,
    /// The share of waiting on the CPU.
    pub spin: f64,
    /// The number of context switches of all CPUs.
    pub context_switches: u64,
}

/// Simulates every strategy with every number of copies on the machine that `config` returns for a strategy; its multiprogramming
/// level is raised to the number of copies. `platform`, if given, is that machine. `watch` returns the callback through which each simulation asks whether to continue.
///
/// # Errors
/// If the simulator refuses the input, or one copy takes no time.
pub fn slowdowns<W: FnMut(Progress) -> bool>(
    subject: &Subject,
    platform: Option<&Platform>,
    strategies: &[Strategy],
    copies: &[u32],
    config: impl Fn(Strategy) -> Config,
    watch: impl Fn() -> W,
) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for strategy in strategies {
        let config = |copies: u32| {
            let mut config = config(*strategy);
            // All copies have to share the machine, whatever the multiprogramming level is otherwise.
            config.params.mpl = config.params.mpl.max(copies);
            config
        };
        let alone = simulate(&config(1), platform, 1, subject, &mut watch())?;
        let alone_s = mean_execution_s(&alone);
        if alone_s == Some(0.0) {
            return Err(Error::subject(
                format!("{} takes no time with {} tasks", subject.name, subject.tasks),
                "no slowdown is defined for it",
                "let it compute or communicate; `on` counts tasks from 0",
            ));
        }
        for copies in copies {
            let config = config(*copies);
            let outcome = match *copies {
                1 => alone.clone(),
                copies => simulate(&config, platform, copies, subject, &mut watch())?,
            };
            rows.push(row(*strategy, *copies, &outcome, alone_s, &config));
        }
    }
    Ok(rows)
}

fn simulate(
    config: &Config,
    platform: Option<&Platform>,
    copies: u32,
    subject: &Subject,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, Error> {
    let program = || Arc::clone(&subject.program);
    let job = || ProgramJob {
        arrival_ns: 0,
        tasks: subject.tasks,
        program: program(),
        estimate_ns: None,
        class: cosched_sim::Class::Batch,
        own: general::Own { footprint: subject.footprint, ..general::Own::default() },
    };
    let works: Vec<Work> = (0..copies).map(|_| Work::Program(job())).collect();
    Ok(general::simulate_on(config, platform, &works, &mut Silent, watch)?)
}

fn mean_execution_s(outcome: &Outcome) -> Option<f64> {
    let each: Option<Vec<u64>> = outcome.jobs.iter().map(|job| Some(job.finish_ns? - job.start_ns?)).collect();
    let each = each.filter(|each| !each.is_empty())?;
    Some(each.iter().sum::<u64>() as f64 / each.len() as f64 / 1e9)
}

fn row(strategy: Strategy, copies: u32, outcome: &Outcome, alone_s: Option<f64>, config: &Config) -> Row {
    let mean_execution_s = mean_execution_s(outcome);
    let all = (outcome.sim_end_ns * u64::from(config.params.nodes) * u64::from(config.cpus_per_node)).max(1) as f64;
    Row {
        strategy: strategy.name(),
        copies,
        unfinished: outcome.jobs.iter().filter(|job| job.finish_ns.is_none()).count(),
        mean_execution_s,
        makespan_s: outcome.sim_end_ns as f64 / 1e9,
        slowdown: mean_execution_s.zip(alone_s).map(|(mean, alone)| mean / alone),
        util_compute: outcome.cpu.compute_ns as f64 / all,
        messages: outcome.cpu.message_ns as f64 / all,
        spin: outcome.cpu.spin_ns as f64 / all,
        context_switches: outcome.context_switches,
    }
}
