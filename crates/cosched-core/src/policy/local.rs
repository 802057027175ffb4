//! Local scheduling: each node's operating system schedules on its own, with shares.
//!
//! Problem: some jobs gain nothing from a gang's slots (they hardly communicate, or they block instead of spinning), and
//! then slots only cost. Strazdins & Uhlmann (2004) found local scheduling as good or better for such programs.
//! Rule: no slots; a job's weight is its class's share, times its CPUs, because the operating system divides a group's
//! weight over the CPUs on which it runs. A gang competes with local jobs only in its own turns, so its weight there
//! is inversely proportional to them: share times cycle over turns. Over a cycle both get CPU time by their shares
//! (LLNL, "Gang Scheduler Design": "a similar quantity of processor cycles whether registered for gang scheduling or
//! not").
//! Units: weights are relative, scaled so that the largest is 10000, and at least 1.

use alloc::vec::Vec;

/// The largest weight.
const WEIGHT_MAX: u128 = 10_000;

/// Keeps fractions of a turn in integers.
const SCALE: u128 = 1 << 20;

/// The inputs of one weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The class's share.
    pub(crate) share: u32,
    /// CPUs at the same time.
    pub(crate) cpus: u32,
    /// The turns in which it owns CPUs, and the turns in total; (1, 1) for a job without slots.
    pub(crate) turns: (u32, u32),
}

/// One weight per part, in order.
pub(crate) fn weights(parts: &[Part]) -> Vec<u32> {
    let raw = |p: &Part| {
        let (own, cycle) = p.turns;
        // 64 bits would be enough for any machine, but not for any share that an operator may set.
        u128::from(p.cpus.max(1)) * u128::from(p.share) * u128::from(cycle) * SCALE / u128::from(own.max(1))
    };
    let raw: Vec<u128> = parts.iter().map(raw).collect();
    let largest = raw.iter().copied().max().unwrap_or(1).max(1);
    raw.iter().map(|w| (w * WEIGHT_MAX / largest).max(1) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(share: u32, turns: (u32, u32)) -> Part {
        Part { share, cpus: 2, turns }
    }

    #[test]
    fn shares_of_classes_become_weights() {
        let local = |share| part(share, (1, 1));
        assert_eq!(weights(&[local(16), local(4), local(1)]), [10_000, 2_500, 625]);
    }

    #[test]
    fn a_gang_weighs_the_more_the_fewer_turns_it_has() {
        let (gang, local) = (part(2, (1, 3)), part(2, (1, 1)));
        assert_eq!(weights(&[gang, gang, gang, local]), [10_000, 10_000, 10_000, 3_333]);
    }

    #[test]
    fn gangs_that_share_a_row_weigh_no_more_than_they_need() {
        // Two gangs side by side in every turn, and a local job: three equal parts.
        let (gang, local) = (part(2, (1, 1)), part(2, (1, 1)));
        assert_eq!(weights(&[gang, gang, local]), [10_000; 3]);
    }

    #[test]
    fn the_largest_share_does_not_overflow() {
        let huge = Part { share: u32::MAX, cpus: u32::MAX, turns: (1, 4096) };
        assert_eq!(weights(&[huge, part(1, (1, 1))]), [10_000, 1]);
    }
}
