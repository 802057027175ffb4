//! Sums over all running jobs of a plan, computed once for each plan because they are needed for each job.

use cosched_core::{JobId, Plan, Standing, Time};

/// The jobs that take part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Running {
    /// The number of jobs.
    pub jobs: u32,
    /// The CPUs that they use at a time, in total.
    cpus: u32,
    weights: u64,
    /// The weights of those without slots.
    local_weights: u64,
    /// The CPUs of the machine.
    machine_cpus: u32,
}

impl Running {
    /// The sums of a plan on a machine with this number of CPUs.
    pub(crate) fn of(plan: &Plan, machine_cpus: u32) -> Running {
        let mut sum = Running { machine_cpus, ..Running::default() };
        for job in plan.jobs.values().filter(|job| job.standing == Standing::Scheduled) {
            sum.jobs += 1;
            sum.cpus = sum.cpus.saturating_add(job.cpus);
            sum.weights += u64::from(job.weight);
            sum.local_weights += if job.policy.is_local() { u64::from(job.weight) } else { 0 };
        }
        sum
    }

    /// The number of other jobs with which each one has to share: 0 while all running jobs fit side by side.
    pub(crate) fn rivals(&self) -> u32 {
        if self.cpus <= self.machine_cpus { 0 } else { self.jobs.saturating_sub(1) }
    }

    /// The CPU time that the plan offers to a job in an interval: that of its slots, less the part of local jobs and that which is held back for
    /// processes outside jobs, 0 to 1; or its part by weight.
    pub fn offered_ns(&self, plan: &Plan, job: JobId, since: Time, interval_ns: u64, held: f64) -> u64 {
        let Some(planned) = plan.jobs.get(&job) else { return 0 };
        let (wanted, own) = (u64::from(planned.cpus) * interval_ns, u64::from(planned.weight));
        match plan.share(job) {
            Some(_) => {
                let slots_ns = u64::from(planned.cpus) * plan.owned_ns(job, since, since + interval_ns);
                let slots_ns = (slots_ns as f64 * (1.0 - held)) as u64;
                let all = (own + self.local_weights).max(1);
                (u128::from(slots_ns) * u128::from(own) / u128::from(all)) as u64
            }
            None => wanted.min(u64::from(self.machine_cpus) * interval_ns * own / self.weights.max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::{Class, Matrix, PlannedJob, Policy, Sharing};

    /// Jobs given by CPUs, policy, standing and weight, on a machine without turns.
    fn plan(jobs: &[(u32, Policy, Standing, u32)]) -> Plan {
        let job = |(cpus, policy, standing, weight)| PlannedJob {
            class: Class::Batch,
            policy,
            auto: false,
            cpus,
            standing,
            slot_share: None,
            weight,
            home: None,
            alone_on: None,
            is_placed: false,
            turns: 0,
        };
        Plan {
            generation: 1,
            epoch: Time(0),
            slot_length_ns: 100,
            from_slot: 0,
            policy: Policy::Gang,
            sharing: Sharing::Soft,
            matrix: Matrix::new(&[]),
            turns: Vec::new(),
            jobs: (1..).map(JobId).zip(jobs.iter().copied().map(job)).collect(),
        }
    }

    #[test]
    fn jobs_that_fit_side_by_side_have_no_rivals() {
        use Standing::{Asleep, Scheduled, Suspended};
        let local = |cpus, standing| (cpus, Policy::Local, standing, 100);
        let rivals = |jobs: &[_]| Running::of(&plan(jobs), 4).rivals();
        assert_eq!(rivals(&[local(2, Scheduled), local(2, Scheduled)]), 0);
        assert_eq!(rivals(&[local(2, Scheduled), local(3, Scheduled)]), 1);
        assert_eq!(
            rivals(&[local(2, Scheduled), local(3, Suspended), local(3, Asleep)]),
            0,
            "who takes no part is none"
        );
        assert_eq!(rivals(&[local(u32::MAX, Scheduled), local(u32::MAX, Scheduled)]), 1);
        assert_eq!(rivals(&[]), 0);
    }

    #[test]
    fn jobs_without_slots_are_offered_their_part_by_weight_and_no_more_than_they_use() {
        let scheduled = |cpus, weight| (cpus, Policy::Local, Standing::Scheduled, weight);
        let plan = plan(&[scheduled(4, 100), scheduled(4, 300), scheduled(1, 100)]);
        let running = Running::of(&plan, 4);
        let offered = |id| running.offered_ns(&plan, JobId(id), Time(0), 1000, 0.0);
        assert_eq!([1, 2, 3].map(offered), [800, 2400, 800]);
        assert_eq!(offered(9), 0, "no such job");
        let alone = Running::of(&self::plan(&[scheduled(1, 100)]), 4);
        assert_eq!(alone.offered_ns(&plan, JobId(3), Time(0), 1000, 0.0), 1000);
    }
}
