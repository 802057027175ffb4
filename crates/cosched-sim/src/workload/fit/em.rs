//! The fit by maximum likelihood: expectation–maximisation for each order, choosing the order with the highest
//! likelihood. While three moments follow the few longest times, this follows the body of the sample.

use super::moments::fit_order;
use super::{HyperErlang, Moments};

/// The highest order that is tried.
pub const ORDER_MAX_EM: u32 = 64;
/// The maximum number of iterations for each order.
const ROUNDS_MAX: u32 = 500;
/// The iteration stops when it gains less log-likelihood per value than this.
const GAIN_MIN: f64 = 1e-9;
/// The search for the order ends after this number of orders without a gain.
const WORSE_MAX: u32 = 3;
/// Samples with more distinct values are grouped into classes of 0.2 % width.
const DISTINCT_MAX: usize = 4096;

/// A fit by maximum likelihood.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct EmFit {
    /// The distribution.
    #[serde(flatten)]
    pub model: HyperErlang,
    /// The logarithm of the sample's likelihood.
    pub log_likelihood: f64,
    /// The Bayesian information criterion: 4 ln N − 2 ln L. All orders have the same number of parameters, so the
    /// smallest BIC means the highest likelihood.
    pub bic: f64,
    /// The iterations of the chosen order.
    pub iterations: u32,
}

/// A distinct value, its logarithm and how often it occurs.
struct Point {
    t: f64,
    ln_t: f64,
    weight: f64,
}

/// Fits a sorted sample. Times of 0 are below the resolution of the log: they are taken as half of the smallest time
/// above 0. `None` for samples without two different positive values.
pub fn fit_em(sorted: &[f64]) -> Option<EmFit> {
    let smallest = sorted.iter().copied().find(|t| *t > 0.0)?;
    let points = distinct(sorted, smallest / 2.0);
    if points.len() < 2 {
        return None;
    }
    let n = sorted.len() as f64;
    let mut best: Option<EmFit> = None;
    let mut worse = 0;
    for order in 1..=ORDER_MAX_EM {
        let start = best.map_or_else(|| first_guess(sorted, order), |fit| reordered(&fit.model, order));
        let (model, log_likelihood, iterations) = climb(&points, n, start);
        if !log_likelihood.is_finite() {
            break;
        }
        if best.is_none_or(|fit| log_likelihood > fit.log_likelihood) {
            let bic = 4.0 * libm::log(n) - 2.0 * log_likelihood;
            best = Some(EmFit { model, log_likelihood, bic, iterations });
            worse = 0;
        } else {
            worse += 1;
            if worse == WORSE_MAX {
                break;
            }
        }
    }
    best.map(|fit| EmFit { model: ordered(fit.model), ..fit })
}

/// The distinct values; of large samples, classes with the mean of their values.
fn distinct(sorted: &[f64], floor: f64) -> Vec<Point> {
    const WIDTH: f64 = 1.002;
    let is_large = sorted.chunk_by(|a, b| a == b).count() > DISTINCT_MAX;
    let same = |first: f64, t: f64| if is_large { t <= first * WIDTH } else { t == first };
    let mut classes: Vec<(f64, f64, f64)> = Vec::new();
    for t in sorted.iter().map(|t| t.max(floor)) {
        match classes.last_mut() {
            Some((first, sum, weight)) if same(*first, t) => {
                *sum += t;
                *weight += 1.0;
            }
            _ => classes.push((t, t, 1.0)),
        }
    }
    let point = |(_, sum, weight): (f64, f64, f64)| Point { t: sum / weight, ln_t: libm::log(sum / weight), weight };
    classes.into_iter().map(point).collect()
}

/// The fit by moments if there is one, otherwise the two halves of the sample.
fn first_guess(sorted: &[f64], order: u32) -> HyperErlang {
    let moments = Moments::of(sorted);
    if let Some(fit) = moments.and_then(|moments| fit_order(&moments, order)) {
        return HyperErlang { p1: fit.p1.clamp(0.05, 0.95), ..fit };
    }
    let (low, high) = sorted.split_at(sorted.len() / 2);
    let mean = |half: &[f64]| (half.iter().sum::<f64>() / half.len().max(1) as f64).max(1e-9);
    HyperErlang::of_means(order, 0.5, mean(low) * 0.99, mean(high) * 1.01)
}

/// The same means of the branches with another order.
fn reordered(model: &HyperErlang, order: u32) -> HyperErlang {
    let mean = |lambda: f64| f64::from(model.order) / lambda;
    HyperErlang::of_means(order, model.p1, mean(model.lambda1), mean(model.lambda2))
}

/// The branch of short times comes first.
fn ordered(model: HyperErlang) -> HyperErlang {
    if model.lambda1 >= model.lambda2 {
        return model;
    }
    HyperErlang { lambda1: model.lambda2, lambda2: model.lambda1, p1: 1.0 - model.p1, ..model }
}

