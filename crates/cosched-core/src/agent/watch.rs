//! Whether one job uses CPU: the agent's evaluation of its samples.

use super::AgentConfig;
use crate::id::JobId;
use crate::job::Policy;
use crate::plan::{Plan, PlannedJob, Standing};
use crate::time::Time;

/// The minimum number of slots that a gang must have had before it can fall asleep.
const SLOTS_MIN: u64 = 2;

/// For this long after each plan a job under auto is sampled often, because it has just begun or has other rivals.
const NEWS_NS: u64 = 3_000_000_000;

/// The number of samples that it gets in the interval between two samples of a sleeping gang.
pub(super) const NEWS_TIMES: u64 = 4;

/// What a sample says about a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It used no CPU for long enough.
    Asleep,
    /// It uses CPU again.
    Awake,
    /// It used no CPU for so long that it is dropped.
    Dropped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gang,
    Asleep,
    /// Asleep, and no longer waited for.
    Dropped,
    Other,
}

/// The time since a gang was last observed to use CPU.
#[derive(Clone, Copy, Debug)]
struct Quiet {
    /// Its CPU time at that moment, in nanoseconds.
    base_ns: u64,
    /// Up to when the times below are counted.
    counted_to: Time,
    elapsed_ns: u64,
    /// The part of `elapsed_ns` in the gang's own slots.
    granted_ns: u64,
}

impl Quiet {
    /// Counts up to `now`, under the plan that was in force until then.
    ///
    /// A clock that was set, or a machine that was suspended, is not idleness: a single step counts at most half of
    /// the time that it takes to fall asleep.
    fn count(&mut self, now: Time, job: JobId, plan: &Plan, config: &AgentConfig) {
        let step_ns = (now - self.counted_to).min(config.idle_after_ns / 2);
        self.elapsed_ns = self.elapsed_ns.saturating_add(step_ns);
        let from = Time(now.0.saturating_sub(step_ns));
        self.granted_ns = self.granted_ns.saturating_add(plan.owned_ns(job, from, now));
        self.counted_to = now;
    }
}

/// The samples of one job.
#[derive(Debug)]
pub(super) struct Watch {
    /// When it is to be sampled next.
    pub(super) due: Time,
    kind: Kind,
    /// Until when it is sampled often for auto.
    news_until: Time,
    /// The CPU time of the last sample, in nanoseconds.
    last_ns: Option<u64>,
    /// `None` after a change: the next sample starts from the beginning.
    quiet: Option<Quiet>,
    /// How long it has slept without any CPU time, counted up to `slept_to`.
    slept_ns: u64,
    slept_to: Time,
}

impl Watch {
    /// A job with its first sample at `due`.
    pub(super) fn new(due: Time) -> Watch {
        Watch { due, kind: Kind::Other, news_until: Time(0), last_ns: None, quiet: None, slept_ns: 0, slept_to: due }
    }

    pub(super) fn asleep(&self) -> bool {
        self.kind == Kind::Asleep
    }

    /// The interval between samples: short for sleeping gangs, longer for gangs, and longest for other jobs, which are only displayed.
    pub(super) fn interval_ns(&self, now: Time, config: &AgentConfig) -> u64 {
        // A clock that was set back must not make an old plan count as new.
        if self.kind != Kind::Asleep && (1..=NEWS_NS).contains(&(self.news_until - now)) {
            return config.sample_interval_ns / NEWS_TIMES;
        }
        let intervals = match self.kind {
            Kind::Asleep => 1,
            Kind::Gang => 2,
            Kind::Dropped | Kind::Other => 4,
        };
        config.sample_interval_ns.saturating_mul(intervals)
    }

    /// Counts the time that the plan in force until now gave the job.
    pub(super) fn count(&mut self, now: Time, job: JobId, plan: &Plan, config: &AgentConfig) {
        if let Some(quiet) = &mut self.quiet {
            quiet.count(now, job, plan, config);
        }
    }

