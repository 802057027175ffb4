//! The head: 20 popular estimates.

use super::{EstimateModel, HEAD, HEAD_PERCENT};
use crate::workload::random::Random;
use std::collections::{BTreeMap, BTreeSet};

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;

/// Estimates that are popular at all sites.
const JOINT: [u64; 15] = [
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    20 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    4 * HOUR,
    5 * HOUR,
    6 * HOUR,
    8 * HOUR,
    10 * HOUR,
    12 * HOUR,
    18 * HOUR,
];

/// Multiples of these fill up the head. The last one is our addition: limits below 100 minutes have too few multiples
/// of the others.
const ROUND: [u64; 11] = [
    200 * HOUR,
    100 * HOUR,
    50 * HOUR,
    10 * HOUR,
    5 * HOUR,
    2 * HOUR,
    HOUR,
    20 * MINUTE,
    10 * MINUTE,
    5 * MINUTE,
    MINUTE,
];

/// Popularity ranks of the time ranks 0 to 19 (0 is the longest estimate, then ascending) in four logs: SDSC, CTC,
/// KTH, BLUE.
const POPULARITY: [[usize; 4]; HEAD] = [
    [3, 1, 1, 1],
    [1, 3, 4, 6],
    [4, 4, 10, 5],
    [17, 2, 14, 3],
    [13, 12, 20, 7],
    [7, 9, 2, 2],
    [8, 8, 3, 18],
    [18, 18, 7, 19],
    [2, 6, 12, 4],
    [6, 7, 6, 11],
    [16, 11, 19, 20],
    [10, 20, 5, 9],
    [5, 16, 18, 10],
    [15, 5, 16, 14],
    [14, 14, 9, 13],
    [19, 13, 17, 16],
    [11, 10, 15, 15],
    [12, 15, 13, 17],
    [9, 17, 8, 8],
    [20, 19, 11, 12],
];

/// The head's times and their percentages of all jobs.
pub(super) fn head(model: &EstimateModel, count: u64, random: &mut Random) -> BTreeMap<u64, f64> {
    let times = merged_times(model);
    let (sizes, rank_of) = sizes(model, count);
    let fixed: BTreeMap<usize, usize> =
        (0..HEAD).filter_map(|time_rank| Some((time_rank, *rank_of.get(&times[time_rank])?))).collect();
    let ranks = ranks(&fixed, random);
    times.iter().zip(ranks).map(|(time, rank)| (*time, sizes[rank - 1])).collect()
}

/// The longest estimate, then popular and round ones, ascending.
fn default_times(max_s: u64) -> Vec<u64> {
    let mut times: Vec<u64> = JOINT.iter().copied().filter(|time| *time < max_s).collect();
    for step in ROUND {
        let mut time = max_s / step * step;
        while time > 0 && times.len() + 1 < HEAD {
            if time < max_s && !times.contains(&time) {
                times.push(time);
            }
            time -= step;
        }
    }
    times.sort_unstable();
    times.insert(0, max_s);
    times
}

/// Known estimates replace the nearest ones of the model: round ones first, then popular ones.
fn merged_times(model: &EstimateModel) -> Vec<u64> {
    let mut times = default_times(model.max_s);
    let new: BTreeSet<u64> = model.known.iter().map(|bin| bin.time_s).filter(|time| !times.contains(time)).collect();
    let mut placed: BTreeMap<u64, u64> = BTreeMap::new();
    for of_joint in [false, true] {
        let replaceable = times[1..].iter().filter(|time| JOINT.contains(time) == of_joint);
        let is_known = |time: &u64| model.known.iter().any(|bin| bin.time_s == *time);
        let pairs = replaceable.filter(|time| !is_known(time)).flat_map(|old| new.iter().map(move |new| (*new, *old)));
        let mut pairs: Vec<(u64, u64)> = pairs.collect();
        pairs.sort_by_key(|(new, old)| (new.abs_diff(*old), *new, *old));
        for (new, old) in pairs {
            let is_placed = placed.values().any(|placed| *placed == new);
            if !is_placed && !placed.contains_key(&old) {
                placed.insert(old, new);
            }
        }
    }
    for time in &mut times {
        *time = placed.get(time).copied().unwrap_or(*time);
    }
    times[1..].sort_unstable();
    times
}

