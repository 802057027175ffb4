//! The event loop: ends, submissions, and passes over the queue.

use super::failures::Nodes;
use super::filter::BatchJob;
use super::intervals::Places;
use super::profile::{Profile, Reservation};
use super::queue::Queue;
use cosched_core::backfill::Hole;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// How the next job is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// First come, first served.
    Fcfs,
    /// EASY backfilling: a later job may start if that does not delay the start of the first one, according to the
    /// estimates.
    Easy,
    /// EASY with the candidates for backfilling in the order of their estimates, shortest first.
    EasySjbf,
    /// Conservative backfilling: a later job may start if that delays none before it, according to the estimates.
    Conservative,
}

impl Policy {
    /// All policies.
    pub const ALL: [Policy; 4] = [Policy::Fcfs, Policy::Easy, Policy::EasySjbf, Policy::Conservative];

    /// `fcfs`, `easy`, `easy-sjbf`, `conservative`.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Fcfs => "fcfs",
            Policy::Easy => "easy",
            Policy::EasySjbf => "easy-sjbf",
            Policy::Conservative => "conservative",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Policy, String> {
        let found = Policy::ALL.into_iter().find(|policy| policy.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| format!("no batch policy '{text}'; there are {}", Policy::ALL.map(Policy::name).join(", ")))
    }
}

/// When passes over the queue happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EventOrder {
    /// At each instant after all ends and all submissions.
    #[default]
    All,
    /// After each single end (in the order of the log) and each single submission.
    One,
}

/// When every job started and ended, in the order of the jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Start times, µs.
    pub start_us: Vec<u64>,
    /// End times, µs.
    pub end_us: Vec<u64>,
    /// The processors of each job where they do not follow from the times: jobs share them, or nodes fail. Those of a job that changes
    /// them are not known.
    pub places: Option<Vec<Places>>,
    /// ∫ idle processors dt while jobs waited, processor · µs.
    pub idle_while_waiting: u128,
    /// The number of passes over the queue: a measure of the work.
    pub passes: u64,
}

impl Schedule {
    /// Room for the times of these jobs.
    pub(super) fn of(jobs: usize) -> Schedule {
        Schedule { start_us: vec![0; jobs], end_us: vec![0; jobs], ..Schedule::default() }
    }
}

/// Schedules jobs, sorted by submission, on `procs` processors. No job may be larger than the machine or run longer than
/// its estimate ([`super::Filter`] ensures both).
pub fn simulate(jobs: &[BatchJob], procs: u32, policy: Policy, order: EventOrder) -> Schedule {
    let mut machine = Machine::new(jobs.to_vec(), procs, policy);
    machine.run(order);
    machine.schedule
}

pub(super) struct Machine {
    /// After a failure a job is shorter by what its checkpoints have kept.
    pub(super) jobs: Vec<BatchJob>,
    policy: Policy,
    pub(super) now: u64,
    pub(super) free: u32,
    /// The running jobs and their end times.
    pub(super) ends: BTreeSet<(u64, u32)>,
    /// The ends of running jobs by their estimates, and the reservations (conservative).
    pub(super) promised: Profile,
    /// When waiting jobs are to start, in the order of submission (conservative).
    pub(super) reserved: BTreeMap<u32, Reservation>,
    /// Submitted since the last pass, and whether a job has ended since (conservative).
    pub(super) submitted: Vec<u32>,
    pub(super) ended: bool,
    pub(super) queue: Queue,
    pub(super) schedule: Schedule,
    /// If nodes can fail.
    pub(super) nodes: Option<Nodes>,
}

impl Machine {
    pub(super) fn new(jobs: Vec<BatchJob>, procs: u32, policy: Policy) -> Machine {
        Machine {
            policy,
            now: 0,
            free: procs,
            ends: BTreeSet::new(),
            promised: Profile::default(),
            reserved: BTreeMap::new(),
            submitted: Vec::new(),
            ended: false,
            queue: Queue::new(&jobs, policy),
            schedule: Schedule::of(jobs.len()),
            nodes: None,
            jobs,
        }
    }

    pub(super) fn run(&mut self, order: EventOrder) {
        let mut next = 0;
        loop {
            let end = self.ends.first().map(|(time, _)| *time);
            let submit = self.jobs.get(next).map(|job| job.submit_us);
            // A reservation may begin when nothing ends: what was in its way moved forward.
            let reserved = self.reserved.values().map(|reservation| reservation.at_us).min();
            // Without jobs failures do not matter.
            let are_jobs = end.or(submit).is_some() || !self.queue.is_empty();
            let change = self.nodes.as_ref().filter(|nodes| are_jobs && !nodes.are_too_many()).and_then(Nodes::next_us);
            let Some(time) = end.into_iter().chain(submit).chain(reserved).chain(change).min() else { return };
            self.pass_time(time);
            while self.ends.first().is_some_and(|(end, _)| *end == time) {
                self.end();
                if order == EventOrder::One {
                    self.pass();
                }
            }
            self.change_nodes();
            while self.jobs.get(next).is_some_and(|job| job.submit_us == time) {
                self.queue.push(next as u32, &self.jobs[next]);
                if self.policy == Policy::Conservative {
                    self.submitted.push(next as u32);
                }
                next += 1;
                if order == EventOrder::One {
                    self.pass();
                }
            }
            if order == EventOrder::All {
                self.pass();
            }
        }
    }

    fn pass_time(&mut self, time: u64) {
        if !self.queue.is_empty() {
            self.schedule.idle_while_waiting += u128::from(self.free) * u128::from(time - self.now);
        }
        self.now = time;
    }

    fn end(&mut self) {
        let Some((_, job)) = self.ends.pop_first() else { return };
        let spec = &self.jobs[job as usize];
        self.free += spec.size;
        if let Some(nodes) = &mut self.nodes {
            nodes.end(job);
        }
        self.promised.take(self.schedule.start_us[job as usize] + spec.estimate_us, spec.size);
        self.ended = true;
    }

    pub(super) fn start(&mut self, job: u32) {
        let spec = &self.jobs[job as usize];
        self.free -= spec.size;
        self.schedule.start_us[job as usize] = self.now;
        self.schedule.end_us[job as usize] = self.now + spec.run_us;
        self.ends.insert((self.now + spec.run_us, job));
        if let Some(nodes) = &mut self.nodes {
            nodes.start(job, spec.size, self.now);
        }
        self.promised.give(self.now + spec.estimate_us, spec.size);
    }

    /// Starts jobs from the head while they fit, then backfills.
    fn pass(&mut self) {
        self.schedule.passes += 1;
        if self.policy == Policy::Conservative {
            return self.pass_conservative();
        }
        while let Some(head) = self.queue.head() {
            let size = self.jobs[head as usize].size;
            if size > self.free {
                if self.policy != Policy::Fcfs && self.free > 0 {
                    self.backfill(head, size);
                }
                return;
            }
            self.queue.remove(head);
            self.start(head);
        }
    }

    /// One scan: a job starts if it fits now and either ends by the shadow time or needs no more than is left over then.
    fn backfill(&mut self, head: u32, head_size: u32) {
        let mut hole = Hole::beside(head_size.into(), self.free.into(), self.now, self.promised.ends());
        let mut from = 0;
        while let Some((job, next)) = self.queue.next_fitting(from, &hole) {
            from = next;
            if job == head {
                continue;
            }
            let spec = &self.jobs[job as usize];
            hole.start(spec.size.into(), Some(spec.estimate_us));
            self.queue.remove(job);
            self.start(job);
        }
    }
}
