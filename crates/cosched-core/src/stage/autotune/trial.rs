//! One trial: the new setting and the old one in turn, in short windows, until it is clear which is better.
//!
//! Problem: rounds per second differ from window to window by more than most settings gain, the load of the machine
//! drifts, and every window with a bad setting costs. So each window with the new setting is compared with the windows of
//! the old one before and after it, which cancels a drift; the middle of these pairs has to be distinct from the noise,
//! and a trial that looks bad ends at once. After every change there is a short window that is not counted, in which the
//! buffers that were filled under the other setting drain.

use super::config::Config;
use super::noise::{error_of_middle, middle, pooled, sigma};
use crate::stage::Change;
use alloc::vec::Vec;

/// The number of standard errors by which a gain has to be above 0.
const STANDS_OUT: f64 = 2.5;

/// The same for a trial that still looks better after `pairs_max` pairs.
const STANDS_OUT_LATE: f64 = 1.8;

/// A trial is hopeless if its gain plus this number of standard errors is below the required gain.
const HOPELESS: f64 = 2.0;

/// A loss in one window that ends a trial, unless the noise is even greater.
const LOSS_AT_ONCE: f64 = 0.10;

/// The number of standard deviations by which one window has to be off to be sufficient alone.
const ALONE: f64 = 4.0;

/// The number of pairs as which the noise known before the trial counts.
const KNOWN_COUNTS: usize = 8;

/// The noise of a comparison while it is unknown.
const SIGMA_UNKNOWN: f64 = 0.02;

/// The smallest assumed noise, because a few windows may be equal by chance.
const SIGMA_MIN: f64 = 0.002;

/// The present step of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The new setting has just been applied.
    SettleNew,
    /// A window with the new setting.
    New,
    /// The old setting has just been restored.
    SettleOld,
    /// A window with the old setting.
    Old,
}

/// What to do after a window of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    /// Nothing: the setting stays for the next window.
    GoOn,
    /// Apply the old setting again, for comparison.
    ShowOld,
    /// Apply the new setting again.
    ShowNew,
    /// Keep the new setting. The old one is in force now.
    TakeNew {
        /// The gain over the old setting.
        gain: f64,
    },
    /// Keep the old setting. The new one is in force now.
    TakeOld {
        /// The gain over the old setting.
        gain: f64,
        /// Whether the new one is clearly worse.
        harmed: bool,
    },
}

/// A change of some stages, on trial.
#[derive(Debug, Clone)]
pub(super) struct Trial {
    /// The changes to the new setting.
    pub(super) forward: Vec<(usize, Change)>,
    /// The changes back to the old one.
    pub(super) back: Vec<(usize, Change)>,
    /// The new setting removes a change: it is kept unless it is worse.
    reverse: bool,
    step: Step,
    old: Vec<f64>,
    new: Vec<f64>,
    /// The loss of windows with the new setting relative to the old one, ns.
    lost_ns: f64,
}

impl Trial {
    /// A trial that begins now; `rate` is that of the last window, which had the old setting.
    pub(super) fn new(forward: Vec<(usize, Change)>, back: Vec<(usize, Change)>, reverse: bool, rate: f64) -> Trial {
        let (old, new) = (alloc::vec![rate], Vec::new());
        Trial { forward, back, reverse, step: Step::SettleNew, old, new, lost_ns: 0.0 }
    }

    /// Whether the next window is not counted.
    pub(super) fn settles(&self) -> bool {
        matches!(self.step, Step::SettleNew | Step::SettleOld)
    }

    /// Whether the new setting is in force now.
    pub(super) fn has_new(&self) -> bool {
        matches!(self.step, Step::SettleNew | Step::New)
    }

    /// Its cost until now, in ns of the pipeline's time.
    pub(super) fn lost_ns(&self) -> f64 {
        self.lost_ns.max(0.0)
    }

    /// The standard deviation of its pairs; `None` if there are too few.
    pub(super) fn spread(&self) -> Option<f64> {
        (self.new.len() >= 3).then(|| sigma(&self.gains()))
    }

