//! The cycle of a cluster: whose turn it is how often, and who uses what a row leaves free.
//!
//! Problem: gangs on many nodes take turns by rows, but a node's CPUs also belong to its single-node jobs and to programs
//! that are not registered, and each should get "a similar quantity of processor cycles" (LLNL, "Gang Scheduler Design").
//!
//! Rule. A row weighs as its best gang, and rows take turns by weight (see `policy/gang.rs`). A gang of a lower class in
//! a row is due in its part of the row's turns only; in the others it competes with those who live elsewhere. The paper
//! gives a program "a percentage of Ousterhout matrix entries equal to its proportion of threads on the most heavily
//! loaded computer": on a node with c CPUs where the threads of gangs weigh A by their shares and all others B, the gangs
//! get A/(A + B) of its CPU time while there are more threads than CPUs. So the cycle gets open turns, in which no row
//! runs, until that holds on every node; its length follows from the most loaded one. There are also as many as the
//! single-node gangs are due that fit beside no row. A ceiling on the share of gangs works alike.
//!
//! What a turn leaves free is lent to gangs all of whose cells are free (alternate scheduling; Feitelson 1996), the
//! least served for its share first, as long as that keeps within the ceiling on each of their nodes; but not on nodes
//! where others have a claim, because there it is theirs.
//!
//! Source: LLNL, "Gang Scheduler Design"; Feitelson 1996, "Packing schemes for gang scheduling".
//! Units: turns; amounts and budgets in sixteenths of a turn, of one CPU where nodes are meant.

use super::layout::{Layout, Span};
use super::plan::{LINEUPS_MAX, PlannedRow, Turn};
use super::row::{Bits, Row};
use crate::id::JobId;
use crate::policy::gang::{row_order, scaled};
use alloc::vec;
use alloc::vec::Vec;

/// The longest cycle, in turns: a minute of slots of 100 ms, so that nobody waits longer for his turn.
const CYCLE_TURNS_MAX: u64 = 512;

/// A cycle is made up to so many times longer, so that open turns come out even.
const STRETCH_MAX: u64 = 8;

/// A cycle may be longer than it must be by one part in so many.
const EVEN: u64 = 64;

/// As many line-ups of a row serve for gangs to compete in, of which each gets some.
const CONTEST_MAX: u32 = 8;

/// A gang with cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gang<'a> {
    pub(super) id: JobId,
    pub(super) row: u32,
    /// Its class's, at least 1.
    pub(super) share: u32,
    pub(super) spans: &'a [Span],
    /// Its CPUs on each node, by place in the layout.
    pub(super) cpus: &'a [(u32, u32)],
}

/// Who else wants a node's CPUs.
#[derive(Clone, Debug, Default)]
pub(super) struct Claim {
    /// Threads of single-node jobs and of programs that are not registered.
    pub(super) threads: u64,
    /// The same, each by its share.
    pub(super) weight: u64,
    /// The single-node gangs among them: CPUs and share.
    pub(super) gangs: Vec<(u32, u32)>,
}

impl Claim {
    /// What the gangs that fit into no row weigh, if there is so much room at most; two of more than half a node cannot
    /// run side by side.
    fn blocked(&self, cpus: u32, room: u32) -> u64 {
        let blocked = self.gangs.iter().filter(|(wanted, _)| *wanted > room);
        let weigh = |(wanted, share): &(u32, u32)| {
            let taken = if *wanted > cpus / 2 { cpus } else { *wanted };
            u64::from(taken) * u64::from(*share)
        };
        blocked.map(weigh).sum::<u64>().min(self.weight)
    }
}

/// What comes out.
#[derive(Debug, Default)]
pub(super) struct Cycle {
    pub(super) turns: Vec<Turn>,
    /// The rows and the one of open turns.
    pub(super) rows: Vec<PlannedRow>,
    /// Of each gang, in their order.
    pub(super) turns_16: Vec<u32>,
}

