//! The CPU time due to a job, and the time received: the display's "share received against share due".
//!
//! Both are summed up at each sample of the job's CPU time, and at each change of the plan, and older parts fade: after ten seconds a part counts
//! half. So a change shows within seconds, and single slots do not.

use super::Driver;
use crate::clock::now;
use cosched_core::{JobId, Plan, Standing, Time};
use cosched_node::Running;
use tokio::time::Instant;

/// After this time a part counts half.
const HALF_LIFE_S: f64 = 10.0;
/// Before this much time has passed, a share would mean nothing.
const SPAN_NS_MIN: f64 = 1e9;

/// The fading sums of one job, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    sample: Option<(Instant, u64)>,
    /// Until when the time offered by the plan is counted, and the sum since the last sample.
    due_to: Option<Instant>,
    new_due_ns: u64,
    due_ns: f64,
    received_ns: f64,
    span_ns: f64,
}

impl Ledger {
    /// Counts the time that the plan in force until now offered to the job.
    fn count_due(&mut self, plan: &Plan, job: JobId, running: &Running, held: f64) {
        let to = Instant::now();
        let Some(from) = self.due_to.replace(to) else { return };
        if plan.jobs.get(&job).is_none_or(|planned| planned.standing != Standing::Scheduled) {
            return;
        }
        // The wall clock may have been set meanwhile: only the length of the interval counts.
        let interval_ns = to.duration_since(from).as_nanos() as u64;
        let since = Time(now().0.saturating_sub(interval_ns));
        self.new_due_ns += running.offered_ns(plan, job, since, interval_ns, held);
    }

    /// Counts the CPU time used since the last sample, and closes the interval.
    fn count_received(&mut self, cpu_time_ns: u64) {
        let at = Instant::now();
        let new_due_ns = std::mem::take(&mut self.new_due_ns);
        let Some((then, before_ns)) = self.sample.replace((at, cpu_time_ns)) else { return };
        let span = at.duration_since(then);
        let keep = 0.5f64.powf(span.as_secs_f64() / HALF_LIFE_S);
        self.due_ns = self.due_ns * keep + new_due_ns as f64;
        self.received_ns = self.received_ns * keep + cpu_time_ns.saturating_sub(before_ns) as f64;
        self.span_ns = self.span_ns * keep + span.as_nanos() as f64;
    }

    /// The parts of the machine's CPU time, due and received, 0 to 1; `None` before enough time has passed.
    pub(super) fn shares(&self, cpus: usize) -> Option<(f64, f64)> {
        let all_ns = self.span_ns * cpus as f64;
        (self.span_ns >= SPAN_NS_MIN && cpus > 0).then(|| (self.due_ns / all_ns, self.received_ns / all_ns))
    }
}

impl Driver {
    /// To be called before another plan is in force: counts the time that the present one offered.
    pub(super) fn count_dues(&mut self) {
        let held = self.held_part();
        for (id, live) in &mut self.live {
            live.ledger.count_due(&self.plan, JobId(*id), &self.running, held);
        }
    }

    /// Handles a sample of a job's CPU time.
    pub(super) fn count_share(&mut self, id: u64, cpu_time_ns: u64, held: f64) {
        let Some(live) = self.live.get_mut(&id) else { return };
        live.ledger.count_due(&self.plan, JobId(id), &self.running, held);
        live.ledger.count_received(cpu_time_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn sampled(seconds: u64, cpu_time_ns: u64) -> Ledger {
        let at = Instant::now() - Duration::from_secs(seconds);
        Ledger { sample: Some((at, cpu_time_ns)), ..Ledger::default() }
    }

    fn about(share: f64, expected: f64) -> bool {
        (share - expected).abs() < 0.01
    }

    #[test]
    fn what_was_due_and_received_is_told_as_a_part_of_all_cpus() {
        let mut ledger = sampled(10, 1_000);
        ledger.new_due_ns = 10_000_000_000;
        ledger.count_received(5_000_001_000);
        let (due, received) = ledger.shares(2).unwrap();
        assert!(about(due, 0.5) && about(received, 0.25), "{due} {received}");
    }

    #[test]
    fn before_a_second_has_passed_nothing_is_said() {
        let mut ledger = Ledger::default();
        ledger.count_received(7);
        assert_eq!(ledger.shares(2), None, "the first sample begins");
        ledger.count_received(8);
        assert_eq!(ledger.shares(2), None);
        assert_eq!(sampled(10, 0).shares(0), None);
    }

    #[test]
    fn what_is_ten_seconds_old_weighs_half() {
        let mut ledger = sampled(10, 0);
        (ledger.span_ns, ledger.due_ns, ledger.received_ns) = (10e9, 10e9, 0.0);
        ledger.count_received(10_000_000_000);
        let (due, received) = ledger.shares(1).unwrap();
        assert!(about(due, 5.0 / 15.0) && about(received, 10.0 / 15.0), "{due} {received}");
    }

    #[test]
    fn a_counter_that_went_back_is_no_use_of_time() {
        let mut ledger = sampled(10, 5_000_000_000);
        ledger.count_received(1);
        assert!(about(ledger.shares(1).unwrap().1, 0.0));
    }
}
