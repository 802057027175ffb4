//! The jobs that fill CPUs which the running gang leaves idle: those in the background, in an order that differs from turn to turn.
//!
//! The turns of each of them are stored once for the whole table, and the order in a turn is derived from them: a list for every turn would
//! take as much memory as turns times jobs.

use super::Entry;
use crate::plan::Disposition;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// One turn that lists a job.
#[derive(Debug)]
struct Run {
    turn: u32,
    job: u16,
    /// The number of turns since the job's previous one; the whole cycle when it has no other.
    since: u32,
}

/// The jobs of one weight.
#[derive(Debug, Default)]
struct Rank {
    /// By turn, then by job.
    runs: Vec<Run>,
    /// The jobs that no turn lists.
    never: Vec<u16>,
}

/// All jobs that are in the background in some turn, the largest weight first.
#[derive(Debug)]
pub(super) struct Fillers {
    ranks: Vec<Rank>,
    /// The turns of a cycle.
    cycle: u32,
    /// The number of these jobs that have a turn.
    placed: usize,
    /// For each job of the table, whether it is one of these.
    is_filler: Vec<bool>,
}

impl Fillers {
    /// The fillers of these jobs; each of the turns must be ascending.
    pub(super) fn new<S>(turns: &[Vec<u16>], jobs: &[Entry<S>]) -> Fillers {
        let is_filler: Vec<bool> = jobs.iter().map(|job| job.otherwise == Disposition::Background).collect();
        let cycle = turns.len() as u32;
        let named = |k: usize| turns[k].iter().map(|&j| usize::from(j)).filter(|&j| is_filler[j]);
        let mut last: Vec<Option<u32>> = vec![None; jobs.len()];
        for k in 0..turns.len() {
            named(k).for_each(|j| last[j] = Some(k as u32));
        }
        let placed = last.iter().flatten().count();
        let mut ranks: BTreeMap<Reverse<u32>, Rank> = BTreeMap::new();
        for j in (0..jobs.len()).filter(|&j| is_filler[j]) {
            let rank = ranks.entry(Reverse(jobs[j].weight)).or_default();
            if last[j].is_none() {
                rank.never.push(j as u16);
            }
        }
        for k in 0..turns.len() {
            for j in named(k) {
                let turn = k as u32;
                let since = match last[j].replace(turn) {
                    Some(before) if before < turn => turn - before,
                    // Its last turn of the previous cycle; the present turn, when that is its only one.
                    before => turn + cycle - before.unwrap_or(turn),
                };
                ranks.entry(Reverse(jobs[j].weight)).or_default().runs.push(Run { turn, job: j as u16, since });
            }
        }
        Fillers { ranks: ranks.into_values().collect(), cycle, placed, is_filler }
    }

    /// The number of turns after turn `k` until a job runs that is in the background in `k`; 0 when none ever does.
    pub(super) fn pair(&self, turns: &[Vec<u16>], k: usize) -> u32 {
        let fillers = |k: usize| turns[k].iter().filter(|&&j| self.is_filler[usize::from(j)]);
        if fillers(k).count() == self.placed {
            return 0;
        }
        let comes = |d: &usize| fillers((k + d) % turns.len()).any(|j| turns[k].binary_search(j).is_err());
        (1..turns.len()).find(comes).unwrap_or(0) as u32
    }

    /// The jobs in the background of turn `k`: those that run `pair` turns later, then, if `all` is set, the others by weight, and those of
    /// one weight by how soon they run.
    pub(super) fn after(&self, k: usize, pair: u32, all: bool) -> impl Iterator<Item = u16> {
        let k = k as u32;
        let pairs = self.ranks.iter().flat_map(move |rank| rank.at(k, pair, self.cycle));
        let others = if all { &self.ranks[..] } else { &[] };
        pairs.chain(others.iter().flat_map(move |rank| rank.others(k, pair, self.cycle)))
    }
}

