//! A row of the cluster's matrix, with its free cells.
//!
//! The cells are bits, and a gang's cells are spans of columns: with 80,000 columns a row takes 10 KB, and a gang on all of
//! them is one span.

use super::layout::{Layout, Span, append};
use crate::id::JobId;
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

const BITS: u32 = u64::BITS;

/// A set of columns, one bit each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn none(columns: u32) -> Bits {
        Bits(vec![0; columns.div_ceil(BITS) as usize])
    }

    pub(super) fn all(columns: u32) -> Bits {
        let mut bits = Bits::none(columns);
        bits.add(&[Span { first: 0, count: columns }]);
        bits
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    pub(super) fn contains(&self, spans: &[Span]) -> bool {
        words(spans).all(|(word, mask)| self.0[word] & mask == mask)
    }

    pub(super) fn meets(&self, spans: &[Span]) -> bool {
        words(spans).any(|(word, mask)| self.0[word] & mask != 0)
    }

    pub(super) fn add(&mut self, spans: &[Span]) {
        words(spans).for_each(|(word, mask)| self.0[word] |= mask);
    }

    pub(super) fn take(&mut self, spans: &[Span]) {
        words(spans).for_each(|(word, mask)| self.0[word] &= !mask);
    }

    /// Adds to `self` those columns of `spans` that are in `first` already, and adds all of them to `first`.
    pub(super) fn note_again(&mut self, first: &mut Bits, spans: &[Span]) {
        for (word, mask) in words(spans) {
            self.0[word] |= first.0[word] & mask;
            first.0[word] |= mask;
        }
    }

    /// Appends the lowest `count` columns of `within` to `found`, as spans; there must be that many.
    fn lowest(&self, within: Span, mut count: u32, found: &mut Vec<Span>) {
        for (word, mask) in words(&[within]) {
            let mut left = self.0[word] & mask;
            while left != 0 && count > 0 {
                let first = left.trailing_zeros();
                let run = (left >> first).trailing_ones().min(count);
                append(found, Span { first: word as u32 * BITS + first, count: run });
                count -= run;
                left &= !(ones(run) << first);
            }
        }
    }
}

fn ones(count: u32) -> u64 {
    if count >= BITS { u64::MAX } else { (1 << count) - 1 }
}

/// The words that the spans touch, and the spans' bits in them.
fn words(spans: &[Span]) -> impl Iterator<Item = (usize, u64)> {
    spans.iter().flat_map(|span| {
        let (first, end) = (span.first, span.end());
        let words = first / BITS..end.div_ceil(BITS).max(first / BITS);
        words.map(move |word| {
            let (low, high) = (first.max(word * BITS), end.min((word + 1) * BITS));
            (word as usize, ones(high - low) << (low % BITS))
        })
    })
}

/// A row of the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) free: Bits,
    /// The number of free cells on each node, by its index in the layout.
    pub(super) free_of: Vec<u32>,
    /// The number of free cells on all nodes.
    pub(super) free_total: u32,
    /// The gangs that have their cells in this row.
    pub(super) jobs: BTreeSet<JobId>,
}

impl Row {
    pub(super) fn empty(layout: &Layout) -> Row {
        Row {
            free: Bits::all(layout.columns()),
            free_of: layout.nodes().iter().map(|laid| laid.span.count).collect(),
            free_total: layout.columns(),
            jobs: BTreeSet::new(),
        }
    }

    /// Whether the nodes have enough free cells; `wanted` has (node's index, CPUs).
    pub(super) fn has_room(&self, wanted: &[(u32, u32)]) -> bool {
        wanted.iter().all(|(node, cpus)| self.free_of[*node as usize] >= *cpus)
    }

    /// The lowest free cells of each node, as many as wanted. There must be that many, and `wanted` must be ascending.
    pub(super) fn lowest(&self, layout: &Layout, wanted: &[(u32, u32)]) -> Vec<Span> {
        let mut spans = Vec::new();
        for (node, cpus) in wanted {
            self.free.lowest(layout.nodes()[*node as usize].span, *cpus, &mut spans);
        }
        spans
    }

    pub(super) fn put(&mut self, job: JobId, spans: &[Span], cpus: &[(u32, u32)]) {
        self.free.take(spans);
        for (node, count) in cpus {
            self.free_of[*node as usize] -= count;
            self.free_total -= count;
        }
        self.jobs.insert(job);
    }

    pub(super) fn remove(&mut self, job: JobId, spans: &[Span], cpus: &[(u32, u32)]) {
        self.free.add(spans);
        for (node, count) in cpus {
            self.free_of[*node as usize] += count;
            self.free_total += count;
        }
        self.jobs.remove(&job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NodeId;

    fn span(first: u32, count: u32) -> Span {
        Span { first, count }
    }

    #[test]
    fn spans_reach_over_words() {
        let mut bits = Bits::all(200);
        assert!(bits.contains(&[span(0, 200)]));
        bits.take(&[span(63, 66)]);
        assert!(bits.contains(&[span(0, 63), span(129, 71)]));
        assert!(!bits.meets(&[span(63, 66)]) && bits.meets(&[span(63, 67)]));
        bits.add(&[span(64, 64)]);
        assert!(bits.contains(&[span(64, 64)]) && !bits.contains(&[span(63, 1)]) && !bits.contains(&[span(128, 1)]));
        assert!(bits.contains(&[span(7, 0)]), "no column is everywhere");
    }

    #[test]
    fn the_lowest_free_cells_skip_what_is_taken() {
        let layout = Layout::new([(NodeId(0), 60), (NodeId(1), 10)].into_iter());
        let mut row = Row::empty(&layout);
        row.put(JobId(1), &[span(1, 2), span(62, 3)], &[(0, 2), (1, 3)]);
        assert_eq!(row.lowest(&layout, &[(0, 3), (1, 4)]), [span(0, 1), span(3, 2), span(60, 2), span(65, 2)]);
        assert_eq!((row.free_total, &row.free_of[..]), (65, &[58, 7][..]));
        assert!(row.has_room(&[(0, 58), (1, 7)]) && !row.has_room(&[(1, 8)]));
        row.remove(JobId(1), &[span(1, 2), span(62, 3)], &[(0, 2), (1, 3)]);
        assert_eq!(row, Row::empty(&layout));
    }

    #[test]
    fn what_two_want_is_noted() {
        let (mut once, mut twice) = (Bits::none(100), Bits::none(100));
        for wanted in [span(0, 70), span(60, 20)] {
            twice.note_again(&mut once, &[wanted]);
        }
        assert!(twice.contains(&[span(60, 10)]) && !twice.meets(&[span(0, 60), span(70, 30)]));
    }
}