/// The cycle of a matrix. `gangs` is ascending by id, `claims` has an entry for every node of the layout.
pub(super) fn cycle(layout: &Layout, rows: &[Row], gangs: &[Gang], claims: &[Claim], ceiling_permille: u32) -> Cycle {
    if gangs.is_empty() {
        return Cycle {
            rows: vec![PlannedRow { residents: vec![], lineups: vec![vec![]], turns: 0 }],
            ..Cycle::default()
        };
    }
    let mut best = vec![1; rows.len()];
    for gang in gangs {
        let share = &mut best[gang.row as usize];
        *share = gang.share.max(*share);
    }
    let weights = scaled(&best.iter().map(|w| u64::from(*w)).collect::<Vec<u64>>(), CYCLE_TURNS_MAX);
    let mut budget = Budget::new(layout, rows, gangs, claims, ceiling_permille, (&weights, &best));
    let (stretch, open) = budget.open_turns(weights.iter().sum());
    let mut weights: Vec<u64> = weights.iter().map(|w| w * stretch).collect();
    weights.push(open);
    budget.grant(stretch, weights.iter().sum());

    let order = row_order(&weights.iter().copied().filter(|w| *w > 0).collect::<Vec<u64>>());
    let mut had = vec![0; weights.len()];
    let turn = |row: usize| {
        had[row] += 1;
        Turn { row: row as u32, nth: had[row] - 1 }
    };
    let turns: Vec<Turn> = order.into_iter().map(turn).collect();

    let mut turns_16 = vec![0; gangs.len()];
    let empty = Row::empty(layout);
    let mut planned = Vec::with_capacity(weights.len());
    for (row, weight) in weights.iter().enumerate() {
        let (cells, share) = rows.get(row).map_or((&empty, 1), |cells| (cells, best[row]));
        let lineup = if *weight > 0 {
            Lineups { row: row as u32, cells, best: share, turns: *weight, gangs }.all(&mut budget)
        } else {
            vec![vec![]]
        };
        for gang in lineup.iter().flatten() {
            turns_16[*gang] += (*weight * u64::from(LINEUPS_MAX) / lineup.len() as u64) as u32;
        }
        let named = |gangs_of: Vec<usize>| gangs_of.into_iter().map(|gang| gangs[gang].id).collect();
        planned.push(PlannedRow {
            residents: gangs.iter().filter(|gang| gang.row as usize == row).map(|gang| gang.id).collect(),
            lineups: lineup.into_iter().map(named).collect(),
            turns: *weight as u32,
        });
    }
    Cycle { turns, rows: planned, turns_16 }
}

/// In how many of `of` line-ups a gang of a share is due, in a row of a best share.
fn due(share: u32, best: u32, of: u32) -> u32 {
    (u64::from(share) * u64::from(of)).div_ceil(u64::from(best)) as u32
}

/// How many line-ups give gangs of these shares their parts of a row, as exactly as can be.
fn lineups_for(best: u32, shares: impl Iterator<Item = u32> + Clone) -> u32 {
    let exact =
        |of: &u32| shares.clone().all(|share| (u64::from(share) * u64::from(*of)).is_multiple_of(u64::from(best)));
    [1, 2, 4, 8].into_iter().find(exact).unwrap_or(LINEUPS_MAX)
}

/// What gangs may have of each node, where that is less than all.
struct Budget {
    /// What they have by their due turns, in a cycle that is not stretched.
    used_16: Vec<u64>,
    /// The part that they may have, as a fraction; `None` for all.
    part: Vec<Option<(u64, u64)>>,
    /// The part of all turns that rows may have, as a fraction, for the sake of others.
    rows_part: Vec<Option<(u64, u64)>>,
    cpus: Vec<u64>,
    /// Whether what gangs leave is for others on this node.
    claimed: Vec<bool>,
    /// What is left, once granted.
    spare_16: Vec<u64>,
    limited: bool,
}

impl Budget {
    /// Rows weigh as `weights`, and their best shares are `best`.
    fn new(
        layout: &Layout,
        rows: &[Row],
        gangs: &[Gang],
        claims: &[Claim],
        ceiling: u32,
        (weights, best): (&[u64], &[u32]),
    ) -> Budget {
        let nodes = layout.nodes().len();
        let (mut used_16, mut threads, mut weight) = (vec![0_u64; nodes], vec![0_u64; nodes], vec![0_u64; nodes]);
        let shares_of = |row: u32| gangs.iter().filter(move |gang| gang.row == row).map(|gang| gang.share);
        let of_row: Vec<u32> = (0..).zip(best).map(|(row, best)| lineups_for(*best, shares_of(row))).collect();
        for gang in gangs {
            let row = gang.row as usize;
            let of = of_row[row];
            let turns_16 = weights[row] * u64::from(due(gang.share, best[row], of) * (LINEUPS_MAX / of));
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
        let limited = part.iter().any(Option::is_some);
        let open = |node: usize| {
            let room = rows.iter().map(|row| row.free_of[node]).max().unwrap_or(0);
            let all = weight[node] + claims[node].weight;
            claimed[node].then(|| (all - claims[node].blocked(cpus[node] as u32, room), all))
        };
        let rows_part = (0..nodes).map(open).collect();
        Budget { used_16, part, rows_part, cpus, claimed, spare_16: Vec::new(), limited }
    }

    /// How often a cycle of `turns` is repeated, and how many open turns there are then.
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
        // By how much a stretched cycle is too long: a part of `stretch * num`.
        let excess = |stretch: u64| (stretch * num).div_ceil(den) * den - stretch * num;
        let fits = |stretch: &u64| (stretch * num).div_ceil(den) <= CYCLE_TURNS_MAX;
        let even = (1..=STRETCH_MAX).filter(fits).find(|stretch| excess(*stretch) * EVEN <= stretch * num);
        let by_part = |a: &u64, b: &u64| (excess(*a) * b).cmp(&(excess(*b) * a));
        let stretch = even.or_else(|| (1..=STRETCH_MAX).filter(fits).min_by(by_part));
        let stretch = stretch.unwrap_or(1);
        let length = (stretch * num).div_ceil(den).min(CYCLE_TURNS_MAX.max(turns + 1));
        (stretch, length - stretch * turns)
    }

