//! Round robin of whole jobs in slices of seconds to minutes, as Gandiva (Xiao et al. 2018) time-slices jobs on GPUs.
//!
//! At each boundary the jobs that have run least recently come first, and every one that fits gets processors for the slice, whichever are
//! free; the others are suspended. A job that ends leaves its processors to suspended and waiting jobs at once.

use super::pace::Pace;
use super::site::{Discipline, Site};
use serde::Serialize;
use std::collections::BTreeMap;

/// Slices for whole jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RoundRobin {
    /// All started jobs together have at most this multiple of the machine's processors: the memory for suspended ones.
    pub rows: u32,
    /// The length of a slice.
    pub slot_us: u64,
    /// What it costs a job to be resumed.
    pub switch_us: u64,
}

#[derive(Debug)]
pub(super) struct Slices {
    options: RoundRobin,
    /// When a started job last ran.
    ran_us: BTreeMap<u32, u64>,
}

impl Slices {
    pub(super) fn new(options: RoundRobin) -> Slices {
        Slices { options, ran_us: BTreeMap::new() }
    }

    /// Starts jobs in the order of submission while there is memory for them; returns the processors of all that have started.
    fn admit(&mut self, site: &mut Site<'_>) -> u64 {
        let mut held: u64 = site.running.iter().map(|running| u64::from(site.spec(running.job).size)).sum();
        while let Some(job) = site.waiting.first().copied() {
            let size = u64::from(site.spec(job).size);
            if held + size > u64::from(site.procs) * u64::from(self.options.rows) {
                break;
            }
            held += size;
            site.start(job);
            self.ran_us.insert(job, 0);
        }
        held
    }
}

impl Discipline for Slices {
    fn ended(&mut self, job: u32) {
        self.ran_us.remove(&job);
    }

    fn pass(&mut self, site: &mut Site<'_>) -> Option<u64> {
        let now = site.now;
        for running in site.running.iter().filter(|running| running.pace != Pace::STOPPED) {
            self.ran_us.insert(running.job, now);
        }
        let held = self.admit(site);
        // Between boundaries those that run keep on. At one without a pass all had processors.
        let new_slices = now.is_multiple_of(self.options.slot_us);
        let keeps = |place: &usize| !new_slices && site.running[*place].pace != Pace::STOPPED;
        let mut order: Vec<usize> = (0..site.running.len()).collect();
        order.sort_by_key(|place| (!keeps(place), self.ran_us[&site.running[*place].job], *place));
        let mut free = site.procs;
        for place in order {
            let job = site.running[place].job;
            let size = site.spec(job).size;
            let runs = size <= free;
            free -= if runs { size } else { 0 };
            let resumed = runs && site.running[place].pace == Pace::STOPPED && self.ran_us[&job] > 0;
            let more_us = if resumed { self.options.switch_us } else { 0 };
            site.set_pace(place, if runs { Pace::Rate(1.0) } else { Pace::STOPPED }, more_us);
        }
        site.idle = f64::from(free);
        (held > u64::from(site.procs)).then(|| (now / self.options.slot_us + 1) * self.options.slot_us)
    }
}
