//! What flexible coscheduling (`fcs.rs`) sees of a process, and what it needs. The papers' thresholds are those of one machine; these are
//! stated here.

/// A process that computes this long between two receives is loose: the time of half a quantum of the highest level.
const COARSE_NS: u64 = 10_000_000;
/// A process is judged after this number of receives, or after computing for twice `COARSE_NS`.
const RECEIVES_MIN: u64 = 8;
/// After this number of judgements it is measured again as a coscheduled one: its wait may have been due to its class.
const AGAIN: u32 = 20;

/// What a process needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Needs {
    #[default]
    Coscheduled,
    Frustrated,
    Loose,
}

/// A process as it was seen in its own turns since it was last judged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Grain {
    pub(super) needs: Needs,
    compute_ns: u64,
    wait_ns: u64,
    receives: u64,
    judged: u32,
    /// All of its CPU time, in any turn.
    cpu_ns: u64,
}

impl Grain {
    pub(super) fn cpu_ns(&self) -> u64 {
        self.cpu_ns
    }

    /// It has used a CPU; in its own turn what it computed counts.
    pub(super) fn used_cpu(&mut self, ns: u64, counts: bool) {
        self.cpu_ns += ns;
        self.compute_ns += if counts { ns } else { 0 };
    }

    /// It has received a message in its own turn.
    pub(super) fn received(&mut self, waited_ns: u64) {
        self.wait_ns += waited_ns;
        self.receives += 1;
    }

    /// Judges the process, if enough was seen of it. A wait of up to the spin time is the message's own.
    pub(super) fn judge(&mut self, spin_ns: u64) {
        if self.receives < RECEIVES_MIN && self.compute_ns < 2 * COARSE_NS {
            return;
        }
        let each = |ns: u64| ns / self.receives.max(1);
        let needs = if each(self.compute_ns) >= COARSE_NS {
            Needs::Loose
        } else if self.wait_ns > self.compute_ns / 2 && each(self.wait_ns) > spin_ns {
            Needs::Frustrated
        } else {
            Needs::Coscheduled
        };
        let judged = self.judged + 1;
        let needs = if judged.is_multiple_of(AGAIN) { Needs::Coscheduled } else { needs };
        *self = Grain { needs, judged, cpu_ns: self.cpu_ns, ..Grain::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(compute_ns: u64, wait_ns: u64, receives: u64) -> Needs {
        let mut grain = Grain::default();
        grain.used_cpu(compute_ns, true);
        (0..receives).for_each(|_| grain.received(wait_ns / receives));
        grain.judge(200_000);
        grain.needs
    }

    #[test]
    fn grain_and_waits_decide() {
        let ms = 1_000_000;
        assert_eq!(judged(10 * ms, ms, 10), Needs::Coscheduled, "it computes 1 ms and waits 0.1 ms");
        assert_eq!(judged(ms, 2 * ms, 10), Needs::Coscheduled, "a wait of 0.2 ms is the message's own");
        assert_eq!(judged(10 * ms, 6 * ms, 10), Needs::Frustrated);
        assert_eq!(judged(100 * ms, 90 * ms, 10), Needs::Loose, "it computes 10 ms");
        assert_eq!(judged(20 * ms, 0, 0), Needs::Loose);
        assert_eq!(judged(10 * ms, 70 * ms, 7), Needs::Coscheduled, "too little was seen");
        let mut grain = Grain::default();
        for judged in 1..=AGAIN {
            grain.used_cpu(20 * ms, true);
            grain.judge(0);
            assert_eq!(grain.needs == Needs::Coscheduled, judged == AGAIN, "it is measured again from time to time");
        }
        assert_eq!(grain.cpu_ns(), 20 * ms * u64::from(AGAIN));
    }
}
