//! Finds loops in a sequence: consecutive repetitions become a loop, and loops may be nested.
//!
//! Rule: for periods 1, 2, 3, … each run of equal neighbours of that length is folded into one symbol; after a period
//! that folded anything the search starts again, because a folded inner loop makes the outer one's period short. Short
//! periods are all tried; of the long ones only the distances at which symbols recur, the most frequent first. The
//! algorithm is greedy: the result is exact, but not necessarily the shortest possible.

use std::collections::HashMap;

/// A symbol, or a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// One symbol.
    Leaf(u32),
    /// This number of repetitions of a body.
    Loop(u64, Vec<Node>),
}

/// Periods up to this are all tried.
const SHORT: usize = 128;
/// The maximum number of longer periods that are tried.
const LONG: usize = 48;
/// The maximum depth of nested loops: a program's text allows 64 nested blocks.
const DEPTH_MAX: u32 = 24;

/// A loop as a symbol: the number of repetitions, and the body.
type Loop = (u64, Vec<u32>);

/// Folds a sequence into loops.
pub(super) fn fold(symbols: &[u32]) -> Vec<Node> {
    let mut folder = Folder::new(symbols);
    let mut sequence = symbols.to_vec();
    while let Some(shorter) = folder.pass(&sequence) {
        sequence = shorter;
    }
    sequence.iter().map(|symbol| folder.node(*symbol)).collect()
}

struct Folder {
    /// Symbols from this number on are loops.
    first_loop: u32,
    loops: Vec<Loop>,
    depths: Vec<u32>,
    known: HashMap<Loop, u32>,
}

impl Folder {
    fn new(symbols: &[u32]) -> Folder {
        let first_loop = symbols.iter().max().map_or(0, |max| max + 1);
        Folder { first_loop, loops: Vec::new(), depths: Vec::new(), known: HashMap::new() }
    }

    /// Folds by the first period that folds anything.
    fn pass(&mut self, sequence: &[u32]) -> Option<Vec<u32>> {
        let longest = sequence.len() / 2;
        let short = (1..=longest.min(SHORT)).find_map(|period| self.fold_by(sequence, period));
        short.or_else(|| long_periods(sequence).into_iter().find_map(|period| self.fold_by(sequence, period)))
    }

    /// Folds all runs of this period; None if there are none.
    fn fold_by(&mut self, sequence: &[u32], period: usize) -> Option<Vec<u32>> {
        let mut folded = Vec::new();
        // Up to `done` the sequence is in `folded`; from `run` on each symbol equals the one a period later.
        let (mut done, mut run, mut at) = (0, 0, 0);
        while at + period <= sequence.len() {
            if at + period < sequence.len() && sequence[at] == sequence[at + period] {
                at += 1;
                continue;
            }
            let times = (at - run) / period + 1;
            let body = &sequence[run..run + period];
            if times > 1 && self.depth(body) < DEPTH_MAX {
                folded.extend_from_slice(&sequence[done..run]);
                folded.push(self.symbol(times as u64, body));
                done = run + times * period;
                at = done;
            } else {
                at += 1;
            }
            run = at;
        }
        if done == 0 {
            return None;
        }
        folded.extend_from_slice(&sequence[done..]);
        Some(folded)
    }

    fn depth(&self, body: &[u32]) -> u32 {
        let depth = |symbol: &u32| symbol.checked_sub(self.first_loop).map_or(0, |index| self.depths[index as usize]);
        body.iter().map(depth).max().unwrap_or(0)
    }

    fn symbol(&mut self, times: u64, body: &[u32]) -> u32 {
        // A loop that contains only a loop is merged with it.
        let (times, body) = match body {
            [only] if *only >= self.first_loop => {
                let (inner, body) = &self.loops[(only - self.first_loop) as usize];
                (times * inner, body.clone())
            }
            _ => (times, body.to_vec()),
        };
        let key = (times, body);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let symbol = self.first_loop + self.loops.len() as u32;
        self.depths.push(self.depth(&key.1) + 1);
        self.loops.push(key.clone());
        self.known.insert(key, symbol);
        symbol
    }

