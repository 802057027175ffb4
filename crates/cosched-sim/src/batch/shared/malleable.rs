//! Malleable jobs: the scheduler changes their numbers of processors while they run.
//!
//! The rule, after the strategy of Zojer, Posner and Özden (2026) that keeps jobs at their preferred sizes: the first waiting job
//! starts with what is free and what running jobs have above their own sizes, up to its own; if that is less than its smallest
//! size, the others shrink down to their smallest, the last started first, until it has that. If even that is not enough, it has a
//! reservation, and later ones backfill at their smallest sizes (EASY, by estimates at present sizes; a job that is shrunk later ends
//! later, so a reservation is no promise). What is left over lets jobs grow, the oldest first: all to their own sizes, then to their largest.
//!
//! A job's own size is that of the log. With n processors its speed is S(n) / S(own size), S(n) = 1 / (f + (1 − f) / n) with the
//! serial part f (Amdahl).

use super::pace::Pace;
use super::site::{Discipline, Site};
use crate::draw::Draws;
use cosched_core::backfill::Hole;
use serde::Serialize;
use std::collections::BTreeMap;

/// A day.
const RESIZE_US_MAX: u64 = 86_400_000_000;

/// Which jobs can change their size, how far, and what that costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Malleable {
    /// The part of the jobs that is malleable, drawn for each; 1: all.
    pub part: f64,
    /// Their smallest and their largest size, as parts of their own; at least 1 processor, at most the machine.
    pub least: f64,
    /// See `least`.
    pub most: f64,
    /// The serial part of each job.
    pub serial: f64,
    /// What each change of its size costs a job.
    pub resize_us: u64,
    /// For the draws.
    pub seed: u64,
}

impl Malleable {
    pub(super) fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let of_one = |value: f64| (0.0..=1.0).contains(&value);
        if !of_one(self.part) {
            return Err(("the part of malleable jobs is out of range", "give 0 to 1"));
        }
        if !of_one(self.least) || !(1.0..=1e6).contains(&self.most) {
            return Err((
                "the sizes of malleable jobs are out of range",
                "give a smallest of 0 to 1 and a largest of 1 or more",
            ));
        }
        if !of_one(self.serial) {
            return Err(("the serial part of malleable jobs is out of range", "give 0 to 1"));
        }
        if self.resize_us > RESIZE_US_MAX {
            return Err(("a change of a job's size costs more than a day", "give less"));
        }
        Ok(())
    }

    fn speed_up(&self, size: u32) -> f64 {
        1.0 / (self.serial + (1.0 - self.serial) / f64::from(size))
    }
}

#[derive(Debug)]
pub(super) struct Sizes {
    options: Malleable,
    /// The sizes of running jobs.
    sizes: BTreeMap<u32, u32>,
    free: u32,
}

/// What a job may have.
#[derive(Clone, Copy, Debug)]
struct Limits {
    least: u32,
    own: u32,
    most: u32,
}

impl Sizes {
    pub(super) fn new(options: Malleable) -> Sizes {
        Sizes { options, sizes: BTreeMap::new(), free: 0 }
    }

    fn limits(&self, site: &Site<'_>, job: u32) -> Limits {
        let spec = site.spec(job);
        let own = spec.size;
        if Draws::new(self.options.seed, job.into(), 0).unit(0, 0) >= self.options.part {
            return Limits { least: own, own, most: own };
        }
        let of = |part: f64| (f64::from(own) * part).round() as u32;
        Limits { least: of(self.options.least).max(1), own, most: of(self.options.most).min(site.procs) }
    }

    /// Processors that are free, or that running jobs have above their smallest sizes.
    fn spare(&self, site: &Site<'_>) -> u32 {
        let above = |(job, size): (&u32, &u32)| *size - self.limits(site, *job).least;
        self.free + self.sizes.iter().map(above).sum::<u32>()
    }

    /// Shrinks jobs, the last started first, down to what `floor` names, until `wanted` processors are free.
    fn reclaim(&mut self, site: &Site<'_>, wanted: u32, floor: fn(Limits) -> u32) {
        for job in site.running.iter().rev().map(|running| running.job) {
            let limits = self.limits(site, job);
            let Some(size) = self.sizes.get_mut(&job) else { continue };
            let less = size.saturating_sub(floor(limits)).min(wanted.saturating_sub(self.free));
            *size -= less;
            self.free += less;
        }
    }

    fn grow(&mut self, site: &Site<'_>, ceiling: fn(Limits) -> u32) {
        for job in site.running.iter().map(|running| running.job) {
            let limits = self.limits(site, job);
            let Some(size) = self.sizes.get_mut(&job) else { continue };
            let more = ceiling(limits).saturating_sub(*size).min(self.free);
            *size += more;
            self.free -= more;
        }
    }

    fn start(&mut self, site: &mut Site<'_>, job: u32, size: u32) {
        self.free -= size;
        self.sizes.insert(job, size);
        site.start(job);
    }

    /// Starts a job if there can be processors for its smallest size.
    fn try_start(&mut self, site: &mut Site<'_>, job: u32) -> bool {
        let Limits { least, own, .. } = self.limits(site, job);
        if self.spare(site) < least {
            return false;
        }
        self.reclaim(site, own, |limits| limits.own);
        self.reclaim(site, least, |limits| limits.least);
        self.start(site, job, own.min(self.free));
        true
    }

    fn backfill(&mut self, site: &mut Site<'_>, head: u32) {
        let spare = self.spare(site);
        let end = |place: usize| {
            let running = &site.running[place];
            let rate = self.rate(site, running.job, self.sizes[&running.job]);
            let end_us = site.now.saturating_add((site.estimate_left_us(place) / rate).ceil().max(1.0) as u64);
            (end_us, u64::from(self.limits(site, running.job).least))
        };
        let mut ends: Vec<(u64, u64)> = (0..site.running.len()).map(end).collect();
        ends.sort_unstable();
        let mut hole = Hole::beside(self.limits(site, head).least.into(), spare.into(), site.now, ends.into_iter());
        for job in site.waiting.iter().skip(1).copied().collect::<Vec<u32>>() {
            let least = self.limits(site, job).least;
            let time_us = Some((site.spec(job).estimate_us as f64 / self.rate(site, job, least)).ceil() as u64);
            if hole.takes(least.into(), time_us) {
                hole.start(least.into(), time_us);
                self.reclaim(site, least, |limits| limits.least);
                self.start(site, job, least);
            }
        }
    }

    fn rate(&self, site: &Site<'_>, job: u32, size: u32) -> f64 {
        self.options.speed_up(size) / self.options.speed_up(site.spec(job).size)
    }
}

impl Discipline for Sizes {
    fn ended(&mut self, job: u32) {
        self.sizes.remove(&job);
    }

    fn pass(&mut self, site: &mut Site<'_>) -> Option<u64> {
        self.free = site.procs - self.sizes.values().sum::<u32>();
        let before = self.sizes.clone();
        while let Some(head) = site.waiting.first().copied()
            && self.try_start(site, head)
        {}
        if let Some(head) = site.waiting.first().copied() {
            self.backfill(site, head);
        }
        self.grow(site, |limits| limits.own);
        self.grow(site, |limits| limits.most);
        for place in 0..site.running.len() {
            let job = site.running[place].job;
            let size = self.sizes[&job];
            let resized = before.get(&job).is_some_and(|before| *before != size);
            let more_us = if resized { self.options.resize_us } else { 0 };
            site.set_pace(place, Pace::Rate(self.rate(site, job, size)), more_us);
        }
        site.idle = f64::from(self.free);
        None
    }
}
