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

/// Whether a gang that can use `cpus` CPUs, of which `idle` are idle now, is let onto them: `seen_ns` of CPU time have been idle since the last switch
/// or fill, and the slot lasts another `left_ns`.
pub fn fill_pays(idle: u32, cpus: u32, seen_ns: u64, left_ns: u64) -> bool {
    let busy = u64::from(cpus.saturating_sub(idle));
    seen_ns >= busy.saturating_sub(1) * TICK_NS && u64::from(idle) * left_ns >= busy * TICK_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn one_idle_cpu_of_two_is_given_away_while_a_tick_is_left() {
        assert!(fill_pays(1, 2, 0, 5 * MS) && fill_pays(1, 2, 0, 4 * MS));
        assert!(!fill_pays(1, 2, 0, 3 * MS));
    }

    #[test]
    fn an_idle_machine_is_given_away_at_once_and_to_the_end() {
        assert!([1, 2, 16, 256].iter().all(|cpus| fill_pays(*cpus, *cpus, 0, 0)));
    }

    #[test]
    fn one_idle_cpu_of_many_has_to_stay_idle() {
        assert!(!fill_pays(1, 16, 10 * MS, 90 * MS), "a moment");
        assert!(fill_pays(1, 16, 56 * MS, 60 * MS));
        assert!(!fill_pays(1, 16, 60 * MS, 40 * MS), "too late");
        assert!(!fill_pays(1, 64, 400 * MS, 100 * MS), "never in a slot of 100 ms");
        assert!(fill_pays(8, 16, 28 * MS, 20 * MS), "half of the machine, after 3.5 ms");
    }
}
