//! How long each phase takes: the same under every policy.

use crate::draw::Draws;
use crate::workload::phase_jobs::PhaseJob;
use serde::Serialize;

/// The lengths of phases: their means from the list, times a log-normal factor of mean 1 that is cut at `longest`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lengths {
    /// Draws the factors: a hash of seed, job, iteration and pool.
    pub seed: u64,
    /// Standard deviation of the factor over its mean, before the cut; 0: every phase has its mean length.
    pub cv: f64,
    /// The largest factor, with which plans are made if `cv` is above 0.
    pub longest: f64,
}

impl Lengths {
    pub(super) fn check(&self) -> Result<(), (&'static str, &'static str)> {
        match ((0.0..=10.0).contains(&self.cv), (1.0..=10.0).contains(&self.longest)) {
            (true, true) => Ok(()),
            (false, _) => Err(("the coefficient of variation is out of range", "give 0 to 10")),
            (_, false) => Err(("the longest phase is out of range", "give 1 to 10, in mean lengths")),
        }
    }

    /// The lengths of both phases in an iteration, µs.
    pub(super) fn of(&self, number: usize, job: &PhaseJob, iteration: u32) -> [u64; 2] {
        if self.cv == 0.0 {
            return job.phase_us;
        }
        let deviation = libm::sqrt(libm::log1p(self.cv * self.cv));
        let longest = self.longest(job);
        [0, 1].map(|pool| {
            let draws = Draws::new(self.seed, number as u64, pool as u64);
            let (radius, angle) = draws.pair(iteration.into());
            // Box and Muller; the radius is in [0, 1).
            let normal = libm::sqrt(-2.0 * libm::log(1.0 - radius)) * libm::cos(std::f64::consts::TAU * angle);
            let factor = libm::exp(deviation * normal - deviation * deviation / 2.0);
            ((job.phase_us[pool] as f64 * factor) as u64).clamp(1, longest[pool])
        })
    }

    /// The longest lengths of both phases that [`Lengths::of`] gives, µs.
    pub(super) fn longest(&self, job: &PhaseJob) -> [u64; 2] {
        let longest = if self.cv == 0.0 { 1.0 } else { self.longest };
        job.phase_us.map(|us| (us as f64 * longest) as u64)
    }

    /// Those of all iterations.
    pub(super) fn all<'a>(&'a self, number: usize, job: &'a PhaseJob) -> impl Iterator<Item = [u64; 2]> + 'a {
        (0..job.iterations).map(move |iteration| self.of(number, job, iteration))
    }
}