    /// Takes the window that has ended; `known` is the noise of one comparison, if it is known.
    pub(super) fn window(&mut self, rate: f64, length_ns: u64, known: Option<f64>, config: &Config) -> Verdict {
        match self.step {
            Step::SettleNew => self.go(Step::New, Verdict::GoOn),
            Step::SettleOld => self.go(Step::Old, Verdict::GoOn),
            Step::New => {
                self.new.push(rate);
                let before = self.old.last().copied().unwrap_or(0.0);
                // The uncounted window before it had the same rate.
                self.lost_ns -= relative(rate, before) * length_ns as f64 * 1.25;
                let verdict = self.after_new(known, config);
                self.go(Step::SettleOld, verdict)
            }
            Step::Old => {
                self.old.push(rate);
                let verdict = self.after_old(known, config);
                self.go(Step::SettleNew, verdict)
            }
        }
    }

    fn go(&mut self, step: Step, verdict: Verdict) -> Verdict {
        self.step = step;
        verdict
    }

    /// The gain of each window with the new setting over its neighbours with the old one.
    fn gains(&self) -> Vec<f64> {
        let mean = |k: usize| match self.old.get(k + 1) {
            Some(after) => (self.old[k] + after) / 2.0,
            None => self.old[k],
        };
        self.new.iter().enumerate().map(|(k, rate)| relative(*rate, mean(k))).collect()
    }

    /// The middle of the gains and its standard error.
    fn result(&self, known: Option<f64>) -> (f64, f64) {
        let gains = self.gains();
        let known = known.unwrap_or(SIGMA_UNKNOWN);
        let sigma = if gains.len() < 3 { known } else { pooled(known, KNOWN_COUNTS, sigma(&gains), gains.len()) };
        let sigma = sigma.max(SIGMA_MIN);
        (middle(&gains), error_of_middle(sigma, gains.len()))
    }

    /// A window with the new setting has ended: decides whether to give it up.
    fn after_new(&self, known: Option<f64>, config: &Config) -> Verdict {
        let (gain, error) = self.result(known);
        let least = f64::from(config.gain_ppm_min) / 1e6;
        let sigma = known.unwrap_or(SIGMA_UNKNOWN).max(SIGMA_MIN);
        let count = self.new.len() as u32;
        let last = self.gains().last().copied().unwrap_or(0.0);
        let harmed =
            last < -(ALONE * sigma).max(LOSS_AT_ONCE) || (count >= 2 && gain < -(STANDS_OUT * error).max(least));
        if harmed {
            return Verdict::TakeOld { gain: gain.min(last), harmed };
        }
        let hopeless = count >= config.pairs_min && gain + HOPELESS * error < least;
        // As long as it looks better, to continue costs nothing.
        let hopeful = gain >= least && gain > error && count < 2 * config.pairs_max;
        let ends = count >= config.pairs_max && !hopeful;
        let gives_up =
            if self.reverse { count >= config.pairs_max && gain <= -least.max(error) } else { hopeless || ends };
        if gives_up { Verdict::TakeOld { gain, harmed: false } } else { Verdict::ShowOld }
    }

    /// A window with the old setting has ended: decides whether to keep the new one.
    fn after_old(&self, known: Option<f64>, config: &Config) -> Verdict {
        let (gain, error) = self.result(known);
        let least = f64::from(config.gain_ppm_min) / 1e6;
        let count = self.new.len() as u32;
        let stands_out = if count <= config.pairs_max { STANDS_OUT } else { STANDS_OUT_LATE };
        let keeps = if self.reverse {
            count >= config.pairs_max || gain - HOPELESS * error > -2.0 * least
        } else {
            gain >= least.max(stands_out * error)
        };
        if keeps && count >= config.pairs_min {
            return Verdict::TakeNew { gain };
        }
        Verdict::ShowNew
    }
}