/// Sizes by popularity rank (from 1), in per cent, and the ranks of known times.
fn sizes(model: &EstimateModel, count: u64) -> (Vec<f64>, BTreeMap<u64, usize>) {
    let percent = |jobs: u64| 100.0 * jobs as f64 / count.max(1) as f64;
    // (size, known time); rank 1 is the longest estimate's.
    let mut sizes: Vec<(f64, Option<u64>)> = (1..=HEAD).map(|rank| (modelled(rank), None)).collect();
    sizes[0].0 = HEAD_PERCENT - sizes[1..].iter().map(|(size, _)| size).sum::<f64>();
    let mut known = model.known.clone();
    known.sort_by_key(|bin| (std::cmp::Reverse(bin.jobs), bin.time_s));
    for bin in known {
        let size = percent(bin.jobs);
        let candidates = if bin.time_s == model.max_s { 0..1 } else { 1..HEAD };
        let distance = |place: &usize| (sizes[*place].0 - size).abs();
        let open = candidates.filter(|place| sizes[*place].1.is_none());
        if let Some(place) = open.min_by(|a, b| distance(a).total_cmp(&distance(b))) {
            sizes[place] = (size, Some(bin.time_s));
        }
    }
    let sum_of = |is_known: bool| -> f64 {
        sizes.iter().filter(|(_, time)| time.is_some() == is_known).map(|(size, _)| size).sum()
    };
    let factor = ((HEAD_PERCENT - sum_of(true)) / sum_of(false)).max(0.0);
    for (size, time) in &mut sizes {
        *size *= if time.is_some() { 1.0 } else { factor };
    }
    sizes[1..].sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let rank_of = sizes.iter().zip(1..).filter_map(|((_, time), rank)| Some(((*time)?, rank))).collect();
    (sizes.into_iter().map(|(size, _)| size).collect(), rank_of)
}

/// The percentage of jobs with the estimate of this popularity rank, from 2.
fn modelled(rank: usize) -> f64 {
    14.0491 * libm::exp(-0.177_531 * rank as f64) + 0.462_513
}

/// The popularity rank of each time rank: drawn from the ranks of the logs at this position or before.
fn ranks(fixed: &BTreeMap<usize, usize>, random: &mut Random) -> Vec<usize> {
    let last_row = |rank: usize| POPULARITY.iter().rposition(|row| row.contains(&rank)).unwrap_or_default();
    let reserved: BTreeSet<usize> = fixed.values().copied().collect();
    let mut chosen: Vec<usize> = Vec::with_capacity(HEAD);
    let mut pool: Vec<usize> = Vec::new();
    for (time_rank, row) in POPULARITY.iter().enumerate() {
        pool.extend(row.iter().filter(|rank| !chosen.contains(rank) && !reserved.contains(rank)));
        let free = |rank: &usize| !chosen.contains(rank) && !reserved.contains(rank);
        let due = (1..=HEAD).find(|rank| free(rank) && last_row(*rank) <= time_rank);
        let rank = match (fixed.get(&time_rank), due) {
            (Some(rank), _) => *rank,
            (None, _) if time_rank == 0 => 1,
            (None, Some(rank)) => rank,
            (None, None) => {
                let mut draw = || pool.get(random.below(pool.len().max(1) as u64) as usize).copied();
                // The pool is empty only if known ranks have used it up.
                draw().min(draw()).or_else(|| (1..=HEAD).find(free)).unwrap_or(1)
            }
        };
        chosen.push(rank);
        pool.retain(|other| *other != rank);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::super::EstimateBin;
    use super::*;

    #[test]
    fn times_are_those_of_the_model() {
        let times = default_times(18 * HOUR);
        assert_eq!((times.len(), times[0], times[1], times[19]), (HEAD, 18 * HOUR, 5 * MINUTE, 17 * HOUR));
        // 14 popular ones are below; then multiples of 5 hours, of 2 hours, of an hour.
        assert_eq!(times[15..].iter().map(|time| time / HOUR).collect::<Vec<_>>(), [13, 14, 15, 16, 17]);
        for max_s in [HOUR, HOUR + 1, 6000, 1_000_000] {
            let times = default_times(max_s);
            assert!(times.len() == HEAD && times[1..].is_sorted() && times[19] < max_s, "{times:?}");
        }
    }

    #[test]
    fn sizes_sum_up() {
        let model = EstimateModel { max_s: 64_800, known: Vec::new() };
        let (sizes, _) = sizes(&model, 1000);
        assert!((sizes[0] - 21.7329).abs() < 1e-4, "{}", sizes[0]);
        assert!((sizes[1..].iter().sum::<f64>() - 67.2671).abs() < 1e-4);
    }

    #[test]
    fn a_known_share_of_the_longest_scales_the_others() {
        let known = vec![EstimateBin { time_s: 64_800, jobs: 500 }];
        let (sizes, ranks) = sizes(&EstimateModel { max_s: 64_800, known }, 1000);
        assert_eq!((sizes[0], ranks.get(&64_800)), (50.0, Some(&1)));
        assert!((sizes.iter().sum::<f64>() - HEAD_PERCENT).abs() < 1e-9);
    }

    #[test]
    fn every_rank_is_given_once() {
        for seed in 0..200 {
            for fixed in [BTreeMap::new(), BTreeMap::from([(0, 4), (7, 1), (19, 20)])] {
                let mut ranks = ranks(&fixed, &mut Random::new(seed, 0));
                assert!(fixed.iter().all(|(time_rank, rank)| ranks[*time_rank] == *rank));
                assert!(!fixed.is_empty() || ranks[0] == 1);
                ranks.sort_unstable();
                assert!(ranks.iter().copied().eq(1..=HEAD) || !fixed.is_empty(), "{ranks:?}");
            }
        }
    }
}
