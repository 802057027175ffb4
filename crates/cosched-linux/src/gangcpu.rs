//! The CPU time of a gang in its slots, and outside of them (stray CPU).
//!
//! The problem: a gang that runs outside its slots takes CPU time from the one whose slot it is; an operator wants to see how much. The rule: the
//! slot thread reads the gang's CPU time at the start of its slot and a moment after its end, and counts the difference as inside or outside. A
//! moment after, because the kernel accounts the time of a running process at the scheduler's ticks, and that of a frozen one when it has left its
//! CPU. CPU time in that moment counts as inside the slot. Nothing here allocates or locks.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::cgfile;

/// No reading yet.
const UNKNOWN: u64 = u64::MAX;

/// One gang's CPU time. Only the slot thread counts; others may read the totals.
#[derive(Debug)]
pub(crate) struct GangCpu {
    /// cpu.stat of each of its cgroups.
    files: Vec<Arc<File>>,
    last_ns: AtomicU64,
    inside: AtomicBool,
    inside_ns: AtomicU64,
    outside_ns: AtomicU64,
}

/// The CPU time of a gang since the last count, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grown {
    /// In its slots.
    Inside(u64),
    /// Outside of them.
    Outside(u64),
}

impl GangCpu {
    pub(crate) fn of(files: Vec<Arc<File>>) -> GangCpu {
        GangCpu {
            files,
            last_ns: AtomicU64::new(UNKNOWN),
            inside: AtomicBool::new(false),
            inside_ns: AtomicU64::new(0),
            outside_ns: AtomicU64::new(0),
        }
    }

    /// Counts the time used since the last call; from now on the gang is in its slot, or outside.
    pub(crate) fn count(&self, inside_from_now: bool) -> Option<Grown> {
        let now_ns = self.files.iter().filter_map(|file| usage_ns(file)).reduce(|all, more| all + more)?;
        let last_ns = self.last_ns.swap(now_ns, Relaxed);
        let was_inside = self.inside.swap(inside_from_now, Relaxed);
        if last_ns == UNKNOWN {
            return None;
        }
        let grown_ns = now_ns.saturating_sub(last_ns);
        let total = if was_inside { &self.inside_ns } else { &self.outside_ns };
        total.fetch_add(grown_ns, Relaxed);
        Some(if was_inside { Grown::Inside(grown_ns) } else { Grown::Outside(grown_ns) })
    }

    /// The gang has no slots: the time that it uses until it has some again is not counted.
    pub(crate) fn forget(&self) {
        self.last_ns.store(UNKNOWN, Relaxed);
    }

    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.inside_ns.load(Relaxed), self.outside_ns.load(Relaxed))
    }
}

/// The value of "usage_usec", which is the first line of cpu.stat, in nanoseconds.
pub(crate) fn usage_ns(file: &File) -> Option<u64> {
    Some(cgfile::first_number(file, b"usage_usec ")? * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_booked_to_where_the_gang_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cpu.stat");
        let set = |us: u64| std::fs::write(&path, format!("usage_usec {us}\nuser_usec 1\n")).unwrap();
        set(100);
        let cpu = GangCpu::of(vec![Arc::new(File::open(&path).unwrap())]);
        assert_eq!(cpu.count(true), None, "what was before is nobody's");
        set(1100);
        assert_eq!(cpu.count(false), Some(Grown::Inside(1_000_000)));
        set(1150);
        assert_eq!(cpu.count(true), Some(Grown::Outside(50_000)));
        cpu.forget();
        set(9000);
        assert_eq!(cpu.count(false), None, "it had no slots");
        assert_eq!(cpu.totals(), (1_000_000, 50_000));
    }

    #[test]
    fn a_gang_without_the_file_is_not_counted() {
        let cpu = GangCpu::of(Vec::new());
        assert_eq!((cpu.count(true), cpu.totals()), (None, (0, 0)));
    }
}
