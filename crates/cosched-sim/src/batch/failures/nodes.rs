//! The nodes of a batch machine: which processors jobs have, and which are down.

use super::checkpoint::Checkpoint;
use super::outages::Outages;
use super::{Failures, OUTAGES_MAX};
use crate::batch::filter::BatchJob;
use crate::batch::intervals::{Places, give, take};
use std::collections::{BTreeMap, BTreeSet};

/// What failures need to know of a job.
#[derive(Clone, Debug)]
pub(super) struct JobState {
    /// The work that is left, and that by the estimate.
    pub(super) left_us: u64,
    pub(super) left_estimate_us: u64,
    /// The work that checkpoints have kept.
    pub(super) kept_us: u64,
    pub(super) first_start_us: Option<u64>,
    pub(super) restarts: u32,
    pub(super) is_given_up: bool,
    /// The processors that it had last.
    pub(super) places: Places,
}

/// A job on its processors.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) places: Places,
    pub(super) since_us: u64,
}

/// The state of all nodes.
#[derive(Debug)]
pub(in crate::batch) struct Nodes {
    procs: u32,
    node_procs: u32,
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) restarts_max: u32,
    pub(super) outages: Outages,
    pub(super) jobs: Vec<JobState>,
    pub(super) running: BTreeMap<u32, Running>,
    /// Free processors that are up: intervals.
    pub(super) free: BTreeMap<u32, u32>,
    /// Repairs to come: time and node.
    pub(super) down: BTreeSet<(u64, u32)>,
    down_procs: u64,
    accounted_us: u64,
    /// ∫ processors that are down dt, processor · µs.
    pub(super) down_time: u128,
    /// Processor · µs.
    pub(super) lost: u128,
    pub(super) count: u64,
}

impl Nodes {
    /// `jobs` are not empty.
    pub(super) fn new(jobs: &[BatchJob], procs: u32, failures: &Failures) -> Nodes {
        let begin_us = jobs.first().map_or(0, |job| job.submit_us);
        let state = |job: &BatchJob| JobState {
            left_us: job.run_us,
            left_estimate_us: job.estimate_us,
            kept_us: 0,
            first_start_us: None,
            restarts: 0,
            is_given_up: false,
            places: Places::new(),
        };
        Nodes {
            procs,
            node_procs: failures.node_procs,
            checkpoint: failures.checkpoint,
            restarts_max: failures.restarts_max,
            outages: Outages::new(&failures.source, procs.div_ceil(failures.node_procs), begin_us),
            jobs: jobs.iter().map(state).collect(),
            running: BTreeMap::new(),
            free: BTreeMap::from([(0, procs - 1)]),
            down: BTreeSet::new(),
            down_procs: 0,
            accounted_us: begin_us,
            down_time: 0,
            lost: 0,
            count: 0,
        }
    }

    /// How long work takes with its checkpoints.
    pub(super) fn lasts_us(&self, work_us: u64) -> u64 {
        self.checkpoint.map_or(work_us, |each| each.lasts_us(work_us))
    }

    /// Whether there were more outages than a run may have.
    pub(in crate::batch) fn are_too_many(&self) -> bool {
        self.count > OUTAGES_MAX
    }

    /// The next failure or repair.
    pub(in crate::batch) fn next_us(&self) -> Option<u64> {
        let repair = self.down.first().map(|(time, _)| *time);
        self.outages.next_us().into_iter().chain(repair).min()
    }

    pub(in crate::batch) fn start(&mut self, job: u32, size: u32, now_us: u64) {
        let places = take(&mut self.free, size);
        self.running.insert(job, Running { places, since_us: now_us });
        self.jobs[job as usize].first_start_us.get_or_insert(now_us);
    }

    /// A job leaves its processors.
    pub(in crate::batch) fn end(&mut self, job: u32) -> Option<u64> {
        let Running { places, since_us } = self.running.remove(&job)?;
        places.iter().for_each(|interval| give(&mut self.free, *interval));
        self.jobs[job as usize].places = places;
        Some(since_us)
    }

    /// First and last processor of a node.
    fn interval(&self, node: u32) -> (u32, u32) {
        let low = node * self.node_procs;
        (low, low + (self.node_procs - 1).min(self.procs - 1 - low))
    }

    /// The jobs on a node.
    pub(super) fn jobs_on(&self, node: u32) -> Vec<u32> {
        let (first, last) = self.interval(node);
        let is_there = |running: &Running| running.places.iter().any(|(low, high)| *low <= last && first <= *high);
        self.running.iter().filter(|(_, running)| is_there(running)).map(|(job, _)| *job).collect()
    }

    /// Takes a node without jobs away until its repair; its processors.
    pub(super) fn fail(&mut self, node: u32, up_us: u64) -> u32 {
        let (first, last) = self.interval(node);
        if let Some((low, high)) = self.free.range(..=first).next_back().map(|(low, high)| (*low, *high)) {
            self.free.remove(&low);
            if low < first {
                self.free.insert(low, first - 1);
            }
            if last < high {
                self.free.insert(last + 1, high);
            }
        }
        self.down.insert((up_us, node));
        self.down_procs += u64::from(last - first + 1);
        last - first + 1
    }

    /// A node is up again; its processors.
    pub(super) fn repair(&mut self, node: u32) -> u32 {
        let (first, last) = self.interval(node);
        give(&mut self.free, (first, last));
        self.down_procs -= u64::from(last - first + 1);
        last - first + 1
    }

    /// Accounts for the time until now, before something changes.
    pub(super) fn account(&mut self, now_us: u64) {
        self.down_time += u128::from(self.down_procs) * u128::from(now_us.saturating_sub(self.accounted_us));
        self.accounted_us = self.accounted_us.max(now_us);
    }
}
