//! What the idle probe has found since the last switch or fill.

use cosched_core::fill_pays;

use crate::cpubits::{CpuBits, WORDS};
use crate::observe::{cpus_allowed, monotonic_ns};
use crate::probe::IdleProbe;
use crate::switch::JobSwitch;

/// The number of the probe's periods in which no other gang is let in after one was: it has to be seen first what that one leaves idle.
const REST: u64 = 3;

/// Idle CPUs, and how long.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// All that the machine has for us.
    all: [u64; WORDS],
    /// Those that were idle in the period of the probe that began then.
    now: [u64; WORDS],
    since_ns: u64,
    /// CPU time that was seen idle: each report stands for a period.
    seen_ns: u64,
    not_before_ns: u64,
}

impl Idle {
    pub(super) fn new() -> Idle {
        let all = CpuBits::none();
        all.set(&cpus_allowed());
        Idle { all: all.take(), ..Idle::default() }
    }

    /// A switch: what was idle before it does not count.
    pub(super) fn switched(&mut self) {
        *self = Idle { all: self.all, ..Idle::default() };
    }

    /// A gang was let onto the idle CPUs.
    pub(super) fn filled(&mut self, probe: &IdleProbe) {
        self.switched();
        self.not_before_ns = monotonic_ns() + REST * probe.period_ns();
    }

    /// Adds what the probe has reported. Returns whether there was something.
    pub(super) fn add(&mut self, probe: &IdleProbe) -> bool {
        let Some((cpus, reports)) = probe.take_report() else { return false };
        let (now_ns, period_ns) = (monotonic_ns(), probe.period_ns());
        if now_ns < self.not_before_ns {
            return false;
        }
        if now_ns - self.since_ns > period_ns {
            (self.now, self.since_ns) = ([0; WORDS], now_ns);
        }
        self.now.iter_mut().zip(cpus).for_each(|(all, new)| *all |= new);
        self.seen_ns += reports * period_ns;
        true
    }

    /// Whether this job may use some of them, if the slot lasts another `left_ns`.
    pub(super) fn pays_for(&self, job: &JobSwitch, left_ns: u64) -> bool {
        let idle = job.may_use(&self.now);
        idle > 0 && fill_pays(idle, job.may_use(&self.all), self.seen_ns, left_ns)
    }
}