    /// A new plan is in force for the job.
    pub(super) fn plan(&mut self, now: Time, job: JobId, plan: &Plan, config: &AgentConfig) {
        let of_plan = |planned: &PlannedJob| (planned.standing, planned.policy, planned.slot_share.is_some());
        let kind = match plan.jobs.get(&job).map(of_plan) {
            Some((Standing::Asleep, ..)) if self.kind == Kind::Dropped => Kind::Dropped,
            Some((Standing::Asleep, ..)) => Kind::Asleep,
            // A gang with a share of the slots is never asleep.
            Some((Standing::Scheduled, Policy::Gang, false)) => Kind::Gang,
            _ => Kind::Other,
        };
        if kind != self.kind {
            self.quiet = None;
            self.kind = kind;
            // The idle time before it fell asleep counts, too.
            (self.slept_ns, self.slept_to) = (config.idle_after_ns, now);
        }
        let auto = plan.jobs.get(&job).is_some_and(|planned| planned.auto);
        self.news_until = if auto { now + NEWS_NS } else { Time(0) };
        // Also corrects a due time in the far future, after a clock was set back.
        self.due = self.due.min(now + self.interval_ns(now, config));
    }

    /// Takes a sample of the job's CPU time, under the plan in force.
    pub(super) fn sample(
        &mut self,
        now: Time,
        job: JobId,
        cpu_time_ns: u64,
        plan: &Plan,
        config: &AgentConfig,
    ) -> Option<Verdict> {
        let last_ns = self.last_ns.replace(cpu_time_ns);
        match self.kind {
            Kind::Dropped | Kind::Other => None,
            Kind::Asleep => {
                let used_ns = last_ns.map_or(0, |last| cpu_time_ns.saturating_sub(last));
                let cpus = plan.jobs.get(&job).map_or(1, |planned| planned.cpus);
                if used_ns >= config.wake_cpu_ns.saturating_mul(u64::from(cpus)) {
                    return Some(Verdict::Awake);
                }
                self.sleep_on(now, used_ns, u64::from(cpus), config)
            }
            Kind::Gang => self.judge(now, job, cpu_time_ns, plan, config),
        }
    }

    /// It continues to sleep; CPU time above the idle limit restarts the time until it is dropped.
    fn sleep_on(&mut self, now: Time, used_ns: u64, cpus: u64, config: &AgentConfig) -> Option<Verdict> {
        let elapsed_ns = now - self.slept_to;
        self.slept_to = now;
        if u128::from(used_ns) > u128::from(elapsed_ns) * u128::from(cpus) * u128::from(config.idle_ppm) / 1_000_000 {
            self.slept_ns = 0;
            return None;
        }
        // As for falling asleep: a clock that was set is not idleness.
        self.slept_ns = self.slept_ns.saturating_add(elapsed_ns.min(config.idle_after_ns / 2));
        if self.slept_ns < config.drop_after_ns {
            return None;
        }
        self.kind = Kind::Dropped;
        Some(Verdict::Dropped)
    }

    fn judge(&mut self, now: Time, job: JobId, cpu_time_ns: u64, plan: &Plan, config: &AgentConfig) -> Option<Verdict> {
        let fresh = Quiet { base_ns: cpu_time_ns, counted_to: now, elapsed_ns: 0, granted_ns: 0 };
        let quiet = self.quiet.get_or_insert(fresh);
        quiet.count(now, job, plan, config);
        if quiet.granted_ns < SLOTS_MIN * plan.slot_length_ns {
            return None;
        }
        let cpus = plan.jobs.get(&job).map_or(1, |planned| planned.cpus);
        let idle_ns = u128::from(quiet.granted_ns) * u128::from(cpus) * u128::from(config.idle_ppm) / 1_000_000;
        if u128::from(cpu_time_ns.saturating_sub(quiet.base_ns)) > idle_ns {
            *quiet = fresh;
            return None;
        }
        (quiet.elapsed_ns >= config.idle_after_ns).then_some(Verdict::Asleep)
    }
}
