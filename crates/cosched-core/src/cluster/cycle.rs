//! The cycle of a cluster: how many turns each row gets, and which gangs use the cells that a row leaves free.
//!
//! Problem: gangs on many nodes take turns by rows, but a node's CPUs also belong to its single-node jobs and to programs
//! that are not registered, and each should get "a similar quantity of processor cycles" (LLNL, "Gang Scheduler Design").
//!
//! Rule. A row weighs as its best gang, and rows take turns by weight (see `policy/gang.rs`). A gang of a lower class in
//! a row is due in its part of the row's turns only; in the others it competes with residents of other rows. The paper
//! gives a program "a percentage of Ousterhout matrix entries equal to its proportion of threads on the most heavily
//! loaded computer": on a node with c CPUs where the threads of gangs weigh A by their shares and all others B, the gangs
//! get A/(A + B) of its CPU time while there are more threads than CPUs. So the cycle gets open turns, in which no row
//! runs, until this is true on every node; the most loaded node determines its length. There are also as many open turns as
//! those single-node gangs are due that fit beside no row. A ceiling on the share of gangs works the same way.
//!
//! Cells that a turn leaves free are lent to gangs whose cells are all free (alternate scheduling; Feitelson 1996), the
//! least served for its share first, as long as the ceiling on each of their nodes permits it; but not on nodes where
//! single-node jobs or other programs have a claim, because there the free CPUs are theirs.
//!
//! Source: LLNL, "Gang Scheduler Design"; Feitelson 1996, "Packing schemes for gang scheduling".
//! Units: turns; amounts and budgets in sixteenths of a turn, and per CPU where they are of nodes.

use super::ceiling::Ceiling;
use super::layout::{Layout, Span};
use super::lineup::{self, Cache};
use super::plan::{LINEUPS_MAX, PlannedRow, Turn};
use super::row::Row;
use crate::id::JobId;
use crate::policy::gang::{row_order, scaled};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// The longest cycle, in turns: at most a minute with slots of 100 ms, so that no gang waits longer for its turn.
const CYCLE_TURNS_MAX: u64 = 512;

/// The largest factor by which a cycle is stretched so that the open turns are a whole number.
const STRETCH_MAX: u64 = 8;

/// A stretched cycle may be longer than necessary by at most 1/64.
const EVEN: u64 = 64;

/// A gang with cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gang<'a> {
    pub(super) id: JobId,
    pub(super) row: u32,
    /// Its class's share, at least 1.
    pub(super) share: u32,
    /// A new version each time that it gets cells.
    pub(super) version: u64,
    pub(super) spans: &'a [Span],
    /// Its CPUs on each node, by the node's index in the layout.
    pub(super) cpus: &'a [(u32, u32)],
}

/// The demand for a node's CPUs beside that of gangs that span nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Claim {
    /// Threads of single-node gangs and of programs that are not registered.
    pub(super) threads: u64,
    /// Their weight: the sum of their threads, each times its share.
    pub(super) weight: u64,
    /// The single-node gangs among them: CPUs and share.
    pub(super) gangs: Vec<(u32, u32)>,
}

impl Claim {
    /// The weight of the single-node gangs that fit beside no row, when a row leaves at most `room` CPUs free. A gang of more than half
    /// the node counts with all of the node's CPUs, because two such gangs cannot run side by side.
    fn blocked(&self, cpus: u32, room: u32) -> u64 {
        let blocked = self.gangs.iter().filter(|(wanted, _)| *wanted > room);
        let weigh = |(wanted, share): &(u32, u32)| {
            let taken = if *wanted > cpus / 2 { cpus } else { *wanted };
            u64::from(taken) * u64::from(*share)
        };
        blocked.map(weigh).sum::<u64>().min(self.weight)
    }
}

/// The result.
#[derive(Debug, Default)]
pub(super) struct Cycle {
    pub(super) turns: Vec<Turn>,
    /// The rows, and last the one of open turns.
    pub(super) rows: Vec<Arc<PlannedRow>>,
    /// The number of turns of each row in a cycle.
    pub(super) row_turns: Vec<u32>,
    /// The turns of each gang in a cycle, in sixteenths, in the order of the gangs.
    pub(super) turns_16: Vec<u32>,
}

