//! The generator of D18, for WL1 to WL8: the paper's form (hyper-Erlang of common order, sizes in powers of two) with
//! our own values, since its fitted values were not printed.

use crate::workload::TraceJob;
use crate::workload::fit::HyperErlang;
use crate::workload::random::{ARRIVALS, RUNS, Random, SIZES};

/// The classes' upper ends and probabilities.
const CLASSES: [(u32, u32, f64); 6] =
    [(1, 1, 0.10), (2, 2, 0.10), (3, 4, 0.15), (5, 8, 0.25), (9, 16, 0.25), (17, 32, 0.15)];

/// Draws `count` jobs of at most `size_max` tasks (at least 1). Gaps and run times have mean 1 s, to be scaled.
pub fn paper(count: usize, size_max: u32, seed: u64) -> Vec<TraceJob> {
    let gaps = HyperErlang::of_means(2, 0.9, 5.0 / 9.0, 5.0);
    let runs = HyperErlang::of_means(2, 0.8, 0.375, 3.5);
    let [mut arrivals, mut times, mut sizes] = [ARRIVALS, RUNS, SIZES].map(|stream| Random::new(seed, stream));
    let mut now = 0.0;
    let mut draw = |number| {
        now += gaps.sample(&mut arrivals);
        let (run_s, size) = (runs.sample(&mut times), size(size_max, &mut sizes));
        TraceJob { number, submit_s: now, run_s, size, estimate_s: None, kind: None }
    };
    (1..=count as u64).map(&mut draw).collect()
}

fn size(size_max: u32, random: &mut Random) -> u32 {
    loop {
        let mut rest = random.unit();
        let class = CLASSES.iter().find(|(.., probability)| {
            rest -= probability;
            rest < 0.0
        });
        // Rounding errors may leave a remainder after the last class.
        let (low, high, _) = class.copied().unwrap_or(CLASSES[5]);
        let size = if random.chance(0.75) { high } else { low + random.below(u64::from(high - low + 1)) as u32 };
        if size <= size_max.max(1) {
            return size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draws_are_those_of_d18() {
        let jobs = paper(40_000, 32, 1);
        let n = jobs.len() as f64;
        let share = |low, high| jobs.iter().filter(|job| (low..=high).contains(&job.size)).count() as f64 / n;
        for (low, high, probability) in CLASSES {
            assert!((share(low, high) - probability).abs() < 0.01, "{low} {}", share(low, high));
        }
        assert!((share(32, 32) - 0.15 * (0.75 + 0.25 / 16.0)).abs() < 0.01);
        let mean = jobs.iter().map(|job| job.run_s).sum::<f64>() / n;
        let variance = jobs.iter().map(|job| (job.run_s - mean).powi(2)).sum::<f64>() / n;
        assert!((mean - 1.0).abs() < 0.03 && (variance.sqrt() - 1.69).abs() < 0.06, "{mean} {variance}");
        assert!((jobs.last().unwrap().submit_s / n - 1.0).abs() < 0.03);
    }

    #[test]
    fn sizes_are_redrawn_and_lists_grow_at_their_end() {
        assert!(paper(2_000, 5, 1).iter().all(|job| job.size <= 5));
        assert!(paper(20, 1, 1).iter().all(|job| job.size == 1));
        assert_eq!(paper(100, 32, 7)[..50], paper(50, 32, 7));
        assert_ne!(paper(50, 32, 8), paper(50, 32, 7));
    }
}
