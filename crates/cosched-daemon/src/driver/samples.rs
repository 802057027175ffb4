//! The last hour in samples: the shares due to jobs and received by them, and the load of the CPUs.

use super::{Driver, load::LoadMeter};
use crate::clock::unix_ms;
use cosched_api::{JobSample, Sample, Samples};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

const PERIOD: Duration = Duration::from_secs(10);
const SAMPLES_MAX: usize = 360;
/// The number of jobs in a sample: those that used the most.
const JOBS_MAX: usize = 64;

/// The samples; together they take less than a megabyte.
pub(super) struct Past {
    samples: VecDeque<Sample>,
    load: LoadMeter,
    due: Instant,
}

impl Past {
    pub(super) fn new() -> Past {
        Past { samples: VecDeque::new(), load: LoadMeter::new(), due: Instant::now() + PERIOD }
    }

    /// When the next sample is due; none is taken without jobs.
    pub(super) fn due(&self, jobs: bool) -> Option<Instant> {
        jobs.then_some(self.due)
    }

    fn keep(&mut self, mut sample: Sample) {
        sample.jobs.sort_by(|a, b| b.received.total_cmp(&a.received));
        sample.jobs.truncate(JOBS_MAX);
        self.samples.retain(|old| is_of_last_hour(old, sample.unix_ms));
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// The samples at this time.
    fn view(&self, unix_ms: u64) -> Samples {
        let samples = self.samples.iter().filter(|sample| is_of_last_hour(sample, unix_ms)).cloned().collect();
        Samples { period_ms: PERIOD.as_millis() as u64, samples }
    }
}

/// Whether it is still of interest. A clock that was set leaves samples of times that have not been yet.
fn is_of_last_hour(sample: &Sample, unix_ms: u64) -> bool {
    let hour_ms = PERIOD.as_millis() as u64 * SAMPLES_MAX as u64;
    (unix_ms.saturating_sub(hour_ms)..=unix_ms).contains(&sample.unix_ms)
}

impl Driver {
    /// Takes a sample, if one is due.
    pub(super) fn take_history(&mut self) {
        if self.live.is_empty() || self.past.due > Instant::now() {
            return;
        }
        self.past.due = Instant::now() + PERIOD;
        let cpus = &self.past.load.view(&self.identity.cpus).cpus;
        let busy = cpus.iter().map(|cpu| cpu.busy).sum::<f64>() / cpus.len().max(1) as f64;
        let count = self.identity.cpus.len();
        let of = |(id, live): (&u64, &super::Live)| {
            let (due, received) = live.ledger.shares(count)?;
            Some(JobSample { id: *id, uid: self.state.jobs.get(id)?.uid, due, received })
        };
        let jobs = self.live.iter().filter_map(of).collect();
        self.past.keep(Sample { unix_ms: unix_ms(), busy, jobs });
    }

    /// `GET /v1/samples`
    pub(super) fn view_samples(&self) -> Samples {
        self.past.view(unix_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_kept_and_of_many_jobs_those_that_used_the_most() {
        let mut past = Past::new();
        let job = |id: u64| JobSample { id, uid: 1, due: 0.0, received: id as f64 };
        for unix_ms in 0..(SAMPLES_MAX as u64 + 5) {
            past.keep(Sample { unix_ms, busy: 0.5, jobs: (0..100).map(job).collect() });
        }
        assert_eq!((past.samples.len(), past.samples[0].unix_ms), (SAMPLES_MAX, 5));
        assert_eq!((past.samples[0].jobs.len(), past.samples[0].jobs[0].id), (JOBS_MAX, 99));
        assert_eq!(past.due(false), None);
    }

    #[test]
    fn a_clock_that_is_set_leaves_no_samples_of_other_times() {
        let mut past = Past::new();
        let hour = 3_600_000;
        let mut times = |unix_ms: u64| {
            past.keep(Sample { unix_ms, busy: 0.5, jobs: Vec::new() });
            past.view(unix_ms).samples.iter().map(|sample| sample.unix_ms / 1000).collect::<Vec<_>>()
        };
        assert_eq!((times(10 * hour), times(10 * hour + 10_000)), (vec![36000], vec![36000, 36010]));
        assert_eq!(times(9 * hour), [32400], "set back");
        assert_eq!(times(12 * hour), [43200], "set forward");
        assert_eq!(past.view(11 * hour).samples, [], "set back, and no sample taken since");
    }
}
