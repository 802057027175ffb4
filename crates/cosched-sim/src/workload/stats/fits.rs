//! Fits of a log: inter-arrival and run times of all jobs and of each size class.

use crate::workload::TraceJob;
use crate::workload::classes::SizeClass;
use crate::workload::fit::{Moments, fit_moments, ks_distance, ks_exponential};

/// Longer gaps are outages rather than gaps, s.
pub const GAP_S_MAX: f64 = 86_400.0;

/// A sample and its hyper-Erlang fit by three moments. Without a fit the four parameters are missing.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct SampleFit {
    /// The number of values.
    pub samples: u64,
    /// The first three raw moments, in s, s², s³.
    pub moments: [f64; 3],
    /// The squared coefficient of variation.
    pub cv2: f64,
    /// The common order n.
    pub order: Option<u32>,
    /// The rate of the branch of short times, 1/s.
    pub lambda1: Option<f64>,
    /// The rate of the branch of long times, 1/s.
    pub lambda2: Option<f64>,
    /// The probability of the branch of short times.
    pub p1: Option<f64>,
    /// The Kolmogorov–Smirnov distance of the fit.
    pub ks: Option<f64>,
    /// The same distance of an exponential distribution with the sample's mean.
    pub ks_exponential: f64,
}

impl SampleFit {
    /// The fit of a sample in any order; `None` without values.
    pub fn of(mut values: Vec<f64>) -> Option<SampleFit> {
        let moments = Moments::of(&values)?;
        values.sort_by(f64::total_cmp);
        let fit = fit_moments(&moments);
        Some(SampleFit {
            samples: moments.samples,
            moments: moments.raw,
            cv2: moments.cv2(),
            order: fit.map(|fit| fit.order),
            lambda1: fit.map(|fit| fit.lambda1),
            lambda2: fit.map(|fit| fit.lambda2),
            p1: fit.map(|fit| fit.p1),
            ks: fit.map(|fit| ks_distance(&values, |t| fit.cdf(t))),
            ks_exponential: ks_exponential(&values, &moments),
        })
    }
}

/// The fits of a class of jobs.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ClassFits {
    /// The number of its jobs.
    pub jobs: u64,
    /// The mean number of processors of its jobs.
    pub mean_size: f64,
    /// Times between submissions; `None` for a single job.
    pub interarrival: Option<SampleFit>,
    /// Run times.
    pub runtime: SampleFit,
    /// Times between submissions without gaps above [`GAP_S_MAX`]; only for all jobs and if there are such gaps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interarrival_gaps_le_86400: Option<SampleFit>,
}

/// The fits of all jobs and of each non-empty class; jobs are sorted by submission.
pub(super) fn fits(jobs: &[TraceJob]) -> Vec<(String, ClassFits)> {
    let mut all = class(jobs.iter());
    if let Some((_, fits)) = &mut all {
        let trimmed: Vec<f64> = gaps(jobs.iter()).filter(|gap| *gap <= GAP_S_MAX).collect();
        let is_trimmed = fits.interarrival.as_ref().is_some_and(|fit| fit.samples > trimmed.len() as u64);
        fits.interarrival_gaps_le_86400 = is_trimmed.then(|| SampleFit::of(trimmed)).flatten();
    }
    let classes = SizeClass::all().filter_map(|of| {
        let (_, fits) = class(jobs.iter().filter(|job| SizeClass::of(job.size) == of))?;
        Some((of.name(), fits))
    });
    all.into_iter().chain(classes).collect()
}

fn class<'a>(jobs: impl Iterator<Item = &'a TraceJob> + Clone) -> Option<(String, ClassFits)> {
    let runtime = SampleFit::of(jobs.clone().map(|job| job.run_s).collect())?;
    let sizes: f64 = jobs.clone().map(|job| f64::from(job.size)).sum();
    let fits = ClassFits {
        jobs: runtime.samples,
        mean_size: sizes / runtime.samples as f64,
        interarrival: SampleFit::of(gaps(jobs).collect()),
        runtime,
        interarrival_gaps_le_86400: None,
    };
    Some(("all".into(), fits))
}

/// Successive differences of submissions.
fn gaps<'a>(jobs: impl Iterator<Item = &'a TraceJob> + Clone) -> impl Iterator<Item = f64> {
    let next = jobs.clone().skip(1);
    jobs.zip(next).map(|(before, after)| after.submit_s - before.submit_s)
}