fn relative(rate: f64, to: f64) -> f64 {
    if to > 0.0 { rate / to - 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Normally distributed numbers: sums of twelve uniform ones, from a generator of Knuth's.
    struct Draws(u64);

    impl Draws {
        fn unit(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / 9_007_199_254_740_992.0
        }

        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
        }
    }

    /// The result of a trial whose new setting gains `gain`, with windows that differ by `noise`: whether it is kept, the number of pairs, the loss.
    fn outcome(gain: f64, noise: f64, reverse: bool, draws: &mut Draws) -> (bool, usize, f64) {
        let mut rate = |gain: f64| 1000.0 * (1.0 + gain) * (1.0 + noise * draws.normal()).max(0.1);
        let mut trial = Trial::new(Vec::new(), Vec::new(), reverse, rate(0.0));
        // A comparison has the noise of one window and of the mean of two.
        let known = Some(noise * 1.22);
        loop {
            let rate = rate(if trial.has_new() { gain } else { 0.0 });
            let verdict = trial.window(rate, 50_000_000, known, &Config::default());
            if let Verdict::TakeNew { .. } | Verdict::TakeOld { .. } = verdict {
                return (matches!(verdict, Verdict::TakeNew { .. }), trial.new.len(), trial.lost_ns());
            }
        }
    }

    /// The number of trials out of 1000 that keep the new setting, the mean number of pairs, and the mean loss in ms.
    fn of_1000(gain: f64, noise: f64, reverse: bool) -> (usize, f64, f64) {
        let mut draws = Draws(7);
        let all: Vec<_> = (0..1000).map(|_| outcome(gain, noise, reverse, &mut draws)).collect();
        let mean = |of: &dyn Fn(&(bool, usize, f64)) -> f64| all.iter().map(of).sum::<f64>() / 1000.0;
        let taken = all.iter().filter(|(taken, ..)| *taken).count();
        (taken, mean(&|one| one.1 as f64), mean(&|one| one.2) / 1e6)
    }

    #[test]
    fn a_gain_that_stands_out_is_kept() {
        for (gain, noise, least) in [(0.02, 0.002, 990), (0.05, 0.02, 950), (0.10, 0.05, 900), (0.20, 0.10, 900)] {
            let (kept, pairs, _) = of_1000(gain, noise, false);
            assert!(kept >= least, "{gain} at {noise}: {kept} after {pairs} pairs");
        }
    }

    #[test]
    fn a_loss_is_almost_never_kept() {
        for noise in [0.002, 0.02, 0.05, 0.10] {
            for (gain, most) in [(-noise, 10), (-0.05_f64.max(noise), 10), (-0.3, 0)] {
                let (kept, pairs, _) = of_1000(gain, noise, false);
                assert!(kept <= most, "{gain} at {noise}: {kept} after {pairs} pairs");
            }
        }
    }

    #[test]
    fn what_changes_nothing_is_seldom_kept() {
        for noise in [0.002, 0.02, 0.05, 0.10] {
            let (kept, pairs, _) = of_1000(0.0, noise, false);
            assert!(kept <= 160, "at {noise}: {kept} after {pairs} pairs");
        }
    }

    #[test]
    fn a_disaster_costs_one_window() {
        let (_, pairs, lost_ms) = of_1000(-0.3, 0.02, false);
        assert!(pairs < 1.1 && lost_ms < 25.0, "{pairs} pairs, {lost_ms} ms");
        let (_, pairs, lost_ms) = of_1000(-0.05, 0.01, false);
        assert!(pairs < 2.5 && lost_ms < 8.0, "{pairs} pairs, {lost_ms} ms");
    }

    #[test]
    fn doubt_drops_what_is_useless_and_keeps_what_is_not() {
        // In a doubt the new setting is the one without the change.
        for noise in [0.002, 0.02, 0.05] {
            let (dropped, pairs, _) = of_1000(0.0, noise, true);
            assert!(dropped >= 750, "at {noise}: {dropped} after {pairs} pairs");
            let (dropped, pairs, _) = of_1000(-(4.0 * noise).max(0.02), noise, true);
            assert!(dropped <= 10, "at {noise}: {dropped} after {pairs} pairs");
        }
    }

    #[test]
    fn a_drift_is_no_gain() {
        let mut trial = Trial::new(Vec::new(), Vec::new(), false, 1000.0);
        let mut rate = 1000.0;
        loop {
            rate *= 1.02;
            match trial.window(rate, 50_000_000, Some(0.002), &Config::default()) {
                Verdict::TakeOld { .. } => break,
                Verdict::TakeNew { gain } => panic!("{gain}"),
                _ => {}
            }
        }
    }
}
