//! The agent: applies a plan on one node, and observes its jobs.
//!
//! Problem: a gang that waits for a user, a file or the network keeps its slots, and the CPUs in them are idle.
//! Rule (LLNL, "Gang Scheduler Design"): "Any gang scheduled program failing to utilize any CPU cycles for a configurable
//! period of time … will cease being gang scheduled and will revert to normal UNIX scheduling. Should the program resume
//! consumption of CPU cycles, it will resume gang scheduling. … Any program failing to use any CPU cycles for an extended
//! period … is completely removed from the gang scheduler database." The agent requests the jobs' CPU times from the host, at a
//! bounded rate, and reports when a gang has fallen asleep, has woken, or has slept for so long that it is dropped: then it stays with
//! the operating system until a user resumes it. Until a gang sleeps, only time in which it had slots counts.
//! Units: nanoseconds; `idle_ppm` is a millionth of the CPU time that the gang's slots gave it.

mod watch;

use crate::id::{JobId, NodeId};
use crate::plan::{Disposition, Plan};
use crate::reason::Reason;
use crate::sound::Flaw;
use crate::time::Time;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use watch::{Verdict, Watch};

/// The parameters of an agent.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Its node.
    pub node: NodeId,
    /// A gang that used no CPU for this long falls asleep.
    pub idle_after_ns: u64,
    /// A gang that used no CPU for this long while asleep is dropped: the agent no longer watches whether it wakes.
    pub drop_after_ns: u64,
    /// The CPU time that still counts as none, in millionths of the CPU time of its slots. Being stopped and started at every slot
    /// costs even a sleeping process about 30 µs of CPU time, which must not count as work.
    pub idle_ppm: u64,
    /// The CPU time between two samples that wakes a gang, for each of its CPUs. Well above the limit for falling asleep, so
    /// that a gang that works a little does not alternate between the two.
    pub wake_cpu_ns: u64,
    /// The interval between samples of a sleeping job; others are sampled less often.
    pub sample_interval_ns: u64,
    /// The maximum number of samples per second, over all jobs; at least 1.
    pub samples_per_s_max: u32,
    /// Whether the agent announces every slot boundary. Off for a host whose real-time thread has the turns ahead of time.
    pub drive_boundaries: bool,
}

impl Default for AgentConfig {
    fn default() -> AgentConfig {
        AgentConfig {
            node: NodeId(0),
            idle_after_ns: 600_000_000_000,
            drop_after_ns: 7_200_000_000_000,
            idle_ppm: 10_000,
            wake_cpu_ns: 10_000_000,
            sample_interval_ns: 500_000_000,
            samples_per_s_max: 100,
            drive_boundaries: true,
        }
    }
}

impl AgentConfig {
    /// The number of samples in one round, and the time from one round to the next in nanoseconds: as short as the shortest
    /// sample interval of a job, but at most a second, and never with more samples per second than permitted.
    fn round(&self) -> (usize, u64) {
        const SECOND_NS: u64 = 1_000_000_000;
        let samples_per_s = u64::from(self.samples_per_s_max.max(1));
        let rounds_per_s = SECOND_NS.div_ceil((self.sample_interval_ns / watch::NEWS_TIMES).max(1)).min(samples_per_s);
        ((samples_per_s / rounds_per_s) as usize, SECOND_NS.div_ceil(rounds_per_s))
    }
}

/// The agent's inputs.
#[derive(Clone, Debug)]
pub enum AgentInput {
    /// A new plan is in force.
    Plan(Arc<Plan>),
    /// A job's CPU time since its start.
    CpuTime {
        /// The job.
        job: JobId,
        /// The sum over all its processes on this node.
        cpu_time_ns: u64,
    },
}

/// What the host has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentAction {
    /// Give a job this disposition and weight (only with `drive_boundaries`).
    Set {
        /// The job.
        job: JobId,
        /// What it may do from now on.
        to: Disposition,
        /// Its weight, 1 to 10000.
        weight: u32,
        /// Why.
        reason: Reason,
    },
    /// Read a job's CPU time and pass it in.
    Sample {
        /// The job.
        job: JobId,
    },
    /// A gang used no CPU: inform the planner.
    Asleep {
        /// The gang.
        job: JobId,
        /// Why.
        reason: Reason,
    },
    /// A sleeping gang used no CPU for a long time: for the planner it stays asleep until a user resumes it.
    Dropped {
        /// The gang.
        job: JobId,
        /// Why.
        reason: Reason,
    },
    /// A gang uses CPU again: inform the planner.
    Awake {
        /// The gang.
        job: JobId,
        /// Why.
        reason: Reason,
    },
    /// The agent's records of jobs do not match the plan; they are rebuilt from the plan. For the log.
    Unsound(Flaw),
}

/// The agent of one node.
#[derive(Debug, Default)]
pub struct Agent {
    config: AgentConfig,
    plan: Option<Arc<Plan>>,
    watches: BTreeMap<JobId, Watch>,
    set: BTreeMap<JobId, (Disposition, u32)>,
    /// No sample is requested before this, so that the rate is bounded.
    next_samples: Time,
    next_boundary: Option<Time>,
    actions: VecDeque<AgentAction>,
}

