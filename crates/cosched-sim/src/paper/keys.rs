//! When each node next does something that matters. Nodes are in blocks, and blocks that sleep are skipped.

use super::node::NEVER_NS;
use super::tree::NEVER;

/// The number of nodes whose first key is stored together.
const BLOCK_NODES: usize = 32;

/// Keys are time · 8 + kind.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    keys: Vec<u64>,
    /// For each block the minimum of its keys, or less.
    firsts: Vec<u64>,
    /// A bit for each block that may have a key.
    awake: Vec<u64>,
}

impl Keys {
    pub(super) fn new(nodes: usize) -> Keys {
        let blocks = nodes.div_ceil(BLOCK_NODES);
        Keys { keys: vec![NEVER; nodes], firsts: vec![NEVER; blocks], awake: vec![0; blocks.div_ceil(64)] }
    }

    #[inline]
    pub(super) fn get(&self, node: usize) -> u64 {
        self.keys[node]
    }

    #[inline]
    pub(super) fn set(&mut self, node: usize, key: u64) {
        self.keys[node] = key;
        let block = node / BLOCK_NODES;
        if key < self.firsts[block] {
            self.firsts[block] = key;
            self.awake[block / 64] |= 1 << (block % 64);
        }
    }

    /// The same, but what is known of its block is set afterwards.
    #[inline]
    pub(super) fn put(&mut self, node: usize, key: u64) {
        self.keys[node] = key;
    }

    /// A key that is not above any other.
    pub(super) fn first(&self) -> u64 {
        let (mut first, mut next) = (NEVER, self.awake_from(0));
        while let Some(block) = next {
            first = first.min(self.firsts[block]);
            next = self.awake_from(block + 1);
        }
        first
    }

    /// The nodes of the first block, from this one on, that may have keys below `limit`; and the block.
    #[inline]
    pub(super) fn due(&self, mut block: usize, limit: u64) -> Option<(usize, std::ops::Range<usize>)> {
        loop {
            block = self.awake_from(block)?;
            if self.firsts[block] < limit {
                return Some((block, self.nodes_of(block)));
            }
            block += 1;
        }
    }

    #[inline]
    fn awake_from(&self, block: usize) -> Option<usize> {
        let mut word = block / 64;
        let mut bits = self.awake.get(word)? >> (block % 64) << (block % 64);
        while bits == 0 {
            word += 1;
            bits = *self.awake.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    fn nodes_of(&self, block: usize) -> std::ops::Range<usize> {
        block * BLOCK_NODES..((block + 1) * BLOCK_NODES).min(self.keys.len())
    }

    /// The keys of this block have become later.
    pub(super) fn find_first(&mut self, block: usize) {
        let first = self.keys[self.nodes_of(block)].iter().copied().fold(NEVER, u64::min);
        self.set_first(block, first);
    }

    /// The first key of this block.
    #[inline]
    pub(super) fn set_first(&mut self, block: usize, first: u64) {
        self.firsts[block] = first;
        if first >> 3 == NEVER_NS {
            self.awake[block / 64] &= !(1 << (block % 64));
        }
    }

    /// Shifts all keys.
    pub(super) fn later(&mut self, delta: u64) {
        for key in self.keys.iter_mut().chain(&mut self.firsts).filter(|key| **key >> 3 != NEVER_NS) {
            *key += delta;
        }
    }
}
