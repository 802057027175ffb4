//! Whether one job uses CPU: the samples of it that the agent keeps.

use super::AgentConfig;
use crate::job::Policy;
use crate::plan::{PlannedJob, Standing};
use crate::time::Time;

/// A gang must have had at least so many slots before it can be called idle.
const SLOTS_MIN: u64 = 2;

/// What a sample says about a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It used no CPU for long enough.
    Asleep,
    /// It uses CPU again.
    Awake,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gang,
    Asleep,
    Other,
}

/// The samples of one job.
#[derive(Debug)]
pub(super) struct Watch {
    /// When it wants to be looked at next.
    pub(super) due: Time,
    kind: Kind,
    cpus: u64,
    share: (u64, u64),
    slot_length_ns: u64,
    /// Since this sample it has used next to nothing. `None` after a change: the next sample begins anew.
    quiet_since: Option<(Time, u64)>,
}

impl Watch {
    /// A job that is first looked at at `due`.
    pub(super) fn new(due: Time) -> Watch {
        Watch { due, kind: Kind::Other, cpus: 1, share: (0, 1), slot_length_ns: 1, quiet_since: None }
    }

    pub(super) fn asleep(&self) -> bool {
        self.kind == Kind::Asleep
    }

    /// Sleepers are looked at often, gangs less, and other jobs only for display.
    pub(super) fn interval_ns(&self, config: &AgentConfig) -> u64 {
        match self.kind {
            Kind::Asleep => config.sample_interval_ns,
            Kind::Gang => 2 * config.sample_interval_ns,
            Kind::Other => 4 * config.sample_interval_ns,
        }
    }

    /// A new plan holds for the job.
    pub(super) fn plan(
        &mut self,
        planned: &PlannedJob,
        share: (u32, u32),
        slot_length_ns: u64,
        now: Time,
        config: &AgentConfig,
    ) {
        let kind = match (planned.standing, planned.policy) {
            (Standing::Asleep, _) => Kind::Asleep,
            (Standing::Scheduled, Policy::Gang) => Kind::Gang,
            _ => Kind::Other,
        };
        let share = (u64::from(share.0), u64::from(share.1));
        if kind != self.kind {
            self.quiet_since = None;
            self.kind = kind;
            self.due = self.due.min(now + self.interval_ns(config));
        }
        (self.cpus, self.share, self.slot_length_ns) = (u64::from(planned.cpus), share, slot_length_ns);
    }

    /// Takes a sample of the job's CPU time.
    pub(super) fn sample(&mut self, now: Time, cpu_time_ns: u64, config: &AgentConfig) -> Option<Verdict> {
        let Some((since, base)) = self.quiet_since else {
            self.quiet_since = Some((now, cpu_time_ns));
            return None;
        };
        let used = cpu_time_ns.saturating_sub(base);
        match self.kind {
            Kind::Other => None,
            Kind::Asleep => {
                self.quiet_since = Some((now, cpu_time_ns));
                (used >= config.wake_cpu_ns).then_some(Verdict::Awake)
            }
            Kind::Gang => {
                let granted = (now - since) / self.share.1.max(1) * self.share.0;
                if used > granted * self.cpus / 1_000 * config.idle_ppm / 1_000 {
                    self.quiet_since = Some((now, cpu_time_ns));
                    return None;
                }
                let long_enough = now - since >= config.idle_after_ns && granted >= SLOTS_MIN * self.slot_length_ns;
                long_enough.then_some(Verdict::Asleep)
            }
        }
    }
}
