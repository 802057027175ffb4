//! The CPUs that a process may use, and the CPU time that all processes together use on them.

use std::fs;

use crate::load::CpuTicks;

/// The number of threads of this process that can run at a time: its CPUs, limited by the quota of its cgroups.
pub fn cpus_usable() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The CPU time used on these CPUs since boot, in nanoseconds: by all processes, by interrupts, and by a hypervisor (/proc/stat). Counted in ticks of
/// 10 ms. `None` when /proc/stat cannot be read or lacks one of the CPUs.
pub fn cpus_busy_ns(cpus: &[usize]) -> Option<u64> {
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    CpuTicks::parse(&fs::read_to_string("/proc/stat").ok()?).busy(cpus).map(|ticks| ticks * tick_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy_ticks(stat: &str, cpus: &[usize]) -> Option<u64> {
        CpuTicks::parse(stat).busy(cpus)
    }

    const STAT: &str = "\
cpu  10 20 30 40 50 60 70 80 5 0
cpu0 1 2 3 4 5 6 7 8 1 0
cpu1 9 18 27 36 45 54 63 72 4 0
cpu10 1000 0 0 0 0 0 0 0 0 0
intr 1 2 3
";

    #[test]
    fn what_is_not_idle_is_busy() {
        assert_eq!(busy_ticks(STAT, &[0]), Some(1 + 2 + 3 + 6 + 7 + 8));
        assert_eq!(busy_ticks(STAT, &[0, 1]), Some(27 * 10));
        assert_eq!(busy_ticks(STAT, &[10]), Some(1000), "not the beginning of another's name");
        assert_eq!(busy_ticks(STAT, &[2]), None);
        assert_eq!(busy_ticks("cpu0 1 2", &[0]), None);
    }

    #[test]
    fn this_machine_tells() {
        let before = cpus_busy_ns(&[0]).unwrap();
        assert!(cpus_busy_ns(&[0]).unwrap() >= before && before > 0);
        assert!(cpus_usable() >= 1);
    }
}
