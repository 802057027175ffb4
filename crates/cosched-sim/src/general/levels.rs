//! The feedback queue of a node: 60 levels, first in first out in each (D3 to D5, D23, D24).

use super::process::Pid;
use std::collections::VecDeque;

/// The highest level.
pub(super) const TOP: u8 = 59;

const MS: u64 = 1_000_000;

/// The quantum of a level (D3).
pub(super) fn quantum_ns(level: u8, solaris: bool) -> u64 {
    if solaris {
        return MS
            * match level {
                0..=9 => 200,
                10..=19 => 160,
                20..=29 => 120,
                30..=39 => 80,
                40..=58 => 40,
                _ => 20,
            };
    }
    // 200 − 180·l/59 ms, rounded to the nearest nanosecond.
    (200 * 59 - 180 * u64::from(level)).wrapping_mul(2 * MS).wrapping_add(59) / (2 * 59)
}

/// Ready processes by level. A process's level is kept with the process.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    queues: Vec<VecDeque<Pid>>,
}

impl Levels {
    pub(super) fn new() -> Levels {
        Levels { queues: vec![VecDeque::new(); usize::from(TOP) + 1] }
    }

    pub(super) fn push_tail(&mut self, level: u8, pid: Pid) {
        self.queues[usize::from(level)].push_back(pid);
    }

    pub(super) fn push_head(&mut self, level: u8, pid: Pid) {
        self.queues[usize::from(level)].push_front(pid);
    }

    /// The head of the highest non-empty level, with that level.
    pub(super) fn best(&self) -> Option<(u8, Pid)> {
        let level = (0..self.queues.len()).rev().find(|level| !self.queues[*level].is_empty())?;
        Some((level as u8, self.queues[level][0]))
    }

    pub(super) fn pop_best(&mut self) -> Option<Pid> {
        let (level, _) = self.best()?;
        self.queues[usize::from(level)].pop_front()
    }

    pub(super) fn remove(&mut self, level: u8, pid: Pid) {
        self.queues[usize::from(level)].retain(|other| *other != pid);
    }

    /// Appends levels 58 to 0 to level 59, in that order, and returns the moved processes (D24).
    pub(super) fn raise_all(&mut self) -> Vec<Pid> {
        let below = self.queues[..usize::from(TOP)].iter_mut().rev();
        let raised: Vec<Pid> = below.flat_map(|queue| queue.drain(..)).collect();
        self.queues[usize::from(TOP)].extend(&raised);
        raised
    }

    /// All processes with their levels, for checks.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, Pid)> {
        self.queues.iter().enumerate().flat_map(|(level, queue)| queue.iter().map(move |pid| (level as u8, *pid)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(job: u32) -> Pid {
        Pid { job, task: 0 }
    }

    #[test]
    fn quanta_are_linear_between_200_and_20_ms() {
        assert_eq!(quantum_ns(0, false), 200_000_000);
        assert_eq!(quantum_ns(59, false), 20_000_000);
        assert_eq!(quantum_ns(1, false), 196_949_153, "196949152.54");
        assert_eq!(quantum_ns(58, false), 23_050_847, "23050847.46");
    }

    #[test]
    fn quanta_of_solaris_are_a_table() {
        let at = |level| quantum_ns(level, true) / MS;
        let found = [0, 9, 10, 19, 20, 29, 30, 39, 40, 58, 59].map(at);
        assert_eq!(found, [200, 200, 160, 160, 120, 120, 80, 80, 40, 40, 20]);
    }

    #[test]
    fn the_second_brings_all_up_in_the_order_of_their_levels() {
        let mut levels = Levels::new();
        for (level, job) in [(3, 1), (58, 2), (3, 3), (59, 4)] {
            levels.push_tail(level, pid(job));
        }
        assert_eq!(levels.raise_all(), [pid(2), pid(1), pid(3)]);
        let order: Vec<Pid> = std::iter::from_fn(|| levels.pop_best()).collect();
        assert_eq!(order, [4, 2, 1, 3].map(pid));
    }
}
