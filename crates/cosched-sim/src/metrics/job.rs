//! The metrics of a job.

use crate::job::JobSpec;
use crate::outcome::{JobTimes, Outcome};

/// The usual threshold of the bounded slowdown in s: shorter jobs count as if they were that long.
pub const BOUND_S: f64 = 10.0;

/// The times of a job that has ended, in s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobMetrics {
    /// Its place in the job list.
    pub index: usize,
    /// The time in the arrival queue: start − arrival (D26).
    pub wait_s: f64,
    /// From the arrival to the end.
    pub response_s: f64,
    /// From the start to the end (D26).
    pub execution_s: f64,
    /// Response over the time alone; `None` for a job whose time alone is 0.
    pub slowdown: Option<f64>,
    /// max(1, response / max(time alone, threshold)).
    pub bounded_slowdown: f64,
}

/// The jobs that have ended, in the order of their arrival (ties in the order of the list). `bound_s` is the threshold
/// of the bounded slowdown, above 0.
pub fn job_metrics(jobs: &[JobSpec], outcome: &Outcome, bound_s: f64) -> Vec<JobMetrics> {
    let mut order: Vec<usize> = (0..jobs.len().min(outcome.jobs.len())).collect();
    order.sort_by_key(|&index| jobs[index].arrival_ns);
    order.into_iter().filter_map(|index| one(index, &jobs[index], outcome.jobs[index], bound_s)).collect()
}

fn one(index: usize, job: &JobSpec, times: JobTimes, bound_s: f64) -> Option<JobMetrics> {
    let (start_ns, finish_ns) = (times.start_ns?, times.finish_ns?);
    let response_s = seconds_between(job.arrival_ns, finish_ns);
    let alone_s = job.exec_ns as f64 / 1e9;
    Some(JobMetrics {
        index,
        wait_s: seconds_between(job.arrival_ns, start_ns),
        response_s,
        execution_s: seconds_between(start_ns, finish_ns),
        slowdown: (alone_s > 0.0).then(|| response_s / alone_s),
        bounded_slowdown: (response_s / alone_s.max(bound_s)).max(1.0),
    })
}

fn seconds_between(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e9
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::job::JobType;

    const S: u64 = 1_000_000_000;

    pub(in crate::metrics) fn job(arrival_s: u64, tasks: u32, exec_s: u64) -> JobSpec {
        JobSpec {
            arrival_ns: arrival_s * S,
            tasks,
            exec_ns: exec_s * S,
            kind: JobType::J3,
            class: cosched_core::Class::Batch,
            footprint: crate::job::Footprint::default(),
        }
    }

    pub(in crate::metrics) fn times(start_s: u64, finish_s: u64) -> JobTimes {
        JobTimes { start_ns: Some(start_s * S), finish_ns: Some(finish_s * S) }
    }

    #[test]
    fn times_and_slowdowns_by_hand() {
        let jobs = [job(10, 4, 20), job(0, 1, 2), job(3, 1, 0), job(5, 1, 1)];
        let never = JobTimes { start_ns: Some(6 * S), finish_ns: None };
        let outcome = Outcome { jobs: vec![times(15, 75), times(0, 4), times(3, 3), never], ..Outcome::default() };
        let metrics = job_metrics(&jobs, &outcome, BOUND_S);
        let indices: Vec<usize> = metrics.iter().map(|job| job.index).collect();
        assert_eq!(indices, [1, 2, 0], "in the order of arrival, without the one that has not ended");
        let long = metrics[2];
        assert_eq!((long.wait_s, long.execution_s, long.response_s), (5.0, 60.0, 65.0));
        assert_eq!((long.slowdown, long.bounded_slowdown), (Some(3.25), 3.25));
        assert_eq!((metrics[0].slowdown, metrics[0].bounded_slowdown), (Some(2.0), 1.0), "4 s are within the bound");
        assert_eq!((metrics[1].slowdown, metrics[1].bounded_slowdown), (None, 1.0), "no time alone");
        assert_eq!(job_metrics(&jobs, &outcome, 1.0)[0].bounded_slowdown, 2.0);
    }
}
