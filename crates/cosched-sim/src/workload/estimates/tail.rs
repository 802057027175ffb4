//! The tail: rare estimates, spread from the shortest to the longest.

use super::{HEAD, HEAD_PERCENT};
use crate::workload::random::Random;
use std::collections::BTreeMap;

/// The offsets that are tried when a time is already used, s.
const OFFSETS: [i64; 7] = [0, 30, -30, 20, -20, 10, -10];

/// Adds the tail to the head, until there are about `distinct` times.
pub(super) fn add_tail(percent: &mut BTreeMap<u64, f64>, max_s: u64, distinct: usize, random: &mut Random) {
    let count = distinct.saturating_sub(HEAD);
    let curve = curve(distinct);
    let mut times: Vec<u64> = Vec::with_capacity(count);
    for place in 1..=count {
        let x = place as f64 / count as f64;
        let seconds = max_s as f64 * (curve - 1.0) * x / (curve - x);
        let minutes = ((seconds / 60.0).round() * 60.0) as i64;
        let is_free = |time: &u64| *time > 0 && *time < max_s && !percent.contains_key(time) && !times.contains(time);
        let candidates = OFFSETS.iter().filter_map(|offset| u64::try_from(minutes + offset).ok());
        if let Some(time) = candidates.into_iter().find(is_free) {
            times.push(time);
        }
    }
    let mut sizes: Vec<f64> = (HEAD + 1..).take(times.len()).map(|rank| libm::pow(rank as f64, -2.267)).collect();
    let sum: f64 = sizes.iter().sum();
    shuffle(&mut sizes, random);
    for (time, size) in times.into_iter().zip(sizes) {
        percent.insert(time, size / sum * (100.0 - HEAD_PERCENT));
    }
}

/// The curvature of the distribution of times, for this number of different estimates.
fn curve(distinct: usize) -> f64 {
    1.0 + 12.1039 * libm::pow(distinct as f64, -0.6026)
}

fn shuffle(values: &mut [f64], random: &mut Random) {
    for last in (1..values.len()).rev() {
        values.swap(last, random.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_has_its_published_values() {
        assert!((curve(90) - 1.804_079).abs() < 1e-6, "{}", curve(90));
        assert!((curve(340) - 1.360_958).abs() < 1e-6, "{}", curve(340));
    }

    #[test]
    fn the_tail_has_the_rest() {
        let mut percent = BTreeMap::from([(3600, 89.0)]);
        add_tail(&mut percent, 36_000, 90, &mut Random::new(1, 0));
        assert!((percent.values().sum::<f64>() - 100.0).abs() < 1e-9);
        assert_eq!(percent.len(), 71);
    }
}