/// The cycle of a matrix. `gangs` is ascending by id, `claims` has an entry for every node of the layout.
pub(super) fn cycle(
    (layout, rows): (&Layout, &[Row]),
    gangs: &[Gang],
    claims: &[Claim],
    ceiling_permille: u32,
    cache: &mut Cache,
) -> Cycle {
    if gangs.is_empty() {
        return Cycle { rows: vec![Arc::new(PlannedRow::empty())], row_turns: vec![0], ..Cycle::default() };
    }
    let mut residents: Vec<Vec<usize>> = vec![Vec::new(); rows.len()];
    gangs.iter().enumerate().for_each(|(at, gang)| residents[gang.row as usize].push(at));
    let best = |of: &Vec<usize>| of.iter().map(|gang| u64::from(gangs[*gang].share)).max().unwrap_or(1);
    let best: Vec<u64> = residents.iter().map(best).collect();
    let weights = scaled(&best, CYCLE_TURNS_MAX);
    let budget = Budget::new((layout, rows), gangs, claims, ceiling_permille, (&weights, &best, &residents));
    let (stretch, open) = budget.open_turns(weights.iter().sum());
    let mut weights: Vec<u64> = weights.iter().map(|w| w * stretch).collect();
    weights.push(open);
    let mut ceiling = budget.ceiling(stretch, weights.iter().sum());
    residents.push(Vec::new());

    let empty = Row::empty(layout);
    let cells = rows.iter().chain([&empty]).zip(&residents).zip(&weights);
    let rows: Vec<lineup::Row> =
        cells.map(|((cells, residents), turns)| lineup::Row { cells, residents, turns: *turns }).collect();
    let planned = lineup::all(&rows, gangs, (&budget, &mut ceiling), cache);
    let mut turns_16 = vec![0; gangs.len()];
    for ((planned, runs), weight) in planned.iter().zip(&weights) {
        let each = *weight as u32 * LINEUPS_MAX / planned.lineups.len() as u32;
        // Both are ascending.
        let mut at = 0;
        for (id, often) in runs.iter() {
            at += gangs[at..].iter().position(|gang| gang.id == *id).unwrap_or(0);
            turns_16[at] += often * each;
        }
    }
    let rows = planned.into_iter().map(|(planned, _)| planned).collect();
    Cycle { turns: turns(&weights), rows, row_turns: weights.iter().map(|w| *w as u32).collect(), turns_16 }
}

/// The turns of rows with these weights; only the last weight, that of open turns, may be 0.
fn turns(weights: &[u64]) -> Vec<Turn> {
    let order = row_order(&weights.iter().copied().filter(|w| *w > 0).collect::<Vec<u64>>());
    let mut had = vec![0; weights.len()];
    let turn = |row: usize| {
        had[row] += 1;
        Turn { row: row as u32, nth: had[row] - 1 }
    };
    order.into_iter().map(turn).collect()
}

/// The CPU time that gangs may have on each node, where that is less than all. Empty if it is all on every node.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// The CPU time that they have by their due turns, in a cycle that is not stretched.
    used_16: Vec<u64>,
    /// The part that they may have, as a fraction; `None` for all.
    part: Vec<Option<(u64, u64)>>,
    /// The part of all turns that rows may have because of single-node jobs and other programs, as a fraction.
    rows_part: Vec<Option<(u64, u64)>>,
    cpus: Vec<u64>,
    /// Whether single-node jobs or other programs have a claim on what gangs leave of this node.
    claimed: Vec<bool>,
    has_ceiling: bool,
}

