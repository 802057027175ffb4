//! The load of each CPU.

use std::path::Path;

use crate::cgfile;

/// The CPUs' counters, in ticks of 1/100 s.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuTicks(Vec<(u32, u64, u64)>);

impl CpuTicks {
    /// The present counters; empty where /proc/stat cannot be read.
    pub fn now() -> CpuTicks {
        CpuTicks::parse(&cgfile::read(Path::new("/proc/stat")).unwrap_or_default())
    }

    pub(crate) fn parse(content: &str) -> CpuTicks {
        let line = |line: &str| {
            let (cpu, fields) = line.strip_prefix("cpu")?.split_once(' ')?;
            let (cpu, fields) = (cpu.parse().ok()?, fields.split_whitespace());
            // user nice system idle iowait irq softirq steal; the two guest times are included in user and nice.
            let ticks: Vec<u64> = fields.take(8).filter_map(|field| field.parse().ok()).collect();
            let idle = ticks.get(3)? + ticks.get(4)?;
            Some((cpu, ticks.iter().sum::<u64>() - idle, idle))
        };
        // The line "cpu " with the sums of all CPUs has no number, and is left out.
        CpuTicks(content.lines().filter_map(line).collect())
    }

    /// The ticks in which these CPUs were not idle; `None` if one is missing.
    pub(crate) fn busy(&self, cpus: &[usize]) -> Option<u64> {
        let of = |cpu: &usize| self.0.iter().find(|(known, ..)| *known as usize == *cpu).map(|(_, busy, _)| *busy);
        cpus.iter().map(of).sum()
    }

    /// For each CPU the part of the time since `then` in which it was not idle, 0 to 1.
    pub fn busy_since(&self, then: &CpuTicks) -> Vec<(u32, f64)> {
        let share = |&(cpu, busy, idle): &(u32, u64, u64)| {
            let &(_, busy_then, idle_then) = then.0.iter().find(|(other, ..)| *other == cpu)?;
            let (busy, idle) = (busy.saturating_sub(busy_then), idle.saturating_sub(idle_then));
            (busy + idle > 0).then(|| (cpu, busy as f64 / (busy + idle) as f64))
        };
        self.0.iter().filter_map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_each_cpu() {
        let then = CpuTicks::parse(
            "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 100 0 100 700 100 0 0 0 50 0\ncpu2 5 0 0 5 0 0 0 0\nintr 7\n",
        );
        let now = CpuTicks::parse("cpu0 130 5 110 730 120 3 2 0 80 0\ncpu2 5 0 0 5 0 0 0 0\n");
        assert_eq!(now.busy_since(&then), [(0, 0.5)], "no tick has passed on CPU 2");
        assert_eq!(CpuTicks::parse("cpu0 1 2\ncpux 1 2 3 4 5 6 7 8\n"), CpuTicks::default());
    }

    #[test]
    fn this_machine_tells() {
        assert!(!CpuTicks::now().0.is_empty());
    }
}
