//! What failures and repairs do to a batch machine.

use super::nodes::Nodes;
use super::{FailureReport, Failures};
use crate::batch::engine::{EventOrder, Machine, Policy, Schedule};
use crate::batch::filter::BatchJob;

/// Schedules jobs as [`crate::batch::simulate`] does, first come, first served or by EASY, on nodes that fail. A start is the first one of a job.
/// `None`: there were more than [`super::OUTAGES_MAX`] outages. There must be a job.
pub fn simulate_failing(
    jobs: &[BatchJob],
    procs: u32,
    policy: Policy,
    failures: &Failures,
) -> Option<(Schedule, FailureReport)> {
    let nodes = Nodes::new(jobs, procs, failures);
    let with_checkpoints = |job: &BatchJob| BatchJob {
        run_us: nodes.lasts_us(job.run_us),
        estimate_us: nodes.lasts_us(job.estimate_us),
        ..*job
    };
    let mut machine = Machine::new(jobs.iter().map(with_checkpoints).collect(), procs, policy);
    machine.nodes = Some(nodes);
    machine.run(EventOrder::All);
    let (mut schedule, nodes) = (machine.schedule, machine.nodes?);
    if nodes.are_too_many() {
        return None;
    }
    for (start_us, job) in schedule.start_us.iter_mut().zip(&nodes.jobs) {
        *start_us = job.first_start_us.unwrap_or(*start_us);
    }
    schedule.places = Some(nodes.jobs.iter().map(|job| job.places.clone()).collect());
    let span_us = schedule.end_us.iter().max()? - jobs.first()?.submit_us;
    let report = FailureReport {
        outages: nodes.count,
        restarts: nodes.jobs.iter().map(|job| u64::from(job.restarts)).sum(),
        given_up: nodes.jobs.iter().map(|job| job.is_given_up).collect(),
        lost_processor_s: nodes.lost as f64 / 1e6,
        availability: 1.0 - nodes.down_time as f64 / (f64::from(procs) * span_us as f64),
    };
    Some((schedule, report))
}

impl Machine {
    /// The repairs of this instant, then its failures.
    pub(in crate::batch) fn change_nodes(&mut self) {
        let Some(mut nodes) = self.nodes.take() else { return };
        nodes.account(self.now);
        while let Some((time_us, node)) = nodes.down.first().copied().filter(|(time_us, _)| *time_us <= self.now) {
            nodes.down.pop_first();
            let procs = nodes.repair(node);
            self.free += procs;
            self.promised.take(time_us, procs);
        }
        while let Some(outage) = nodes.outages.pop(self.now) {
            nodes.count += 1;
            for job in nodes.jobs_on(outage.node) {
                self.interrupt(&mut nodes, job);
            }
            let procs = nodes.fail(outage.node, outage.up_us);
            self.free -= procs;
            self.promised.give(outage.up_us, procs);
        }
        self.nodes = Some(nodes);
    }

    /// A job loses its processors and what it has not stored, and waits again or is given up.
    fn interrupt(&mut self, nodes: &mut Nodes, job: u32) {
        let Some(since_us) = nodes.end(job) else { return };
        let spec = &mut self.jobs[job as usize];
        self.free += spec.size;
        self.promised.take(since_us + spec.estimate_us, spec.size);
        self.ends.remove(&(since_us + spec.run_us, job));
        let elapsed_us = self.now - since_us;
        let kept_us = nodes.checkpoint.map_or(0, |each| each.kept_us(elapsed_us));
        let state = &mut nodes.jobs[job as usize];
        let mut lost_us = elapsed_us - kept_us;
        if state.restarts < nodes.restarts_max {
            state.restarts += 1;
            state.kept_us += kept_us;
            state.left_us -= kept_us;
            state.left_estimate_us -= kept_us;
            let (left_us, left_estimate_us) = (state.left_us, state.left_estimate_us);
            (spec.run_us, spec.estimate_us) = (nodes.lasts_us(left_us), nodes.lasts_us(left_estimate_us));
            self.queue.push(job, spec);
        } else {
            state.is_given_up = true;
            lost_us += state.kept_us + kept_us;
            self.schedule.end_us[job as usize] = self.now;
        }
        nodes.lost += u128::from(spec.size) * u128::from(lost_us);
    }
}
