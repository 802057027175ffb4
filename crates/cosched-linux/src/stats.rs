//! The slot thread's measurements of itself, without locks.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

pub use crate::histogram::{Buckets, Histogram, Quantiles};

/// The slot thread's counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) switches: AtomicU64,
    pub(crate) late: AtomicU64,
    pub(crate) missed: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) errno: AtomicI32,
    pub(crate) installs: AtomicU64,
    pub(crate) resyncs: AtomicU64,
    pub(crate) fills: AtomicU64,
    pub(crate) looks: AtomicU64,
    pub(crate) look_ns: AtomicU64,
    pub(crate) boosts: AtomicU64,
    pub(crate) rings: AtomicU64,
    pub(crate) wake: Histogram,
    pub(crate) work: Histogram,
    pub(crate) done: Histogram,
    pub(crate) inside_ns: AtomicU64,
    pub(crate) outside_ns: AtomicU64,
    pub(crate) held_ns: AtomicU64,
}

impl Counters {
    pub(crate) fn snapshot(&self) -> SwitchStats {
        SwitchStats {
            count: self.switches.load(Relaxed),
            late: self.late.load(Relaxed),
            missed: self.missed.load(Relaxed),
            errors: self.errors.load(Relaxed),
            last_error: Some(self.errno.load(Relaxed)).filter(|&n| n != 0),
            installs: self.installs.load(Relaxed),
            resyncs: self.resyncs.load(Relaxed),
            fills: self.fills.load(Relaxed),
            looks: self.looks.load(Relaxed),
            look_ns: self.look_ns.load(Relaxed),
            boosts: self.boosts.load(Relaxed),
            rings: self.rings.load(Relaxed),
            inside_ns: self.inside_ns.load(Relaxed),
            outside_ns: self.outside_ns.load(Relaxed),
            held_ns: self.held_ns.load(Relaxed),
            wake: self.wake.quantiles(),
            done: self.done.quantiles(),
        }
    }

    pub(crate) fn reset(&self) {
        let switching = [&self.switches, &self.late, &self.missed, &self.errors, &self.resyncs, &self.fills];
        let boosting = [&self.looks, &self.look_ns, &self.boosts, &self.rings, &self.inside_ns, &self.outside_ns];
        for counter in switching.into_iter().chain(boosting).chain([&self.held_ns]) {
            counter.store(0, Relaxed);
        }
        self.errno.store(0, Relaxed);
        for histogram in [&self.wake, &self.work, &self.done] {
            histogram.reset();
        }
    }

    pub(crate) fn histograms(&self) -> SwitchHistograms {
        SwitchHistograms { wake: self.wake.buckets(), work: self.work.buckets(), done: self.done.buckets() }
    }
}

/// The slot thread's measurements as whole distributions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SwitchHistograms {
    /// From the boundary until the thread runs.
    pub wake: Buckets,
    /// From then until the last write of the switch.
    pub work: Buckets,
    /// From the boundary until the last write of the switch.
    pub done: Buckets,
}

/// What the slot thread has done since it started (or since the last reset).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SwitchStats {
    /// Switches at slot boundaries.
    pub count: u64,
    /// Switches that came later than a tenth of a slot.
    pub late: u64,
    /// Boundaries with a switch that were skipped altogether.
    pub missed: u64,
    /// Writes that the kernel refused.
    pub errors: u64,
    /// The last refusal, as an errno.
    pub last_error: Option<i32>,
    /// Tables taken over.
    pub installs: u64,
    /// How often all states were written again, because the guard had thawed the jobs or the thread had been stopped.
    pub resyncs: u64,
    /// How often a gang in the background was thawed to use idle CPUs.
    pub fills: u64,
    /// Samples of jobs for waiting messages.
    pub looks: u64,
    /// The time of the samples, with the boosts, in nanoseconds.
    pub look_ns: u64,
    /// How often a different job was boosted.
    pub boosts: u64,
    /// How often the bell of arriving messages woke the thread.
    pub rings: u64,
    /// CPU time that gangs used in their slots, in nanoseconds, up to each gang's last switch.
    pub inside_ns: u64,
    /// CPU time that gangs used outside their slots, in nanoseconds. Soft sharing lets them use idle CPUs there.
    pub outside_ns: u64,
    /// The time for which slots were held back for neighbours, in nanoseconds.
    pub held_ns: u64,
    /// From the boundary until the thread runs.
    pub wake: Quantiles,
    /// From the boundary until the last write of the switch.
    pub done: Quantiles,
}
