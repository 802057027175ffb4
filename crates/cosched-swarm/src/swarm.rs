//! Many seeds, on all CPUs: each thread takes the next seed and runs it alone.

use crate::run::{Options, Outcome, seed};
use crate::world::Counts;
use serde::Serialize;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The seeds to run.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The first seed.
    pub from: u64,
    /// The seed after the last one.
    pub to: u64,
    /// No seed is started after this time; `None` runs all of them.
    pub for_at_most: Option<Duration>,
    /// Stops after this number of failures.
    pub failures_max: usize,
}

/// The results of all seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Total {
    /// The number of seeds that were run.
    pub seeds: u64,
    /// The first of them.
    pub first: u64,
    /// The last of them.
    pub last: u64,
    /// Those that failed, in the order of the seeds.
    pub failures: Vec<Outcome>,
    /// What happened in all of them, counted.
    pub counts: Counts,
    /// Simulated time, in hours.
    pub simulated_h: f64,
    /// While idle: renewals of leases in an hour, the maximum over the seeds.
    pub renewals_per_h_max: u64,
    /// While idle: all other requests to the store in an hour, the maximum over the seeds.
    pub others_per_h_max: u64,
    /// Wall-clock time, in seconds.
    pub wall_s: f64,
}

impl Total {
    fn add(&mut self, outcome: Outcome) {
        self.first = if self.seeds == 0 { outcome.seed } else { self.first.min(outcome.seed) };
        self.last = self.last.max(outcome.seed);
        self.seeds += 1;
        let (sum, one) = (&mut self.counts, &outcome.counts);
        sum.events += one.events;
        sum.jobs += one.jobs;
        sum.begun += one.begun;
        sum.plans += one.plans;
        sum.slots += one.slots;
        sum.conflicts += one.conflicts;
        sum.missed += one.missed;
        sum.chosen += one.chosen;
        sum.asks += one.asks;
        sum.faults += one.faults;
        self.simulated_h += outcome.simulated_ns as f64 / 3.6e12;
        self.renewals_per_h_max = self.renewals_per_h_max.max(outcome.renewals_per_h);
        self.others_per_h_max = self.others_per_h_max.max(outcome.others_per_h);
        if outcome.violation.is_some() {
            self.failures.push(outcome);
            self.failures.sort_by_key(|outcome| outcome.seed);
        }
    }
}

/// Runs seeds; `progress` is called with the totals about once a second.
pub fn swarm(seeds: Seeds, options: &Options, progress: impl Fn(&Total) + Sync) -> Total {
    let begin = Instant::now();
    let next = AtomicU64::new(seeds.from);
    let stop = AtomicBool::new(false);
    let shared = Mutex::new((Total::default(), begin));
    let work = || {
        loop {
            let late = seeds.for_at_most.is_some_and(|most| begin.elapsed() >= most);
            let mine = next.fetch_add(1, Ordering::Relaxed);
            if late || mine >= seeds.to || stop.load(Ordering::Relaxed) {
                break;
            }
            let outcome = seed(mine, options);
            let Ok(mut shared) = shared.lock() else { break };
            let (total, said) = &mut *shared;
            total.add(outcome);
            if total.failures.len() >= seeds.failures_max {
                stop.store(true, Ordering::Relaxed);
            }
            if said.elapsed() >= Duration::from_secs(1) {
                *said = Instant::now();
                total.wall_s = begin.elapsed().as_secs_f64();
                progress(total);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let (mut total, _) = shared.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    total.wall_s = begin.elapsed().as_secs_f64();
    total
}
