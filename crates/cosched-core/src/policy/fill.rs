//! Whether idle CPUs of a soft slot are worth another gang.
//!
//! The problem: a gang in the background is thawed on all CPUs of its place. On those that the running gang keeps busy the fair scheduler lets it
//! have a tick before it stays below (decision 0005), and a gang whose threads meet waits for that with all of its CPUs. Where one of two CPUs is
//! idle that is a good bargain. Where one of 16 is, and perhaps for a moment only, it is a bad one: with 16 CPUs, four gangs that spin, and slots of 20 ms, 15 % of
//! the CPU time went to gangs outside of their slots, for CPUs that were idle for some 50 µs (decision 0075).
//! The rule: as for whoever rents by the day what he could buy (ski rental). A gang fills once as much CPU time has been seen idle since the last switch or fill as it may
//! cost, the first busy CPU not counted; and if what is left of the slot on the idle CPUs is worth the cost. So one idle CPU of two, and a machine that is idle as a
//! whole, are given away at once, as long as a tick is left.

/// How long a gang in the background may keep a CPU that the running gang wants: a tick of a kernel of 250 Hz.
const TICK_NS: u64 = 4_000_000;

/// A CPU that is idle for this long after a switch may only wait for the incoming gang: of 16 CPUs the last one had it after 0.7 ms (p99).
pub const SETTLE_NS: u64 = 500_000;

/// If no process wanted a CPU for this long, it is idle: the length of a look.
pub const LOOK_NS: u64 = 50_000;

/// Looks per slot, and the bounds of the time between two.
const LOOKS_PER_SLOT: u64 = 8;
const PERIOD_NS_MIN: u64 = 1_000_000;
const PERIOD_NS_MAX: u64 = 10_000_000;

/// The number of periods in which no other gang is let in after one was: it has to be seen first what that one leaves idle.
const REST: u64 = 3;

/// The time between two looks at a CPU.
pub fn period_ns(slot_length_ns: u64) -> u64 {
    (slot_length_ns / LOOKS_PER_SLOT).clamp(PERIOD_NS_MIN, PERIOD_NS_MAX)
}

/// The CPUs that were found idle since the last switch or fill, as a set `S`, and for how long. Does not allocate.
#[derive(Debug, Clone, Default)]
pub struct Idle<S> {
    /// Those that were idle in the period that began at `since_ns`.
    now: S,
    since_ns: u64,
    /// CPU time that was seen idle: each report stands for a period.
    seen_ns: u64,
    not_before_ns: u64,
}

impl<S: Default> Idle<S> {
    /// A switch: what was idle before it does not count.
    pub fn switched(&mut self) {
        *self = Idle::default();
    }

    /// A gang was let onto the idle CPUs.
    pub fn filled(&mut self, now_ns: u64, period_ns: u64) {
        *self = Idle { not_before_ns: now_ns + REST * period_ns, ..Idle::default() };
    }

    /// Adds `reports` of looks that found a CPU idle; `join` adds these CPUs to a set. Returns whether they count.
    pub fn add(&mut self, now_ns: u64, period_ns: u64, reports: u64, join: impl FnOnce(&mut S)) -> bool {
        if now_ns < self.not_before_ns {
            return false;
        }
        if now_ns - self.since_ns > period_ns {
            (self.now, self.since_ns) = (S::default(), now_ns);
        }
        join(&mut self.now);
        self.seen_ns += reports * period_ns;
        true
    }

    /// The first of the gangs that have not been let in for which that pays, if the slot lasts another `left_ns`. `cpus_of` says how many of the
    /// idle CPUs a gang may use, and how many of all.
    pub fn choose<T>(
        &self,
        mut frozen: impl Iterator<Item = T>,
        left_ns: u64,
        cpus_of: impl Fn(&T, &S) -> (u32, u32),
    ) -> Option<T> {
        frozen.find(|gang| {
            let (idle, cpus) = cpus_of(gang, &self.now);
            idle > 0 && pays(idle, cpus, self.seen_ns, left_ns)
        })
    }
}