/// Iterates from `model`: returns the distribution, its log-likelihood and the number of iterations.
fn climb(points: &[Point], n: f64, mut model: HyperErlang) -> (HyperErlang, f64, u32) {
    let mut likelihood = f64::NEG_INFINITY;
    for round in 1..=ROUNDS_MAX {
        let (next, at_model) = step(points, n, &model);
        let gain = at_model - likelihood;
        likelihood = at_model;
        let is_proper = next.lambda1.is_finite() && next.lambda2.is_finite() && next.lambda1.min(next.lambda2) > 0.0;
        if gain < GAIN_MIN * n || !is_proper {
            return (model, likelihood, round);
        }
        model = next;
    }
    let (_, at_model) = step(points, n, &model);
    (model, at_model, ROUNDS_MAX)
}

/// One iteration: returns the better distribution, and the log-likelihood of the given one.
fn step(points: &[Point], n: f64, model: &HyperErlang) -> (HyperErlang, f64) {
    let stages = f64::from(model.order);
    let constant = libm::lgamma(stages);
    let head = |p: f64, lambda: f64| libm::log(p) + stages * libm::log(lambda) - constant;
    let (head1, head2) = (head(model.p1, model.lambda1), head(1.0 - model.p1, model.lambda2));
    let (mut likelihood, mut weight1, mut time1, mut time) = (0.0, 0.0, 0.0, 0.0);
    for point in points {
        let common = (stages - 1.0) * point.ln_t;
        let (a, b) = (head1 - model.lambda1 * point.t, head2 - model.lambda2 * point.t);
        // ln(e^a + e^b) without overflow, and the share of the first branch.
        let (larger, ratio) = if a >= b { (a, libm::exp(b - a)) } else { (b, libm::exp(a - b)) };
        let share = if a >= b { 1.0 / (1.0 + ratio) } else { ratio / (1.0 + ratio) };
        likelihood += point.weight * (common + larger + libm::log1p(ratio));
        weight1 += point.weight * share;
        time1 += point.weight * share * point.t;
        time += point.weight * point.t;
    }
    let lambda1 = stages * weight1 / time1;
    let lambda2 = stages * (n - weight1) / (time - time1);
    (HyperErlang { order: model.order, lambda1, lambda2, p1: weight1 / n }, likelihood)
}

#[cfg(test)]
mod tests {
    use super::super::{fit_moments, ks_distance};
    use super::*;
    use crate::workload::random::Random;

    fn sample(model: &HyperErlang, n: usize) -> Vec<f64> {
        let mut random = Random::new(11, 0);
        let mut values: Vec<f64> = (0..n).map(|_| model.sample(&mut random)).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    #[test]
    fn finds_the_distribution_that_a_sample_is_from() {
        for model in [HyperErlang::of_means(3, 0.7, 20.0, 900.0), HyperErlang::of_means(1, 0.4, 1.0, 50.0)] {
            let values = sample(&model, 20_000);
            let fit = fit_em(&values).unwrap();
            assert_eq!(fit.model.order, model.order);
            let pairs =
                [(fit.model.lambda1, model.lambda1), (fit.model.lambda2, model.lambda2), (fit.model.p1, model.p1)];
            for (value, expected) in pairs {
                assert!((value / expected - 1.0).abs() < 0.06, "{value} {expected}");
            }
        }
    }

    #[test]
    fn is_likelier_and_nearer_than_the_fit_by_moments() {
        // A body and two outages: the moments follow the outages.
        let mut values = sample(&HyperErlang::of_means(2, 0.9, 60.0, 300.0), 5_000);
        values.extend([2e5, 3e5]);
        let moments = fit_moments(&Moments::of(&values).unwrap()).unwrap();
        let em = fit_em(&values).unwrap().model;
        let distance = |model: HyperErlang| ks_distance(&values, |t| model.cdf(t));
        assert!(distance(em) < distance(moments) / 2.0, "{} {}", distance(em), distance(moments));
    }

    #[test]
    fn no_step_loses_likelihood() {
        let values = sample(&HyperErlang::of_means(2, 0.5, 1.0, 3.0), 500);
        let points = distinct(&values, 1e-9);
        let mut model = HyperErlang::of_means(2, 0.2, 0.1, 9.0);
        let mut likelihood = f64::NEG_INFINITY;
        for _ in 0..50 {
            let (next, at_model) = step(&points, 500.0, &model);
            assert!(at_model >= likelihood - 1e-9, "{at_model} {likelihood}");
            (model, likelihood) = (next, at_model);
        }
    }

    #[test]
    fn odd_samples_do_not_break_it() {
        for values in [&[][..], &[0.0, 0.0], &[3.0, 3.0, 3.0]] {
            assert!(fit_em(values).is_none(), "{values:?}");
        }
        for values in [&[0.0, 0.0, 1.0][..], &[1.0, 1e12], &[1e-6, 2e-6], &[5.0, 5.0, 5.0, 5.1]] {
            let fit = fit_em(values).unwrap();
            assert!(fit.log_likelihood.is_finite() && fit.model.mean() > 0.0, "{values:?} {fit:?}");
        }
    }
}
