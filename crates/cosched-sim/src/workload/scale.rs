//! Changes to a list of jobs before it is simulated: longer, shorter, denser.

use super::trace_job::TraceJob;

/// The longest time that a list may contain, s: about 31 years.
pub const SECONDS_MAX: f64 = 1e9;

/// How a list is changed. The default moves the first arrival to 0 and does nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scaling {
    /// Run times and estimates are multiplied by this.
    pub lengths: Option<f64>,
    /// Arrival times are multiplied by this.
    pub times: Option<f64>,
    /// Arrival times are scaled such that the load on this number of nodes is exactly this (D19).
    pub load: Option<(f64, u32)>,
    /// All jobs arrive at 0.
    pub together: bool,
    /// The first arrival is not moved, as for a list that already starts at 0.
    pub keep_start: bool,
}

/// A change that is impossible for a list.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScaleError {
    /// A factor is not above 0.
    #[error("{name} cannot be {value}\n  why: it is a factor\n  hint: give a number above 0")]
    Factor {
        /// The name of the factor.
        name: &'static str,
        /// The given value.
        value: f64,
    },
    /// The load is defined by the last arrival, which is 0.
    #[error(
        "the load cannot be set\n  why: all jobs arrive at 0, and load is Σ tasks · time / (nodes · last arrival)\n  \
         hint: leave the load out, or take more jobs"
    )]
    NoArrivals,
    /// Times became too long.
    #[error(
        "job {place} would {what} {seconds:.3e} s\n  why: times in a list are at most 1e9 s (31 years)\n  hint: give \
         a smaller factor, or a higher load"
    )]
    TooLong {
        /// Its position in the list, from 1.
        place: usize,
        /// `arrive after` or `run for`.
        what: &'static str,
        /// The time.
        seconds: f64,
    },
}

/// Changes a list that is sorted by arrival. All times are rounded to microseconds, run times to one at least (D21).
///
/// # Errors
/// Factors that are not above 0, a load without arrivals, times above [`SECONDS_MAX`].
pub fn scale(jobs: &mut [TraceJob], scaling: &Scaling) -> Result<(), ScaleError> {
    let factor = |name, value: Option<f64>| match value {
        Some(value) if !(value > 0.0 && value.is_finite()) => Err(ScaleError::Factor { name, value }),
        other => Ok(other.unwrap_or(1.0)),
    };
    let lengths = factor("the factor of lengths", scaling.lengths)?;
    let times = factor("the factor of times", scaling.times)?;
    factor("the load", scaling.load.map(|(load, _)| load))?;
    let start = if scaling.keep_start { 0.0 } else { jobs.first().map_or(0.0, |job| job.submit_s) };
    for job in jobs.iter_mut() {
        job.run_s *= lengths;
        job.estimate_s = job.estimate_s.map(|estimate| estimate * lengths);
        job.submit_s = if scaling.together { 0.0 } else { (job.submit_s - start) * times };
    }
    if let Some((wanted, nodes)) = scaling.load {
        let present = load(jobs, nodes).ok_or(ScaleError::NoArrivals)?;
        jobs.iter_mut().for_each(|job| job.submit_s *= present / wanted);
    }
    for (place, job) in (1..).zip(jobs.iter_mut()) {
        for (what, seconds) in [("arrive after", job.submit_s), ("run for", job.run_s)] {
            // Also rejects NaN.
            if !(0.0..=SECONDS_MAX).contains(&seconds) {
                return Err(ScaleError::TooLong { place, what, seconds });
            }
        }
        job.submit_s = micros(job.submit_s);
        job.run_s = micros(job.run_s).max(1e-6);
        job.estimate_s = job.estimate_s.map(|estimate| micros(estimate).max(1e-6));
    }
    Ok(())
}

fn micros(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// `Σ tasks · run time / (nodes · last arrival)` (D19); `None` if all arrive at 0.
pub fn load(jobs: &[TraceJob], nodes: u32) -> Option<f64> {
    let last = jobs.iter().map(|job| job.submit_s).fold(0.0, f64::max);
    let work: f64 = jobs.iter().map(|job| f64::from(job.size) * job.run_s).sum();
    (last > 0.0 && nodes > 0).then(|| work / (f64::from(nodes) * last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Vec<TraceJob> {
        let job = |submit_s, size| TraceJob { submit_s, run_s: 10.0, size, ..TraceJob::default() };
        vec![job(100.0, 4), job(110.0, 2), job(140.0, 2)]
    }

    #[test]
    fn load_is_exact() {
        let mut jobs = list();
        scale(&mut jobs, &Scaling { load: Some((0.8, 4)), lengths: Some(3.0), ..Scaling::default() }).unwrap();
        assert!((load(&jobs, 4).unwrap() - 0.8).abs() < 1e-8);
        let times: Vec<f64> = jobs.iter().map(|job| job.submit_s).collect();
        assert_eq!((times[0], (times[1] / times[2] - 0.25).abs() < 1e-8), (0.0, true));
        assert_eq!(jobs[0].run_s, 30.0);
    }

    #[test]
    fn what_cannot_be_is_said() {
        let scaled = |scaling: Scaling| scale(&mut list(), &scaling).unwrap_err().to_string();
        let factor = |value| scaled(Scaling { times: Some(value), ..Scaling::default() });
        assert!(factor(0.0).contains("cannot be 0") && factor(f64::NAN).contains("NaN") && factor(-1.0).contains("-1"));
        let error = scaled(Scaling { together: true, load: Some((0.5, 4)), ..Scaling::default() });
        assert!(error.contains("all jobs arrive at 0"), "{error}");
        let error = scaled(Scaling { lengths: Some(1e12), ..Scaling::default() });
        assert!(error.starts_with("job 1 would run for 1.000e13 s"), "{error}");
    }
}