/// Whether a gang that can use `cpus` CPUs, of which `idle` are idle now, is let onto them: `seen_ns` of CPU time have been idle since the last switch
/// or fill, and the slot lasts another `left_ns`.
fn pays(idle: u32, cpus: u32, seen_ns: u64, left_ns: u64) -> bool {
    let busy = u64::from(cpus.saturating_sub(idle));
    seen_ns >= busy.saturating_sub(1) * TICK_NS && u64::from(idle) * left_ns >= busy * TICK_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn one_idle_cpu_of_two_is_given_away_while_a_tick_is_left() {
        assert!(pays(1, 2, 0, 5 * MS) && pays(1, 2, 0, 4 * MS));
        assert!(!pays(1, 2, 0, 3 * MS));
    }

    #[test]
    fn an_idle_machine_is_given_away_at_once_and_to_the_end() {
        assert!([1, 2, 16, 256].iter().all(|cpus| pays(*cpus, *cpus, 0, 0)));
    }

    #[test]
    fn one_idle_cpu_of_many_has_to_stay_idle() {
        assert!(!pays(1, 16, 10 * MS, 90 * MS), "a moment");
        assert!(pays(1, 16, 56 * MS, 60 * MS));
        assert!(!pays(1, 16, 60 * MS, 40 * MS), "too late");
        assert!(!pays(1, 64, 400 * MS, 100 * MS), "never in a slot of 100 ms");
        assert!(pays(8, 16, 28 * MS, 20 * MS), "half of the machine, after 3.5 ms");
    }

    /// Says that these CPUs are idle.
    fn look(idle: &mut Idle<u64>, now_ns: u64, cpus: u64) -> bool {
        idle.add(now_ns, MS, u64::from(cpus.count_ones()), |all| *all |= cpus)
    }

    /// The first of the gangs, given as sets of the CPUs that they may use.
    fn first(idle: &Idle<u64>, gangs: &[u64]) -> Option<u64> {
        idle.choose(gangs.iter().copied(), 50 * MS, |gang, now| ((gang & now).count_ones(), gang.count_ones()))
    }

    #[test]
    fn the_first_gang_that_has_idle_cpus_enough_comes_in() {
        let mut idle = Idle::default();
        assert_eq!(first(&idle, &[0b11]), None, "none was seen idle");
        assert!(look(&mut idle, 10 * MS, 0b0100));
        assert_eq!(first(&idle, &[0b0011, 0b1100]), Some(0b1100));
        assert_eq!(first(&idle, &[0b1111]), None, "8 ms have to be seen");
        (0..7).for_each(|_| assert!(look(&mut idle, 11 * MS, 0b0100)));
        assert_eq!(first(&idle, &[0b1111]), Some(0b1111));
        idle.switched();
        assert_eq!(first(&idle, &[0b1111, 0b1100]), None, "it was idle before the switch");
    }

    #[test]
    fn a_cpu_that_was_idle_a_period_ago_is_not_idle_now() {
        let mut idle = Idle::default();
        assert!(look(&mut idle, 10 * MS, 0b01) && look(&mut idle, 11 * MS, 0b10));
        assert_eq!(first(&idle, &[0b11]), Some(0b11), "both, within a period");
        assert!(look(&mut idle, 11 * MS + 1, 0b10));
        assert_eq!(first(&idle, &[0b01]), None);
    }

    #[test]
    fn after_a_fill_it_is_seen_first_what_that_gang_leaves_idle() {
        let mut idle = Idle::default();
        idle.filled(10 * MS, MS);
        assert!(!look(&mut idle, 13 * MS - 1, 0b01));
        assert!(look(&mut idle, 13 * MS, 0b01));
        idle.filled(13 * MS, MS);
        idle.switched();
        assert!(look(&mut idle, 14 * MS, 0b01), "a new slot");
    }

    #[test]
    fn a_slot_has_eight_looks_within_bounds() {
        assert_eq!([2, 10, 20, 100, 30_000].map(|ms| period_ns(ms * MS)), [MS, 1_250_000, 2_500_000, 10 * MS, 10 * MS]);
    }
}
