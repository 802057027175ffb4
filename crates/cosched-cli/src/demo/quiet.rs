//! How busy the machine is with other things: between the runs nothing of the demo's runs, so all that is busy is
//! somebody else's, and makes the times say less.

use std::time::Duration;

/// How long one look takes.
const LOOK: Duration = Duration::from_millis(200);

/// Looks so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Others {
    busy: Vec<f64>,
}

impl Others {
    /// Looks for 200 ms.
    pub(crate) fn look(&mut self) {
        let before = cpu_times();
        std::thread::sleep(LOOK);
        if let (Some(before), Some(after)) = (before, cpu_times()) {
            self.busy.extend(share(before, after));
        }
    }

    /// The mean part of all CPUs' time that others used, 0 to 1; 0 when it could not be seen.
    pub(crate) fn share(&self) -> f64 {
        if self.busy.is_empty() { 0.0 } else { self.busy.iter().sum::<f64>() / self.busy.len() as f64 }
    }
}

/// All and idle CPU time since the start, in ticks.
type Ticks = (u64, u64);

fn share(before: Ticks, after: Ticks) -> Option<f64> {
    let all = after.0.checked_sub(before.0).filter(|all| *all > 0)?;
    let idle = after.1.saturating_sub(before.1).min(all);
    Some((all - idle) as f64 / all as f64)
}

fn cpu_times() -> Option<Ticks> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
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
}
