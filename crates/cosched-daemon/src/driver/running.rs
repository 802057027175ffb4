//! What the plan that holds says of all running jobs together: summed up once a plan, because it is asked for each job.

use cosched_core::{JobId, Plan, Standing, Time};

/// The jobs that take part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Running {
    jobs: u32,
    /// What they use at a time, together.
    cpus: u32,
    weights: u64,
    /// The weights of those without slots.
    local_weights: u64,
    /// What the machine has.
    machine_cpus: u32,
}

impl Running {
    /// Of a plan on a machine of so many CPUs.
    pub(super) fn of(plan: &Plan, machine_cpus: u32) -> Running {
        let mut sum = Running { machine_cpus, ..Running::default() };
        for job in plan.jobs.values().filter(|job| job.standing == Standing::Scheduled) {
            sum.jobs += 1;
            sum.cpus = sum.cpus.saturating_add(job.cpus);
            sum.weights += u64::from(job.weight);
            sum.local_weights += if job.policy.is_local() { u64::from(job.weight) } else { 0 };
        }
        sum
    }

    /// How many other jobs each one has to share with: none, while all that run fit side by side.
    pub(super) fn rivals(&self) -> u32 {
        if self.cpus <= self.machine_cpus { 0 } else { self.jobs.saturating_sub(1) }
    }

    /// The CPU time that the plan offers to a job in an interval: that of its slots, of which local jobs take their part, or
    /// its part by weight.
    pub(super) fn offered_ns(&self, plan: &Plan, job: JobId, since: Time, interval_ns: u64) -> u64 {
        let Some(planned) = plan.jobs.get(&job) else { return 0 };
        let (wanted, own) = (u64::from(planned.cpus) * interval_ns, u64::from(planned.weight));
        match plan.share(job) {
            Some(_) => {
                let slots_ns = u64::from(planned.cpus) * plan.owned_ns(job, since, since + interval_ns);
                let all = (own + self.local_weights).max(1);
                (u128::from(slots_ns) * u128::from(own) / u128::from(all)) as u64
            }
            None => wanted.min(u64::from(self.machine_cpus) * interval_ns * own / self.weights.max(1)),
        }
    }
}
