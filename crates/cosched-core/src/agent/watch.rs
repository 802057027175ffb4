//! Whether one job uses CPU: what the agent keeps of its samples.

use super::AgentConfig;
use crate::id::JobId;
use crate::job::Policy;
use crate::plan::{Plan, PlannedJob, Standing};
use crate::time::Time;

/// A gang must have had at least so many slots before it is judged.
const SLOTS_MIN: u64 = 2;

/// For this long after each plan a job under auto is sampled often: it has just begun, or has other rivals.
const NEWS_NS: u64 = 3_000_000_000;

/// How many samples it gets in the interval between two samples of a sleeping gang.
pub(super) const NEWS_TIMES: u64 = 4;

/// What a sample says about a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It used no CPU for long enough.
    Asleep,
    /// It uses CPU again.
    Awake,
    /// It used none for so long that nobody waits for it any more.
    Dropped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gang,
    Asleep,
    /// Asleep, and not waited for.
    Dropped,
    Other,
}

/// The time since a gang last was seen to use CPU.
#[derive(Clone, Copy, Debug)]
struct Quiet {
    /// Its CPU time then, in nanoseconds.
    base_ns: u64,
    /// Up to when the time below is counted.
    counted_to: Time,
    elapsed_ns: u64,
    /// How much of it were the gang's own slots.
    granted_ns: u64,
}

impl Quiet {
    /// Counts up to `now` under the plan that held so far.
    ///
    /// A clock that was set, or a machine that was suspended, is no idleness: a single step counts no more than half of
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
    /// When it wants to be looked at next.
    pub(super) due: Time,
    kind: Kind,
    /// Until when auto is to see it often.
    news_until: Time,
    /// The CPU time of the last sample, in nanoseconds.
    last_ns: Option<u64>,
    /// `None` after a change: the next sample begins anew.
    quiet: Option<Quiet>,
    /// How long it has slept without any CPU time, up to when that is counted.
    slept_ns: u64,
    slept_to: Time,
}

impl Watch {
    /// A job that is first looked at at `due`.
    pub(super) fn new(due: Time) -> Watch {
        Watch { due, kind: Kind::Other, news_until: Time(0), last_ns: None, quiet: None, slept_ns: 0, slept_to: due }
    }

    pub(super) fn asleep(&self) -> bool {
        self.kind == Kind::Asleep
    }

    /// Sleepers are looked at often, gangs less, and other jobs only for display.
    pub(super) fn interval_ns(&self, now: Time, config: &AgentConfig) -> u64 {
        // A clock that was set back makes no news of what is old.
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

    /// Counts the time that the plan that held so far gave the job.
    pub(super) fn count(&mut self, now: Time, job: JobId, plan: &Plan, config: &AgentConfig) {
        if let Some(quiet) = &mut self.quiet {
            quiet.count(now, job, plan, config);
        }
    }

    /// A new plan holds for the job.
    pub(super) fn plan(&mut self, now: Time, job: JobId, plan: &Plan, config: &AgentConfig) {
        let of_plan = |planned: &PlannedJob| (planned.standing, planned.policy, planned.slot_share.is_some());
        let kind = match plan.jobs.get(&job).map(of_plan) {
            Some((Standing::Asleep, ..)) if self.kind == Kind::Dropped => Kind::Dropped,
            Some((Standing::Asleep, ..)) => Kind::Asleep,
            // One with a share of the slots is never asleep.
            Some((Standing::Scheduled, Policy::Gang, false)) => Kind::Gang,
            _ => Kind::Other,
        };
        if kind != self.kind {
            self.quiet = None;
            self.kind = kind;
            // What made it fall asleep counts, too.
            (self.slept_ns, self.slept_to) = (config.idle_after_ns, now);
        }
        let auto = plan.jobs.get(&job).is_some_and(|planned| planned.auto);
        self.news_until = if auto { now + NEWS_NS } else { Time(0) };
        // Also heals a due time that a clock that went back has left in the far future.
        self.due = self.due.min(now + self.interval_ns(now, config));
    }

    /// Takes a sample of the job's CPU time, under the plan that holds.
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

    /// It sleeps on; any CPU time but next to none begins the long time anew.
    fn sleep_on(&mut self, now: Time, used_ns: u64, cpus: u64, config: &AgentConfig) -> Option<Verdict> {
        let elapsed_ns = now - self.slept_to;
        self.slept_to = now;
        if u128::from(used_ns) > u128::from(elapsed_ns) * u128::from(cpus) * u128::from(config.idle_ppm) / 1_000_000 {
            self.slept_ns = 0;
            return None;
        }
        // As for falling asleep: a clock that was set is no idleness.
        self.slept_ns = self.slept_ns.saturating_add(elapsed_ns.min(config.idle_after_ns / 2));
        if self.slept_ns < config.drop_after_ns {
            return None;
        }
        self.kind = Kind::Dropped;
        Some(Verdict::Dropped)
    }

    fn judge(&mut self, now: Time, job: JobId, cpu_time_ns: u64, plan: &Plan, config: &AgentConfig) -> Option<Verdict> {
        let anew = Quiet { base_ns: cpu_time_ns, counted_to: now, elapsed_ns: 0, granted_ns: 0 };
        let quiet = self.quiet.get_or_insert(anew);
        quiet.count(now, job, plan, config);
        if quiet.granted_ns < SLOTS_MIN * plan.slot_length_ns {
            return None;
        }
        let cpus = plan.jobs.get(&job).map_or(1, |planned| planned.cpus);
        let idle_ns = u128::from(quiet.granted_ns) * u128::from(cpus) * u128::from(config.idle_ppm) / 1_000_000;
        if u128::from(cpu_time_ns.saturating_sub(quiet.base_ns)) > idle_ns {
            *quiet = anew;
            return None;
        }
        (quiet.elapsed_ns >= config.idle_after_ns).then_some(Verdict::Asleep)
    }
}
