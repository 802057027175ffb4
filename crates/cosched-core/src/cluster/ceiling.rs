//! The CPU time that a ceiling leaves to gangs beyond their due turns.
//!
//! Problem: under a ceiling a row's line-ups depend on what the rows before it took of each node, so after the arrival of a
//! single job every plan would have to make all of them again. Rule. A row only learns whether a node has enough left, once or
//! several times. So its line-ups stay the same while what is left of each node is within [`Bound`]s: at least what was
//! taken, and less than what was refused. Checking the bounds costs less than making the line-ups.
//!
//! Units: sixteenths of a turn, per CPU.

use alloc::vec;
use alloc::vec::Vec;

/// The range of what is left of a node in which a row's line-ups stay the same, and what they take of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// Its index in the layout.
    node: u32,
    least_16: u64,
    below_16: u64,
    taken_16: u64,
}

/// A node, while a row's line-ups are being made.
#[derive(Clone, Copy, Debug)]
struct Left {
    spare_16: u64,
    taken_16: u64,
    least_16: u64,
    below_16: u64,
}

impl Left {
    fn of(spare_16: u64) -> Left {
        Left { spare_16, taken_16: 0, least_16: 0, below_16: u64::MAX }
    }

    fn is_touched(&self) -> bool {
        self.least_16 > 0 || self.below_16 < u64::MAX
    }
}

/// What is left of each node; empty while there is no ceiling.
#[derive(Debug, Default)]
pub(super) struct Ceiling {
    left: Vec<Left>,
    /// Nodes for which the present row has called `affords`.
    touched: Vec<u32>,
}

impl Ceiling {
    /// A ceiling that leaves these amounts of the nodes.
    pub(super) fn new(spare_16: impl Iterator<Item = u64>) -> Ceiling {
        Ceiling { left: spare_16.map(Left::of).collect(), touched: vec![] }
    }

    /// Whether there is a ceiling.
    pub(super) fn is_set(&self) -> bool {
        !self.left.is_empty()
    }

    /// Whether this number of turns is left on each of these (node, CPUs).
    pub(super) fn affords(&mut self, cpus: &[(u32, u32)], turns_16: u64) -> bool {
        if !self.is_set() {
            return true;
        }
        let short = |(node, cpus): &&(u32, u32)| self.left[*node as usize].spare_16 < u64::from(*cpus) * turns_16;
        // One node without enough is reason enough for the refusal, so the others set no bound.
        let short = cpus.iter().find(short);
        for (node, cpus) in short.map_or(cpus, core::slice::from_ref) {
            let left = &mut self.left[*node as usize];
            if !left.is_touched() {
                self.touched.push(*node);
            }
            let wanted_16 = left.taken_16 + u64::from(*cpus) * turns_16;
            match short {
                Some(_) => left.below_16 = left.below_16.min(wanted_16),
                None => left.least_16 = left.least_16.max(wanted_16),
            }
        }
        short.is_none()
    }

    /// Takes this number of turns on each of these (node, CPUs), if they are left.
    pub(super) fn take(&mut self, cpus: &[(u32, u32)], turns_16: u64) -> bool {
        if !self.is_set() {
            return true;
        }
        let affords = self.affords(cpus, turns_16);
        for (node, cpus) in cpus.iter().filter(|_| affords) {
            let left = &mut self.left[*node as usize];
            left.spare_16 -= u64::from(*cpus) * turns_16;
            left.taken_16 += u64::from(*cpus) * turns_16;
        }
        affords
    }

    /// Ends a row: returns the bounds on which its line-ups depend.
    pub(super) fn end_row(&mut self) -> Vec<Bound> {
        let end = |node| {
            let left = &mut self.left[node as usize];
            let Left { spare_16, taken_16, least_16, below_16 } = core::mem::replace(left, Left::of(left.spare_16));
            debug_assert!(least_16 <= spare_16 + taken_16 && spare_16 + taken_16 < below_16);
            Bound { node, least_16, below_16, taken_16 }
        };
        self.touched.drain(..).map(end).collect()
    }

    /// Takes what earlier line-ups took, if they would come out the same; otherwise takes nothing and returns `false`.
    pub(super) fn again(&mut self, bounds: &[Bound]) -> bool {
        let holds = |bound: &Bound| {
            let spare_16 = self.left[bound.node as usize].spare_16;
            bound.least_16 <= spare_16 && spare_16 < bound.below_16
        };
        let all = bounds.iter().all(holds);
        for bound in bounds.iter().filter(|_| all) {
            self.left[bound.node as usize].spare_16 -= bound.taken_16;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceiling(spare_16: [u64; 3]) -> Ceiling {
        Ceiling::new(spare_16.into_iter())
    }

    /// A row that calls `affords` and `take`, and is refused; returns the answers.
    fn row(ceiling: &mut Ceiling) -> [bool; 4] {
        [
            ceiling.affords(&[(0, 1), (1, 2)], 10),
            ceiling.take(&[(0, 2), (1, 2)], 10),
            ceiling.take(&[(0, 1), (2, 1)], 16),
            ceiling.take(&[(1, 1)], 5),
        ]
    }

    #[test]
    fn without_a_ceiling_everything_is_left() {
        let mut none = Ceiling::default();
        assert!(!none.is_set() && none.affords(&[(7, 8)], 16) && none.take(&[(7, 8)], 16));
        assert_eq!(none.end_row(), []);
        assert!(none.again(&[]));
    }

    #[test]
    fn what_is_refused_takes_nothing() {
        let mut ceiling = ceiling([10, 20, 30]);
        assert!(!ceiling.take(&[(2, 1), (0, 1)], 11) && ceiling.take(&[(0, 1), (2, 3)], 10));
        assert!(!ceiling.affords(&[(0, 1)], 1) && ceiling.affords(&[(1, 1)], 20));
    }

    #[test]
    fn bounds_hold_exactly_as_long_as_a_row_would_be_told_the_same_for_the_same_reason() {
        let told = [true, true, false, true];
        let mut first = ceiling([30, 27, 9]);
        assert_eq!(row(&mut first), told);
        let bounds = first.end_row();
        for spare_16 in (0..40).flat_map(|a| (0..40).flat_map(move |b| [9, 15, 16].map(|c| [a, b, c]))) {
            let (mut made, mut kept) = (ceiling(spare_16), ceiling(spare_16));
            let same = row(&mut made) == told;
            // The second gang lacked node 0; where it lacks node 2 instead, the row is made again.
            assert_eq!(kept.again(&bounds), same && spare_16[0] < 36, "{spare_16:?}");
            if same && spare_16[0] < 36 {
                let left = |ceiling: &Ceiling| ceiling.left.iter().map(|left| left.spare_16).collect::<Vec<u64>>();
                assert_eq!(left(&kept), left(&made));
            }
        }
    }
}