    fn node(&self, symbol: u32) -> Node {
        match symbol.checked_sub(self.first_loop) {
            None => Node::Leaf(symbol),
            Some(index) => {
                let (times, body) = &self.loops[index as usize];
                Node::Loop(*times, body.iter().map(|symbol| self.node(*symbol)).collect())
            }
        }
    }
}

/// The distances above [`SHORT`] at which symbols recur, those that explain most of the sequence first.
fn long_periods(sequence: &[u32]) -> Vec<usize> {
    let mut last: HashMap<u32, usize> = HashMap::new();
    let mut found: HashMap<usize, usize> = HashMap::new();
    for (place, symbol) in sequence.iter().enumerate() {
        if let Some(before) = last.insert(*symbol, place) {
            *found.entry(place - before).or_default() += 1;
        }
    }
    found.retain(|period, _| *period > SHORT && *period <= sequence.len() / 2);
    let mut periods: Vec<(usize, usize)> = found.into_iter().collect();
    periods.sort_by_key(|(period, count)| (std::cmp::Reverse(*count), *period));
    periods.into_iter().take(LONG).map(|(period, _)| period).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unfold(nodes: &[Node], to: &mut Vec<u32>) {
        for node in nodes {
            match node {
                Node::Leaf(symbol) => to.push(*symbol),
                Node::Loop(times, body) => (0..*times).for_each(|_| unfold(body, to)),
            }
        }
    }

    fn size(nodes: &[Node]) -> usize {
        let of = |node: &Node| if let Node::Loop(_, body) = node { 1 + size(body) } else { 1 };
        nodes.iter().map(of).sum()
    }

    #[test]
    fn loops_in_loops_are_found() {
        let inner = |n| (0..n).flat_map(|_| [1, 2]).collect::<Vec<_>>();
        let round: Vec<u32> = [inner(5), vec![3], inner(2), vec![4, 4, 4]].concat();
        let folded = fold(&[vec![7], round.repeat(1000), vec![7]].concat());
        let pair = || vec![Node::Leaf(1), Node::Leaf(2)];
        let body =
            vec![Node::Loop(5, pair()), Node::Leaf(3), Node::Loop(2, pair()), Node::Loop(3, vec![Node::Leaf(4)])];
        assert_eq!(folded, [Node::Leaf(7), Node::Loop(1000, body), Node::Leaf(7)]);
    }

    #[test]
    fn many_operations_become_a_few() {
        // The last symbol of a round equals the first of the next one: that pair looks like a loop, so the first round is
        // not part of the loop.
        let round: Vec<u32> = (0..301).map(|i| if i % 3 == 0 { 999 } else { i }).collect();
        let folded = fold(&round.repeat(300));
        assert!(size(&folded) <= 2 * round.len() + 2, "{}", size(&folded));
        assert_eq!(fold(&[5; 1_000_000]), [Node::Loop(1_000_000, vec![Node::Leaf(5)])]);
    }

    proptest! {
        #[test]
        fn what_is_folded_unfolds_to_the_same(
            parts in prop::collection::vec((prop::collection::vec(0..4_u32, 1..6), 1..6_usize), 0..12),
            times in 1..4_usize,
        ) {
            let round: Vec<u32> = parts.iter().flat_map(|(part, times)| part.repeat(*times)).collect();
            let sequence = round.repeat(times);
            let mut unfolded = Vec::new();
            unfold(&fold(&sequence), &mut unfolded);
            prop_assert_eq!(unfolded, sequence);
        }

        #[test]
        fn a_repeated_sequence_is_not_longer_than_one_round(
            round in prop::collection::vec(0..1000_u32, 1..200), times in 2..20_usize,
        ) {
            let folded = fold(&round.repeat(times));
            // A few more: if the end of a round and the start of the next look like a loop, the first round is not part
            // of the loop.
            prop_assert!(size(&folded) <= 2 * round.len() + 2, "{} of {}", size(&folded), round.len());
        }
    }
}