impl Agent {
    /// An agent without a plan.
    pub fn new(config: AgentConfig) -> Agent {
        Agent { config, ..Agent::default() }
    }

    /// Takes an input.
    pub fn handle(&mut self, now: Time, input: AgentInput) {
        match input {
            AgentInput::Plan(plan) => self.take_plan(now, plan),
            AgentInput::CpuTime { job, cpu_time_ns } => self.take_cpu_time(now, job, cpu_time_ns),
        }
        if let Err(flaw) = self.check() {
            self.actions.push_back(AgentAction::Unsound(flaw));
            self.watches.clear();
            self.set.clear();
            if let Some(plan) = self.plan.clone() {
                self.take_plan(now, plan);
            }
        }
    }

    /// Checks that every job of the plan is watched and, where the agent drives boundaries, has a disposition, and that no other job is.
    fn check(&self) -> Result<(), Flaw> {
        let there = self.plan.as_ref().map_or(0, |plan| plan.jobs.len());
        let told = if self.config.drive_boundaries { self.set.len() } else { there };
        match [self.watches.len(), told].into_iter().find(|told| *told != there) {
            Some(told) => Err(Flaw::Jobs { told, there }),
            None => Ok(()),
        }
    }

    /// When `handle_timeout` is to be called next, and why.
    pub fn poll_timeout(&self) -> Option<(Time, Reason)> {
        let due = self.watches.values().map(|w| w.due).min();
        let sample = due.map(|due| (due.max(self.next_samples), Reason::SampleDue));
        let boundary = self.next_boundary.map(|t| (t, Reason::SlotBoundary));
        [sample, boundary].into_iter().flatten().min_by_key(|(t, _)| *t)
    }

    /// Time has passed; it is now `now`: does what is due.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.next_boundary.is_some_and(|t| t <= now) {
            self.set_all(now, Reason::SlotBoundary);
        }
        if now >= self.next_samples {
            self.ask_for_samples(now);
        }
    }

    /// The next action that the host has to carry out.
    pub fn poll_action(&mut self) -> Option<AgentAction> {
        self.actions.pop_front()
    }

    fn take_plan(&mut self, now: Time, plan: Arc<Plan>) {
        if self.plan.as_ref().is_some_and(|now| plan.generation < now.generation) {
            // An old plan that arrived late.
            return;
        }
        self.watches.retain(|id, _| plan.jobs.contains_key(id));
        self.set.retain(|id, _| plan.jobs.contains_key(id));
        for id in plan.jobs.keys() {
            let watch = self.watches.entry(*id).or_insert_with(|| Watch::new(now + self.config.sample_interval_ns));
            if let Some(old) = &self.plan {
                watch.count(now, *id, old, &self.config);
            }
            watch.plan(now, *id, &plan, &self.config);
        }
        self.next_samples = self.next_samples.min(now + self.config.round().1);
        self.plan = Some(plan);
        if self.config.drive_boundaries {
            self.set_all(now, Reason::NewPlan);
        }
    }

    fn take_cpu_time(&mut self, now: Time, job: JobId, cpu_time_ns: u64) {
        let (Some(plan), Some(watch)) = (&self.plan, self.watches.get_mut(&job)) else { return };
        match watch.sample(now, job, cpu_time_ns, plan, &self.config) {
            Some(Verdict::Asleep) => self.actions.push_back(AgentAction::Asleep { job, reason: Reason::NoCpuUsed }),
            Some(Verdict::Dropped) => {
                self.actions.push_back(AgentAction::Dropped { job, reason: Reason::NoCpuForLong })
            }
            Some(Verdict::Awake) => self.actions.push_back(AgentAction::Awake { job, reason: Reason::CpuUsed }),
            None => (),
        }
    }

    /// Requests the samples that are due: the longest overdue first, so that no job is forgotten; among equals sleeping gangs,
    /// because others wait for them.
    fn ask_for_samples(&mut self, now: Time) {
        let (samples, gap_ns) = self.config.round();
        let mut due: Vec<(Time, bool, JobId)> =
            self.watches.iter().filter(|(_, w)| w.due <= now).map(|(id, w)| (w.due, !w.asleep(), *id)).collect();
        due.sort_unstable();
        due.truncate(samples);
        for (_, _, job) in &due {
            self.actions.push_back(AgentAction::Sample { job: *job });
            if let Some(watch) = self.watches.get_mut(job) {
                watch.due = now + watch.interval_ns(now, &self.config);
            }
        }
        if !due.is_empty() {
            // Samples that did not fit into this round wait for the next one.
            self.next_samples = now + gap_ns;
        }
    }

    /// Announces what has changed for the present slot, and when the next one begins.
    fn set_all(&mut self, now: Time, reason: Reason) {
        let Some(plan) = &self.plan else { return };
        let slot = plan.slot_at(now);
        for (job, to) in plan.dispositions(slot) {
            let wanted = (to, plan.jobs[&job].weight);
            if self.set.insert(job, wanted) != Some(wanted) {
                self.actions.push_back(AgentAction::Set { job, to, weight: wanted.1, reason });
            }
        }
        self.next_boundary = (plan.turns.len() > 1).then(|| plan.slot_start(slot + 1));
    }
}

#[cfg(test)]
mod tests;
