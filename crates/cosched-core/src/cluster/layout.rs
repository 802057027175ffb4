//! Which CPU of which node each column of the matrix is.
//!
//! The nodes are in the order of their ids, each with its CPUs side by side, so that the layout follows from the nodes
//! alone and two planners with the same nodes have the same columns.

use crate::id::NodeId;
use alloc::vec::Vec;

/// A range of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first column.
    pub first: u32,
    /// The number of columns.
    pub count: u32,
}

impl Span {
    /// The column after the last.
    pub fn end(self) -> u32 {
        self.first + self.count
    }
}

/// The columns of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Laid {
    /// The node.
    pub id: NodeId,
    /// All its columns.
    pub span: Span,
}

/// The columns of all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    nodes: Vec<Laid>,
    columns: u32,
}

impl Layout {
    /// The layout of these nodes with their CPUs; `nodes` is ascending by id.
    pub fn new(nodes: impl Iterator<Item = (NodeId, u32)>) -> Layout {
        let mut layout = Layout::default();
        for (id, cpus) in nodes {
            layout.nodes.push(Laid { id, span: Span { first: layout.columns, count: cpus } });
            layout.columns += cpus;
        }
        layout
    }

    /// The nodes, ascending.
    pub fn nodes(&self) -> &[Laid] {
        &self.nodes
    }

    /// The number of columns.
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// The index of a node among all nodes.
    pub fn index_of(&self, id: NodeId) -> Option<usize> {
        self.nodes.binary_search_by_key(&id, |laid| laid.id).ok()
    }

    /// The index of the node to which a column belongs.
    pub fn index_at(&self, column: u32) -> usize {
        self.nodes.partition_point(|laid| laid.span.end() <= column)
    }

    /// The number of columns on each node, as (node's index, CPUs); `spans` must be ascending.
    pub fn cpus_of(&self, spans: &[Span]) -> Vec<(u32, u32)> {
        let mut cpus: Vec<(u32, u32)> = Vec::new();
        for span in spans {
            let (mut at, mut first) = (self.index_at(span.first), span.first);
            while first < span.end() {
                let end = self.nodes[at].span.end().min(span.end());
                match cpus.last_mut() {
                    Some((last, count)) if *last as usize == at => *count += end - first,
                    _ => cpus.push((at as u32, end - first)),
                }
                (first, at) = (end, at + 1);
            }
        }
        cpus
    }
}

/// Appends a span to ascending ones, and merges it with the last one if they touch.
pub(super) fn append(spans: &mut Vec<Span>, span: Span) {
    match spans.last_mut() {
        Some(last) if last.end() == span.first => last.count += span.count,
        _ if span.count > 0 => spans.push(span),
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_nodes_are_found_both_ways() {
        let layout = Layout::new([(NodeId(3), 2), (NodeId(5), 4), (NodeId(9), 1)].into_iter());
        assert_eq!(layout.columns(), 7);
        assert_eq!([0, 1, 2, 5, 6].map(|c| layout.index_at(c)), [0, 0, 1, 1, 2]);
        assert_eq!([3, 4, 9].map(|id| layout.index_of(NodeId(id))), [Some(0), None, Some(2)]);
        let spans = [Span { first: 1, count: 2 }, Span { first: 4, count: 3 }];
        assert_eq!(layout.cpus_of(&spans), [(0, 1), (1, 3), (2, 1)]);
    }

    #[test]
    fn spans_that_touch_become_one() {
        let mut spans = Vec::new();
        for (first, count) in [(0, 2), (2, 1), (3, 0), (4, 1)] {
            append(&mut spans, Span { first, count });
        }
        assert_eq!(spans, [Span { first: 0, count: 3 }, Span { first: 4, count: 1 }]);
    }
}