impl Budget {
    /// `weights` are the rows' weights, and `best` their largest shares.
    fn new(
        (layout, rows): (&Layout, &[Row]),
        gangs: &[Gang],
        claims: &[Claim],
        ceiling: u32,
        (weights, best, residents): (&[u64], &[u64], &[Vec<usize>]),
    ) -> Budget {
        let nodes = layout.nodes().len();
        let free = ceiling >= 1000 && claims.iter().all(|claim| claim.threads == 0);
        if free {
            return Budget::default();
        }
        let (mut used_16, mut threads, mut weight) = (vec![0_u64; nodes], vec![0_u64; nodes], vec![0_u64; nodes]);
        let of = |(best, of): (&u64, &Vec<usize>)| lineup::lineups_for(*best, of.iter().map(|gang| gangs[*gang].share));
        let of_row: Vec<u32> = best.iter().zip(residents).map(of).collect();
        for gang in gangs {
            let row = gang.row as usize;
            let of = of_row[row];
            let turns_16 = weights[row] * u64::from(lineup::due(gang.share, best[row], of) * (LINEUPS_MAX / of));
            for (node, cpus) in gang.cpus {
                let (node, cpus) = (*node as usize, u64::from(*cpus));
                used_16[node] += cpus * turns_16;
                threads[node] += cpus;
                weight[node] += cpus * u64::from(gang.share);
            }
        }
        let cpus: Vec<u64> = layout.nodes().iter().map(|laid| u64::from(laid.span.count)).collect();
        let full = |node: usize| threads[node] > 0 && threads[node] + claims[node].threads > cpus[node];
        let claimed: Vec<bool> = (0..nodes).map(|node| full(node) && claims[node].weight > 0).collect();
        let part = |node: usize| {
            let by_claim = claimed[node].then(|| (weight[node], weight[node] + claims[node].weight));
            let by_ceiling = (ceiling < 1000 && threads[node] > 0).then_some((u64::from(ceiling), 1000));
            match (by_claim, by_ceiling) {
                (Some(a), Some(b)) => Some(if a.0 * b.1 < b.0 * a.1 { a } else { b }),
                (a, b) => a.or(b),
            }
        };
        let part: Vec<Option<(u64, u64)>> = (0..nodes).map(part).collect();
        let open = |node: usize| {
            let gangs = !claims[node].gangs.is_empty();
            let room = rows.iter().filter(|_| gangs).map(|row| row.free_of[node]).max().unwrap_or(0);
            let all = weight[node] + claims[node].weight;
            claimed[node].then(|| (all - claims[node].blocked(cpus[node] as u32, room), all))
        };
        let rows_part = (0..nodes).map(open).collect();
        Budget { used_16, part, rows_part, cpus, claimed, has_ceiling: ceiling < 1000 }
    }

    /// How often a cycle of `turns` is repeated, and the number of open turns that it then gets.
    fn open_turns(&self, turns: u64) -> (u64, u64) {
        // The length that a node needs: used / (16 · cpus · part), as a fraction.
        let length = |node: usize| {
            let (num, den) = self.part[node]?;
            Some((self.used_16[node] * den, 16 * self.cpus[node] * num))
        };
        let longer = |a: &(u64, u64), b: &(u64, u64)| {
            (u128::from(a.0) * u128::from(b.1)).cmp(&(u128::from(b.0) * u128::from(a.1)))
        };
        let for_others = self.rows_part.iter().flatten().map(|(num, den)| (turns * den, *num));
        let longest = (0..self.part.len()).filter_map(length).chain(for_others).max_by(longer);
        let Some((num, den)) = longest.filter(|(num, den)| *num > turns * den) else { return (1, 0) };
        // The excess length of a stretched cycle, in units of `stretch * num`.
        let excess = |stretch: u64| (stretch * num).div_ceil(den) * den - stretch * num;
        let fits = |stretch: &u64| (stretch * num).div_ceil(den) <= CYCLE_TURNS_MAX;
        let even = (1..=STRETCH_MAX).filter(fits).find(|stretch| excess(*stretch) * EVEN <= stretch * num);
        let by_part = |a: &u64, b: &u64| (excess(*a) * b).cmp(&(excess(*b) * a));
        let stretch = even.or_else(|| (1..=STRETCH_MAX).filter(fits).min_by(by_part));
        let stretch = stretch.unwrap_or(1);
        let length = (stretch * num).div_ceil(den).min(CYCLE_TURNS_MAX.max(turns + 1));
        (stretch, length - stretch * turns)
    }

    /// What is left of each node in a cycle of `turns`, after the due turns of a cycle that was stretched by this factor.
    fn ceiling(&self, stretch: u64, turns: u64) -> Ceiling {
        let spare = |node: usize| match self.part[node] {
            Some((num, den)) => (16 * self.cpus[node] * turns * num / den).saturating_sub(self.used_16[node] * stretch),
            None => u64::MAX,
        };
        if self.has_ceiling { Ceiling::new((0..self.part.len()).map(spare)) } else { Ceiling::default() }
    }

    /// Whether a gang may have more than its due: no other claim exists on its nodes.
    pub(super) fn permits(&self, gang: &Gang) -> bool {
        self.claimed.is_empty() || gang.cpus.iter().all(|(node, _)| !self.claimed[*node as usize])
    }
}
