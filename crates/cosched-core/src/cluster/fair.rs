//! Fair share: in a queue, users with little past usage come before users with much.
//!
//! Problem: in the order of arrival, all jobs of a user with a thousand jobs are served before any later job.
//! Rule (Slurm's multifactor priority in its simplest form). Usage is CPU time that a user's jobs held, and decays: it halves in
//! every half-life. In a queue the more urgent class comes first; within a class a job counts as having arrived later than
//! it did, by the weight times its owner's part of all usage. So a user with all of the usage waits at most the weight longer
//! than a user with none, and no job starves. With a weight of 0, jobs are served in the order of their arrival.
//! Units: CPU time in milliseconds. The decay within a half-life is linear, so that every node computes the same number.

use super::planner::Planner;
use super::state::{JobRecord, Stage};
use crate::id::JobId;
use crate::time::Time;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The parameters of fair share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairShare {
    /// Usage halves in this time; at least 1.
    pub half_life_ns: u64,
    /// How much later a job counts as submitted when its owner has all of the usage.
    pub weight_ns: u64,
}

impl FairShare {
    /// For each user, by how much later than it did a job counts as having arrived; `users` are the usages of all users.
    pub fn later(&self, users: &BTreeMap<u32, u64>) -> impl Fn(u32) -> u64 {
        let all: u128 = users.values().map(|used| u128::from(*used)).sum::<u128>().max(1);
        move |user| {
            let used = users.get(&user).copied().unwrap_or(0);
            (u128::from(self.weight_ns) * u128::from(used) / all) as u64
        }
    }
}

/// The usage of a user's ended jobs, as of some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time, in milliseconds.
    pub cpu_ms: u64,
    /// The time at which `cpu_ms` was correct.
    pub at: Time,
}

impl Usage {
    /// What is left of it at `now`, after the decay.
    pub fn left(&self, now: Time, half_life_ns: u64) -> u64 {
        let (elapsed, half_life) = (now - self.at, half_life_ns.max(1));
        let left =
            u32::try_from(elapsed / half_life).ok().and_then(|halves| self.cpu_ms.checked_shr(halves)).unwrap_or(0);
        let fades = u128::from(left) * u128::from(elapsed % half_life) / (2 * u128::from(half_life));
        left - fades as u64
    }
}

/// The CPU time that a job has held since it started, in milliseconds.
fn held_ms(job: &JobRecord, now: Time) -> u64 {
    let parts = job.place.as_ref().map_or(&[][..], |place| &place.parts);
    let cpus: u64 = parts.iter().map(|part| u64::from(part.cpus)).sum();
    cpus.saturating_mul((now - job.ready_since) / 1_000_000)
}

impl Planner {
    /// Adds the CPU time of a job that loses its place to its owner's usage.
    pub(super) fn note_usage(&mut self, now: Time, id: JobId) {
        let Some(fair) = self.state.config.fair_share else { return self.state.usage.clear() };
        let Some(job) = self.state.jobs.get(&id) else { return };
        let (owner, used) = (job.spec.owner, held_ms(job, now));
        let usage = self.state.usage.entry(owner).or_default();
        let cpu_ms = usage.left(now, fair.half_life_ns).saturating_add(used);
        *usage = Usage { cpu_ms, at: now };
        self.state.usage.retain(|_, usage| usage.left(now, fair.half_life_ns) > 0);
    }

    /// The waiting jobs, in the order in which they are served.
    pub(super) fn in_order(&self, now: Time) -> Vec<JobId> {
        let mut waiting: Vec<JobId> = self.waiting.iter().map(|(.., id)| *id).collect();
        let Some(fair) = self.state.config.fair_share.filter(|_| waiting.len() > 1) else { return waiting };
        let left = |(user, usage): (&u32, &Usage)| (*user, usage.left(now, fair.half_life_ns));
        let mut users: BTreeMap<u32, u64> = self.state.usage.iter().map(left).collect();
        for job in self.state.jobs.values().filter(|job| job.place.is_some()) {
            let used = users.entry(job.spec.owner).or_default();
            *used = used.saturating_add(held_ms(job, now));
        }
        let later = fair.later(&users);
        waiting.sort_by_cached_key(|id| {
            let job = &self.state.jobs[id];
            // A held job has started: it continues before others start.
            let held = matches!(job.stage, Stage::Waiting(_)) && job.place.is_some();
            (job.spec.queue, !held, job.spec.class, job.ready_since + later(job.spec.owner), job.order)
        });
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_halves_in_every_half_life() {
        let usage = Usage { cpu_ms: 1000, at: Time(100) };
        let table = [(100, 1000), (150, 750), (200, 500), (250, 375), (300, 250), (1100, 0), (50, 1000), (u64::MAX, 0)];
        for (now, left) in table {
            assert_eq!(usage.left(Time(now), 100), left, "at {now}");
        }
    }
}
