//! Local scheduling: every node's operating system on its own, with shares.
//!
//! Problem: some jobs gain nothing from a gang's slots (they hardly communicate, or they block instead of spinning), and
//! then slots only cost. Strazdins & Uhlmann (2004) found local scheduling as good or better for such programs.
//! Rule: no slots; a job's weight is its class's share, times its CPUs, because the operating system divides a group's
//! weight over the CPUs on which it runs. Where gangs and local jobs meet, the gang that runs stands for all gangs with
//! slots, so it weighs as much as all their shares together.
//! Units: weights are relative, scaled so that the largest is 10000, and at least 1.

use alloc::vec::Vec;

/// The largest weight.
pub(crate) const WEIGHT_MAX: u64 = 10_000;

/// What a weight is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The class's share.
    pub(crate) share: u32,
    /// CPUs at a time.
    pub(crate) cpus: u32,
    /// It is a gang with slots.
    pub(crate) slots: bool,
}

/// One weight per part, in order.
pub(crate) fn weights(parts: &[Part]) -> Vec<u32> {
    let all_gangs: u64 = parts.iter().filter(|p| p.slots).map(|p| u64::from(p.share)).sum();
    let raw = |p: &Part| u64::from(p.cpus.max(1)) * if p.slots { all_gangs } else { u64::from(p.share) };
    let raw: Vec<u64> = parts.iter().map(raw).collect();
    let largest = raw.iter().copied().max().unwrap_or(1).max(1);
    raw.iter().map(|w| (w * WEIGHT_MAX / largest).max(1) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_classes_become_weights() {
        let part = |share| Part { share, cpus: 2, slots: false };
        assert_eq!(weights(&[part(16), part(4), part(1)]), [10_000, 2_500, 625]);
    }

    #[test]
    fn the_current_gang_stands_for_all_gangs() {
        let gang = Part { share: 2, cpus: 2, slots: true };
        let local = Part { share: 2, cpus: 2, slots: false };
        assert_eq!(weights(&[gang, gang, gang, local]), [10_000, 10_000, 10_000, 3_333]);
    }
}
