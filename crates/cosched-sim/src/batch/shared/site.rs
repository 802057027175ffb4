//! The event loop: ends, submissions, then a pass of the discipline.

use super::pace::Pace;
use crate::batch::engine::Schedule;
use crate::batch::filter::BatchJob;
use crate::batch::intervals::Places;

/// A job that has started, suspended or not.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) job: u32,
    /// The work that was left at `since_us`.
    left_us: f64,
    since_us: u64,
    pub(super) pace: Pace,
    end_us: Option<u64>,
}

/// The machine and its jobs.
#[derive(Debug)]
pub(super) struct Site<'a> {
    pub(super) jobs: &'a [BatchJob],
    pub(super) procs: u32,
    pub(super) now: u64,
    /// In the order of their starts.
    pub(super) running: Vec<Running>,
    /// In the order of submission.
    pub(super) waiting: Vec<u32>,
    /// Idle processors until the next event.
    pub(super) idle: f64,
    idle_while_waiting: f64,
    schedule: Schedule,
}

/// Starts jobs and sets their paces.
pub(super) trait Discipline {
    /// A job has ended: its processors are free.
    fn ended(&mut self, job: u32);

    /// After all ends and submissions of an instant. Returns when it must act again although nothing may have happened.
    fn pass(&mut self, site: &mut Site<'_>) -> Option<u64>;
}

impl<'a> Site<'a> {
    pub(super) fn new(jobs: &'a [BatchJob], procs: u32) -> Site<'a> {
        let schedule = Schedule { places: Some(vec![Places::new(); jobs.len()]), ..Schedule::of(jobs.len()) };
        let (running, waiting) = (Vec::new(), Vec::new());
        Site { jobs, procs, now: 0, running, waiting, idle: 0.0, idle_while_waiting: 0.0, schedule }
    }

    pub(super) fn run(mut self, discipline: &mut dyn Discipline) -> Schedule {
        let (mut next, mut act) = (0, None);
        loop {
            let end = self.running.iter().filter_map(|running| running.end_us).min();
            let submit = self.jobs.get(next).map(|job| job.submit_us);
            let Some(now) = end.into_iter().chain(submit).chain(act).min() else { break };
            if !self.waiting.is_empty() {
                self.idle_while_waiting += self.idle * (now - self.now) as f64;
            }
            self.now = now;
            for running in self.running.extract_if(.., |running| running.end_us == Some(now)) {
                self.schedule.end_us[running.job as usize] = now;
                discipline.ended(running.job);
            }
            while self.jobs.get(next).is_some_and(|job| job.submit_us == now) {
                self.waiting.push(next as u32);
                next += 1;
            }
            act = discipline.pass(&mut self);
            self.schedule.passes += 1;
        }
        self.schedule.idle_while_waiting = self.idle_while_waiting as u128;
        self.schedule
    }

    pub(super) fn spec(&self, job: u32) -> &BatchJob {
        &self.jobs[job as usize]
    }

    /// Starts a job that waits; it stands still until it gets a pace.
    pub(super) fn start(&mut self, job: u32) {
        self.waiting.retain(|other| *other != job);
        self.schedule.start_us[job as usize] = self.now;
        let left_us = self.spec(job).run_us as f64;
        self.running.push(Running { job, left_us, since_us: self.now, pace: Pace::STOPPED, end_us: None });
    }

    /// The processors that a job keeps to its end.
    pub(super) fn keeps(&mut self, job: u32, places: Places) {
        if let Some(all) = &mut self.schedule.places {
            all[job as usize] = places;
        }
    }

    pub(super) fn started_at(&self, job: u32) -> u64 {
        self.schedule.start_us[job as usize]
    }

    /// The work that a job would still do by its estimate, in µs.
    pub(super) fn estimate_left_us(&self, place: usize) -> f64 {
        let running = &self.running[place];
        let spec = self.spec(running.job);
        let left_us = running.left_us - running.pace.work(running.since_us, self.now);
        left_us + (spec.estimate_us - spec.run_us) as f64
    }

    /// Sets the pace of a job from now on, and adds work that a change costs.
    pub(super) fn set_pace(&mut self, place: usize, pace: Pace, more_us: u64) {
        let now = self.now;
        let running = &mut self.running[place];
        if running.pace == pace && more_us == 0 {
            return;
        }
        // What is left is above 0: the job has not ended. A rate may have rounded it away.
        let left_us = (running.left_us - running.pace.work(running.since_us, now)).max(1e-3) + more_us as f64;
        let end_us = pace.end(now, left_us);
        *running = Running { job: running.job, left_us, since_us: now, pace, end_us };
    }
}