    /// Fixes what is left in a cycle of `turns`, after the due turns of a cycle that was stretched so often.
    fn grant(&mut self, stretch: u64, turns: u64) {
        let spare = |node: usize| match self.part[node] {
            Some((num, den)) => (16 * self.cpus[node] * turns * num / den).saturating_sub(self.used_16[node] * stretch),
            None => u64::MAX,
        };
        if self.limited {
            self.spare_16 = (0..self.part.len()).map(spare).collect();
        }
    }

    /// Takes what a gang uses beyond its due, if all its nodes have it.
    fn take(&mut self, gang: &Gang, turns_16: u64) -> bool {
        if !self.limited {
            return true;
        }
        let (spare, claimed) = (&self.spare_16, &self.claimed);
        let has = |(node, cpus): &(u32, u32)| {
            let node = *node as usize;
            spare[node] >= u64::from(*cpus) * turns_16 && !claimed[node]
        };
        if !gang.cpus.iter().all(has) {
            return false;
        }
        for (node, cpus) in gang.cpus {
            let left = &mut self.spare_16[*node as usize];
            *left = if *left == u64::MAX { *left } else { *left - u64::from(*cpus) * turns_16 };
        }
        true
    }
}

/// One row, and what its line-ups are made of.
struct Lineups<'a> {
    row: u32,
    cells: &'a Row,
    /// The best share of its gangs.
    best: u32,
    turns: u64,
    gangs: &'a [Gang<'a>],
}

impl Lineups<'_> {
    /// The line-ups: gangs by their place in the list of all, ascending.
    fn all(&self, budget: &mut Budget) -> Vec<Vec<usize>> {
        let of_row = |gang: &usize| self.gangs[*gang].row == self.row;
        let (residents, others): (Vec<usize>, Vec<usize>) = (0..self.gangs.len()).partition(of_row);
        let (full, part): (Vec<usize>, Vec<usize>) =
            residents.iter().partition(|gang| self.gangs[**gang].share == self.best);
        let mut free = self.cells.free.clone();
        part.iter().for_each(|gang| free.add(self.gangs[*gang].spans));
        let fits = |gang: &usize| free.contains(self.gangs[*gang].spans);
        let mut optional: Vec<usize> = part.iter().copied().chain(others.into_iter().filter(fits)).collect();
        if optional.is_empty() {
            return vec![residents];
        }
        optional.sort_unstable();
        let contested = self.contested(&optional, free.clone());
        let rivals = contested.iter().filter(|rival| **rival).count() as u32;
        let thinned = part.iter().any(|gang| optional.binary_search(gang).is_ok_and(|at| contested[at]));
        let of = rivals.clamp(1, CONTEST_MAX).next_power_of_two();
        let of = if thinned || budget.limited && !part.is_empty() {
            of.max(lineups_for(self.best, part.iter().map(|gang| self.gangs[*gang].share)))
        } else {
            of
        };
        // Those without rivals come first, and the sort below leaves them there.
        let mut queue: Vec<usize> = (0..optional.len()).collect();
        queue.sort_by_key(|at| contested[*at]);
        let calm = optional.len() - rivals as usize;
        let mut served = vec![0_u64; optional.len()];
        let mut lineups = Vec::with_capacity(of as usize);
        for nth in 0..of {
            // served / share, without fractions; of equals the older job.
            let key = |at: &usize| (served[*at] * 65_536 / u64::from(self.gangs[optional[*at]].share), *at);
            queue[calm..].sort_unstable_by_key(key);
            let mut run = full.clone();
            let mut left = free.clone();
            let is_due = |gang: usize| {
                let due = u64::from(due(self.gangs[gang].share, self.best, of));
                let (nth, of) = (u64::from(nth), u64::from(of));
                self.gangs[gang].row == self.row && (nth + 1) * due / of > nth * due / of
            };
            for at in (0..optional.len()).filter(|at| is_due(optional[*at])) {
                left.take(self.gangs[optional[at]].spans);
                run.push(optional[at]);
                served[at] += 1;
            }
            for at in queue.iter().copied().filter(|at| !is_due(optional[*at])) {
                let gang = &self.gangs[optional[at]];
                let turns_16 = self.turns * u64::from(LINEUPS_MAX / of);
                if left.contains(gang.spans) && budget.take(gang, turns_16) {
                    left.take(gang.spans);
                    run.push(optional[at]);
                    served[at] += 1;
                }
            }
            run.sort_unstable();
            lineups.push(run);
        }
        lineups
    }

    /// Which of the gangs want cells that others want too.
    fn contested(&self, optional: &[usize], mut once: Bits) -> Vec<bool> {
        let mut twice = once.clone();
        once.clear();
        twice.clear();
        for gang in optional {
            twice.note_again(&mut once, self.gangs[*gang].spans);
        }
        optional.iter().map(|gang| twice.meets(self.gangs[*gang].spans)).collect()
    }
}
