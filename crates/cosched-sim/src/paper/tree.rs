//! A tournament over the nodes that finds the earliest event.
//!
//! Keys are unsigned numbers, smallest first; among equal keys the lowest node wins. Changing one key costs one
//! comparison per level, and never a search.

/// No event.
pub(super) const NEVER: u64 = u64::MAX;

/// The tournament; leaves are nodes.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// The winner of each match as (key, node); index 1 is the final, leaves start at `size`.
    matches: Vec<(u64, u32)>,
    size: usize,
}

impl Tree {
    pub(super) fn new(nodes: usize) -> Tree {
        let size = nodes.next_power_of_two();
        let mut matches = vec![(NEVER, u32::MAX); 2 * size];
        (0..size).for_each(|node| matches[size + node].1 = node as u32);
        for place in (1..size).rev() {
            matches[place] = matches[2 * place];
        }
        Tree { matches, size }
    }

    /// The smallest key and its node.
    #[inline]
    pub(super) fn first(&self) -> (u64, u32) {
        self.matches[1]
    }

    /// A node's key.
    pub(super) fn leaf(&self, node: usize) -> (u64, u32) {
        self.matches[self.size + node]
    }

    #[inline]
    pub(super) fn set(&mut self, node: usize, key: u64) {
        let mut place = self.size + node;
        let matches = &mut self.matches[..2 * self.size];
        matches[place].0 = key;
        while place > 1 {
            let (left, right) = (matches[place & !1], matches[place | 1]);
            let winner = if right.0 < left.0 { right } else { left };
            place >>= 1;
            // The rest of the path is unchanged, too.
            if matches[place] == winner {
                return;
            }
            matches[place] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_smallest_and_of_equals_the_lowest(
            nodes in 1_usize..70,
            changes in prop::collection::vec((0_usize..70, 0_u64..6), 0..200),
        ) {
            let mut tree = Tree::new(nodes);
            let mut keys = vec![NEVER; nodes];
            for (node, key) in changes.into_iter().filter(|(node, _)| *node < nodes) {
                tree.set(node, key);
                keys[node] = key;
                let expected = (0..nodes).map(|n| (keys[n], n as u32)).min().unwrap();
                prop_assert_eq!(tree.first(), expected);
            }
        }
    }
}
