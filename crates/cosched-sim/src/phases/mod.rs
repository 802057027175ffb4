//! Jobs that alternate between nodes of two pools, as reinforcement learning does between rollouts and training: while one phase runs, the
//! nodes of the other wait.
//!
//! Nodes are provisioned on demand, so no job waits for a free one, and what counts is what they cost. [`PhasePolicy`] says who shares
//! which nodes; `phases` is RollMux (Wu et al. 2025, arXiv 2512.11306) without its migration of long rollouts. docs/workloads.md has the rules.

mod generate;
mod group;
mod lengths;
mod placement;
mod slots;
mod summary;
#[cfg(test)]
mod tests;

pub use crate::workload::phase_jobs::PhaseJob;
pub use generate::generate_phase_jobs;
pub use lengths::Lengths;
pub use summary::{PhaseSummary, summarise_phases};

use serde::Serialize;

/// The most jobs on the same nodes.
const MEMBERS_MAX: usize = 16;

/// The longest switch, cold start and slot, µs.
const TIME_US_MAX: u64 = 3_600_000_000;

/// The nodes that each job has, and with which others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhasePolicy {
    /// Each job has nodes of both pools for itself, from its arrival to its end.
    Dedicated,
    /// Whole jobs take turns on the nodes of a group, both pools at once (as Gandiva's jobs do).
    RoundRobin,
    /// The phases of the jobs of a group take turns on each of its nodes, in one cyclic order (RollMux).
    Phases,
}

impl PhasePolicy {
    /// All, the reference first.
    pub const ALL: [PhasePolicy; 3] = [PhasePolicy::Dedicated, PhasePolicy::RoundRobin, PhasePolicy::Phases];

    /// The name of the policy.
    pub fn name(self) -> &'static str {
        ["dedicated", "round-robin", "phases"][self as usize]
    }
}

/// The machine, and what its changes cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PhaseSettings {
    /// Price of a node-hour of the first and of the second pool.
    pub prices: [f64; 2],
    /// Memory of a node, GB.
    pub memory_gb: u32,
    /// What a node needs to change to another job whose state it has, µs.
    pub switch_us: u64,
    /// What a job needs to load its state, once, on nodes that may run other jobs meanwhile, µs.
    pub cold_us: u64,
    /// The length of a turn of `round-robin`, µs.
    pub slot_us: u64,
    /// The lengths of phases.
    pub lengths: Lengths,
}

impl PhaseSettings {
    /// Says what is wrong with the values: what, and what would be right.
    ///
    /// # Errors
    /// A value out of its range.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if !self.prices.iter().all(|price| (0.0..=1e9).contains(price)) || self.prices == [0.0; 2] {
            return Err(("the prices are out of range", "give two numbers from 0 to 1e9, not both 0"));
        }
        if self.switch_us > TIME_US_MAX || self.cold_us > TIME_US_MAX {
            return Err(("a switch or a cold start is longer than an hour", "give 0s to 1h"));
        }
        if self.slot_us > TIME_US_MAX || self.slot_us <= self.switch_us {
            return Err(("the slot is out of range", "give more than --switch and at most 1h"));
        }
        self.lengths.check()
    }

    /// The time from a job's arrival to its end on nodes of its own if all its phases have these lengths, µs.
    fn alone_us(&self, phases_us: impl Iterator<Item = [u64; 2]>) -> u64 {
        self.cold_us + phases_us.map(|[first, second]| first + second).sum::<u64>()
    }

    /// The same with the longest lengths that are possible.
    fn longest_alone_us(&self, job: &PhaseJob) -> u64 {
        let longest = self.lengths.longest(job);
        self.cold_us + u64::from(job.iterations) * (longest[0] + longest[1])
    }

    /// When a job has to be over by its limit, µs.
    fn deadline_us(&self, job: &PhaseJob) -> u64 {
        let alone_us = self.longest_alone_us(job);
        job.arrival_us + ((job.slowdown_max * alone_us as f64) as u64).max(alone_us)
    }
}

/// What became of the jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseRun {
    /// When each job ended, µs.
    pub end_us: Vec<u64>,
    /// How long nodes of each pool were held, node · µs.
    pub held: [u128; 2],
}

/// Runs jobs, sorted by arrival. The settings must have passed [`PhaseSettings::check`]; equal settings mean equal lengths of all phases under
/// each policy.
pub fn simulate_phases(jobs: &[PhaseJob], policy: PhasePolicy, settings: &PhaseSettings) -> PhaseRun {
    match policy {
        PhasePolicy::Dedicated => dedicated(jobs, settings),
        PhasePolicy::RoundRobin => slots::run(jobs, settings),
        PhasePolicy::Phases => placement::run(jobs, settings),
    }
}

fn dedicated(jobs: &[PhaseJob], settings: &PhaseSettings) -> PhaseRun {
    let mut run = PhaseRun { end_us: Vec::new(), held: [0; 2] };
    for (number, job) in jobs.iter().enumerate() {
        let alone_us = settings.alone_us(settings.lengths.all(number, job));
        run.end_us.push(job.arrival_us + alone_us);
        run.held.iter_mut().zip(job.nodes).for_each(|(held, nodes)| *held += u128::from(nodes) * u128::from(alone_us));
    }
    run
}
