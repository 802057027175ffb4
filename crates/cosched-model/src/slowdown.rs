//! Slowdown of j equal jobs: Strazdins & Uhlmann 2004, section 5.1, equation 6.
//!
//! t_j = max(t_1, j t_1(α_c + α_CPU, β_CPU)). While a process waits for a message it yields its CPU to another job, so j
//! jobs need j times the CPU time of one, and never less than the time of one alone. The model is optimistic: whenever a
//! process waits, another one is ready (assumption 1), and the cost of cold caches after switches is neglected
//! (assumption 2, but see [`crate::cache`]). Under gang scheduling no other job uses the CPU of a waiting process: t_j =
//! j t_1.

use serde::Serialize;

/// One of j equal jobs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Job {
    /// t_1: its time alone, in s.
    pub alone_s: f64,
    /// CPU time of each of its processes while others share the CPU, t_1(α_c + α_CPU, β_CPU), in s.
    pub cpu_s: f64,
}

/// Why a job is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum JobError {
    /// t_1 is not a positive, finite time.
    #[error("the time of one job must be a finite time above 0 s, not {0}")]
    Time(f64),
    /// A share outside 0 to 1.
    #[error("the CPU share of one job must be above 0 and at most 1, not {0}")]
    Share(f64),
}

impl Job {
    /// Any program, by its time alone in s and the share of that time in which its processes use their CPUs, 0 to 1.
    ///
    /// # Errors
    /// Times that are not above 0, shares that are not above 0 and at most 1.
    pub fn of_share(alone_s: f64, cpu_share: f64) -> Result<Job, JobError> {
        if !(alone_s > 0.0 && alone_s.is_finite()) {
            return Err(JobError::Time(alone_s));
        }
        if !(cpu_share > 0.0 && cpu_share <= 1.0) {
            return Err(JobError::Share(cpu_share));
        }
        Ok(Job { alone_s, cpu_s: alone_s * cpu_share })
    }

    /// t_j under local scheduling, in s; `jobs` from 1.
    pub fn local_s(&self, jobs: u32) -> f64 {
        // With one job there is no other to switch to.
        if jobs <= 1 { self.alone_s } else { self.alone_s.max(f64::from(jobs) * self.cpu_s) }
    }

    /// t_j under gang scheduling, in s.
    pub fn gang_s(&self, jobs: u32) -> f64 {
        f64::from(jobs) * self.alone_s
    }

    /// s_j = t_j / t_1 under local scheduling (equation 5).
    pub fn local_slowdown(&self, jobs: u32) -> f64 {
        self.local_s(jobs) / self.alone_s
    }

    /// The number of jobs from which on the CPUs are always busy: below that another job costs nothing.
    pub fn crossing(&self) -> f64 {
        self.alone_s / self.cpu_s
    }

    /// The CPU utilisation of j jobs in this model, 0 to 1.
    pub fn utilisation(&self, jobs: u32) -> f64 {
        (f64::from(jobs) * self.cpu_s / self.local_s(jobs)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_job_of_half_cpu_shares_for_nothing_until_two() {
        let job = Job::of_share(10.0, 0.5).unwrap();
        assert_eq!([1, 2, 3, 4].map(|jobs| job.local_s(jobs)), [10.0, 10.0, 15.0, 20.0]);
        assert_eq!([1, 2, 4].map(|jobs| job.gang_s(jobs)), [10.0, 20.0, 40.0]);
        assert_eq!((job.crossing(), job.utilisation(1), job.utilisation(2)), (2.0, 0.5, 1.0));
    }

    #[test]
    fn refuses_what_is_no_time_or_share() {
        for time in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(Job::of_share(time, 0.5), Err(JobError::Time(_))));
        }
        for share in [0.0, -0.1, 1.001, f64::NAN] {
            assert!(matches!(Job::of_share(1.0, share), Err(JobError::Share(_))));
        }
    }

    proptest! {
        #[test]
        fn slowdown_rises_is_at_least_1_and_below_gang(time in 1e-3..1e6_f64, share in 1e-4..=1.0_f64, jobs in 1..1000_u32) {
            let job = Job::of_share(time, share).unwrap();
            let slowdown = job.local_slowdown(jobs);
            prop_assert!(slowdown >= 1.0);
            prop_assert!(job.local_slowdown(jobs + 1) >= slowdown);
            prop_assert!(slowdown <= f64::from(jobs) * (1.0 + 1e-12));
            prop_assert!((job.gang_s(jobs) / job.alone_s - f64::from(jobs)).abs() < 1e-9 * f64::from(jobs));
            prop_assert!(job.utilisation(jobs) <= 1.0);
            prop_assert_eq!(slowdown > 1.0, jobs > 1 && f64::from(jobs) * job.cpu_s > job.alone_s);
        }
    }
}
