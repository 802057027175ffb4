//! EASY backfilling with the queue in fair-share order: the planner's rule (core `cluster/fair.rs`), on a batch machine.
//!
//! Usage is processors times run time, and decays; the head is the job that counts as having come first. At each instant all
//! ends come first, then all submissions, then one pass. A pass considers all waiting jobs, because the order differs each
//! time.

use super::engine::Schedule;
use super::filter::BatchJob;
use cosched_core::Time;
use cosched_core::backfill::Hole;
use cosched_core::cluster::{FairShare, Usage};
use std::collections::BTreeMap;

/// Schedules jobs, as [`super::simulate`] does under EASY.
pub fn simulate_fair(jobs: &[BatchJob], procs: u32, fair: FairShare) -> Schedule {
    let mut machine = Machine {
        jobs,
        fair,
        now: 0,
        free: procs,
        running: Vec::new(),
        waiting: Vec::new(),
        used: BTreeMap::new(),
        schedule: Schedule::of(jobs.len()),
    };
    machine.run();
    machine.schedule
}

struct Machine<'a> {
    jobs: &'a [BatchJob],
    fair: FairShare,
    now: u64,
    free: u32,
    running: Vec<u32>,
    waiting: Vec<u32>,
    /// The usage of each user's ended jobs.
    used: BTreeMap<u32, Usage>,
    schedule: Schedule,
}

fn time(us: u64) -> Time {
    Time(us.saturating_mul(1000))
}

impl Machine<'_> {
    fn run(&mut self) {
        let mut next = 0;
        loop {
            let end = self.running.iter().map(|job| self.schedule.end_us[*job as usize]).min();
            let submit = self.jobs.get(next).map(|job| job.submit_us);
            let Some(now) = end.into_iter().chain(submit).min() else { return };
            if !self.waiting.is_empty() {
                self.schedule.idle_while_waiting += u128::from(self.free) * u128::from(now - self.now);
            }
            self.now = now;
            self.end();
            while self.jobs.get(next).is_some_and(|job| job.submit_us == now) {
                self.waiting.push(next as u32);
                next += 1;
            }
            self.pass();
        }
    }

    /// Processor time of a job so far, ms.
    fn held_ms(&self, job: u32) -> u64 {
        let held_us = self.now - self.schedule.start_us[job as usize];
        u64::from(self.jobs[job as usize].size).saturating_mul(held_us / 1000)
    }

    fn end(&mut self) {
        let ends = |job: &u32| self.schedule.end_us[*job as usize] == self.now;
        let over: Vec<u32> = self.running.iter().copied().filter(ends).collect();
        self.running.retain(|job| !over.contains(job));
        for job in over {
            let (more, now) = (self.held_ms(job), time(self.now));
            let usage = self.used.entry(self.jobs[job as usize].user).or_default();
            *usage = Usage { cpu_ms: usage.left(now, self.fair.half_life_ns).saturating_add(more), at: now };
            self.free += self.jobs[job as usize].size;
        }
    }

    /// The waiting jobs, in the order in which they are served.
    fn in_order(&self) -> Vec<u32> {
        let now = time(self.now);
        let left = |(user, usage): (&u32, &Usage)| (*user, usage.left(now, self.fair.half_life_ns));
        let mut users: BTreeMap<u32, u64> = self.used.iter().map(left).collect();
        for job in &self.running {
            *users.entry(self.jobs[*job as usize].user).or_default() += self.held_ms(*job);
        }
        let later = self.fair.later(&users);
        let mut waiting = self.waiting.clone();
        waiting.sort_by_cached_key(|job| {
            let spec = &self.jobs[*job as usize];
            (time(spec.submit_us) + later(spec.user), *job)
        });
        waiting
    }

    fn pass(&mut self) {
        self.schedule.passes += 1;
        let mut hole: Option<Hole> = None;
        for job in self.in_order() {
            let BatchJob { size, estimate_us, .. } = self.jobs[job as usize];
            let starts = match &hole {
                None => size <= self.free,
                Some(hole) => hole.takes(size.into(), Some(estimate_us)),
            };
            if starts {
                self.free -= size;
                self.schedule.start_us[job as usize] = self.now;
                self.schedule.end_us[job as usize] = self.now + self.jobs[job as usize].run_us;
                self.running.push(job);
            }
            match &mut hole {
                Some(hole) if starts => hole.start(size.into(), Some(estimate_us)),
                None if !starts => hole = Some(self.hole(size)),
                _ => (),
            }
        }
        let (jobs, start_us) = (&self.running, &self.schedule.start_us);
        let begins = |job: &u32| start_us[*job as usize] == self.now && jobs.contains(job);
        self.waiting.retain(|job| !begins(job));
    }

    /// What a job of this size, the first that does not fit, leaves to the others.
    fn hole(&self, size: u32) -> Hole {
        let promised = |job: &u32| {
            let spec = &self.jobs[*job as usize];
            (self.schedule.start_us[*job as usize] + spec.estimate_us, u64::from(spec.size))
        };
        let mut ends: Vec<(u64, u64)> = self.running.iter().map(promised).collect();
        ends.sort_unstable();
        Hole::beside(size.into(), self.free.into(), self.now, ends.into_iter())
    }
}
