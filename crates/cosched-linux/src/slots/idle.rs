//! What the idle probe has found since the last switch or fill: core's rule says which gang may use it (`fill`).

use cosched_core::fill;

use crate::cpubits::{CpuBits, WORDS};
use crate::observe::{cpus_allowed, monotonic_ns};
use crate::probe::IdleProbe;

use super::Entry;

/// Idle CPUs, and how long.
#[derive(Debug)]
pub(super) struct Idle {
    /// All that the machine has for us.
    all: [u64; WORDS],
    found: fill::Idle<[u64; WORDS]>,
}

impl Idle {
    pub(super) fn new() -> Idle {
        let all = CpuBits::none();
        all.set(&cpus_allowed());
        Idle { all: all.take(), found: fill::Idle::default() }
    }

    pub(super) fn switched(&mut self) {
        self.found.switched();
    }

    pub(super) fn filled(&mut self, probe: &IdleProbe) {
        self.found.filled(monotonic_ns(), probe.period_ns());
    }

    /// Adds what the probe has reported. Returns whether there was something.
    pub(super) fn add(&mut self, probe: &IdleProbe) -> bool {
        let Some((cpus, reports)) = probe.take_report() else { return false };
        self.found.add(monotonic_ns(), probe.period_ns(), reports, |all| {
            all.iter_mut().zip(cpus).for_each(|(all, new)| *all |= new);
        })
    }

    /// The first of these jobs that may use some of them, if the slot lasts another `left_ns`.
    pub(super) fn choose<'a>(
        &self,
        frozen: impl Iterator<Item = (usize, &'a Entry)>,
        left_ns: u64,
    ) -> Option<(usize, &'a Entry)> {
        self.found.choose(frozen, left_ns, |(_, job), now| (job.switch.may_use(now), job.switch.may_use(&self.all)))
    }
}