impl Rank {
    fn at(&self, k: u32, pair: u32, cycle: u32) -> impl Iterator<Item = u16> {
        let turn = if pair == 0 { cycle } else { (k + pair) % cycle };
        let from = self.runs.partition_point(|run| run.turn < turn);
        let there = self.runs[from..].iter().take_while(move |run| run.turn == turn);
        there.filter(move |run| run.since > pair).map(|run| run.job)
    }

    fn others(&self, k: u32, pair: u32, cycle: u32) -> impl Iterator<Item = u16> {
        let from = self.runs.partition_point(|run| run.turn <= k);
        let (before, behind) = self.runs.split_at(from);
        let first = move |run: &&Run| {
            let distance = if run.turn > k { run.turn - k } else { run.turn + cycle - k };
            // Otherwise the job has run since turn k, or runs in it.
            run.since > distance && distance != pair
        };
        behind.iter().chain(before).filter(first).map(|run| run.job).chain(self.never.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::super::tests::entries;
    use super::super::{Fill, Prepared, Table};
    use super::*;
    use alloc::vec;
    use std::time::{Duration, Instant};

    /// The same result, computed from the definition.
    fn by_definition(k: usize, turns: &[Vec<u16>], jobs: &[Entry<()>], all: bool) -> Vec<u16> {
        let runs = |d: usize, j: u16| turns[(k + d) % turns.len()].contains(&j);
        let turns_to = |j: u16| (1..turns.len()).find(|&d| runs(d, j)).unwrap_or(usize::MAX);
        let may = |&j: &u16| jobs[usize::from(j)].otherwise == Disposition::Background && !runs(0, j);
        let mut found: Vec<u16> = (0..jobs.len() as u16).filter(may).collect();
        let pair = found.iter().map(|&j| turns_to(j)).min().unwrap_or(usize::MAX);
        let is_pair = |j: u16| turns_to(j) == pair && pair != usize::MAX;
        found.retain(|&j| all || is_pair(j));
        found.sort_by_key(|&j| (!is_pair(j), Reverse(jobs[usize::from(j)].weight), turns_to(j)));
        found
    }

    #[test]
    fn the_order_is_that_of_its_definition() {
        let mut seed = 7_u64;
        let mut below = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        for _ in 0..400 {
            let states = [Disposition::Background, Disposition::Background, Disposition::Stop, Disposition::Run];
            let otherwise: Vec<Disposition> = (0..1 + below(7)).map(|_| states[below(4) as usize]).collect();
            let mut jobs = entries(&otherwise);
            jobs.iter_mut().for_each(|job| job.weight = [100, 50][below(2) as usize]);
            let mut turn = || (0..otherwise.len() as u16).filter(|_| below(3) == 0).collect::<Vec<u16>>();
            let turns: Vec<Vec<u16>> = (0..6).map(|_| turn()).collect();
            let turns = &turns[..1 + below(6) as usize];
            let fillers = Fillers::new(turns, &jobs);
            for (k, all) in (0..turns.len()).flat_map(|k| [(k, false), (k, true)]) {
                let found: Vec<u16> = fillers.after(k, fillers.pair(turns, k), all).collect();
                assert_eq!(found, by_definition(k, turns, &jobs, all), "turn {k} of {turns:?} of {otherwise:?}");
            }
        }
    }

    #[test]
    fn many_jobs_are_made_ready_in_time_that_grows_as_they_do() {
        let time = |count: u16| {
            let jobs = entries(&vec![Disposition::Background; usize::from(count)]);
            let turns: Vec<Vec<u16>> = (0..count / 2).map(|k| vec![2 * k, 2 * k + 1]).collect();
            let once = || {
                let (jobs, turns, fill) = (jobs.clone(), turns.clone(), Fill::All);
                let table = Table { epoch_ns: 0, slot_length_ns: 1, jobs, turns, fill, ..Table::empty() };
                let start = Instant::now();
                let prepared = Prepared::new(table, 1);
                assert!(prepared.may_fill());
                start.elapsed()
            };
            (0..5).map(|_| once()).min().unwrap_or(Duration::MAX)
        };
        let (few, many) = (time(60), time(960));
        assert!(many < few * 16 * 4, "60 jobs take {few:?}, 960 {many:?}: that is more than their number says");
    }
}
