//! Other activity on the machine: other processes distort the times, and memory may be short.

use std::fs::read_to_string;
use std::time::Duration;

/// The length of one sample.
const LOOK: Duration = Duration::from_millis(200);

/// Samples between the runs, when no job of the harness runs: all CPU time used then belongs to other processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Others {
    busy: Vec<f64>,
}

impl Others {
    /// Samples for 200 ms.
    pub(crate) fn look(&mut self) {
        let before = cpu_times();
        std::thread::sleep(LOOK);
        if let (Some(before), Some(after)) = (before, cpu_times()) {
            self.busy.extend(share(before, after));
        }
    }

    /// The mean fraction of all CPUs' time that other processes used, 0 to 1; 0 when it could not be measured.
    pub(crate) fn share(&self) -> f64 {
        if self.busy.is_empty() { 0.0 } else { self.busy.iter().sum::<f64>() / self.busy.len() as f64 }
    }
}

/// Total and idle CPU time since boot, in ticks.
type Ticks = (u64, u64);

fn share(before: Ticks, after: Ticks) -> Option<f64> {
    let all = after.0.checked_sub(before.0).filter(|all| *all > 0)?;
    let idle = after.1.saturating_sub(before.1).min(all);
    Some((all - idle) as f64 / all as f64)
}

fn cpu_times() -> Option<Ticks> {
    parse(&read_to_string("/proc/stat").ok()?)
}

/// The CPU time of all CPUs while something ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy(Option<Ticks>);

impl Busy {
    pub(super) fn start() -> Busy {
        Busy(cpu_times())
    }

    /// The fraction of all CPUs' time, 0 to 1, that was not used by the jobs, which used `cpu_s` in `elapsed_s`. Time
    /// stolen by a hypervisor counts as used by others.
    pub(super) fn others_share(self, cpu_s: f64, elapsed_s: f64) -> Option<f64> {
        let all = share(self.0?, cpu_times()?)?;
        let own = cpu_s / (elapsed_s * online()? as f64);
        own.is_finite().then(|| (all - own).clamp(0.0, 1.0))
    }
}

/// The number of online CPUs, whether this process may use them or not.
fn online() -> Option<usize> {
    let text = read_to_string("/proc/stat").ok()?;
    Some(text.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count())
}

/// The memory that new processes could use without swapping, in bytes; `None` where it is unknown.
pub(crate) fn memory_available_bytes() -> Option<u64> {
    Some(field(&read_to_string("/proc/meminfo").ok()?, "MemAvailable:")? * 1024)
}

/// How many processes the kernel has killed since boot for lack of memory, of the machine or of a cgroup.
pub(super) fn oom_kills() -> u64 {
    read_to_string("/proc/vmstat").ok().and_then(|text| field(&text, "oom_kill ")).unwrap_or(0)
}

/// The number after a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The first line of `proc_stat(5)`: user nice system idle iowait irq softirq steal; guest times are in user's.
fn parse(text: &str) -> Option<Ticks> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((ticks.iter().sum(), idle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_counters() {
        let before = parse("cpu  100 0 50 800 50 0 0 0 7 7\ncpu0 1 2 3\n").unwrap();
        let after = parse("cpu  150 0 75 900 75 0 0 0 9 9\ncpu0 1 2 3\n").unwrap();
        assert_eq!(before, (1000, 850));
        assert_eq!(share(before, after), Some(0.375));
        assert_eq!((parse("intr 1 2"), share(before, before)), (None, None));
    }

    #[test]
    fn reads_memory_and_kills() {
        assert_eq!(field("MemFree:  5 kB\nMemAvailable:   2048 kB\n", "MemAvailable:"), Some(2048));
        assert_eq!(field("oom_kill_x 1\noom_kill 3\n", "oom_kill "), Some(3));
        assert!(memory_available_bytes().unwrap() > 1 << 20);
    }
}
