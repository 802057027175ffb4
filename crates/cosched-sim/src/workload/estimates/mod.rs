//! User estimates of run times: Tsafrir, Etsion and Feitelson 2005. Users give few, round values, and many of them the
//! longest one allowed; backfilling benefits from their inaccuracy. 20 "head" values are used by 89 % of the jobs, a
//! tail of rare ones by the rest; the values are then assigned to the jobs such that none is below the run time.

mod assign;
mod head;
mod tail;

pub use assign::assign;

use super::random::{ESTIMATES, Random};
use super::trace_job::TraceJob;
use std::collections::BTreeMap;

/// The number of values in the head.
const HEAD: usize = 20;
/// The percentage of the jobs that use them.
const HEAD_PERCENT: f64 = 89.0;

/// An estimate with the number of jobs that are known to use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct EstimateBin {
    /// The estimate, s.
    pub time_s: u64,
    /// The number of jobs with it.
    pub jobs: u64,
}

/// What is known about the estimates of a machine's users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EstimateModel {
    /// The longest estimate allowed, s; at least an hour.
    pub max_s: u64,
    /// Up to 20 estimates with known numbers of jobs; they take precedence over the model.
    pub known: Vec<EstimateBin>,
}

/// Why there are no estimates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EstimateError {
    /// The model is for limits of an hour and more.
    #[error(
        "the longest estimate cannot be {0} s\n  why: the model (Tsafrir et al. 2005) is for an hour at least\n  hint: give 3600 or more"
    )]
    TooShort(u64),
    /// The known values are invalid.
    #[error(
        "the known estimates cannot be used\n  why: {0}\n  hint: give up to 20 different times, none above the longest estimate"
    )]
    Known(String),
    /// Some jobs run longer than the estimates that are left for them.
    #[error(
        "the estimates do not cover the run times\n  why: the job at place {place} of the longest runs {run_s} s, its \
         estimate would be at most {estimate_s} s\n  hint: raise the longest estimate, or say how many jobs use it"
    )]
    Uncovered {
        /// Its rank, from 1, longest first.
        place: usize,
        /// Its run time, s.
        run_s: u64,
        /// The estimate at this rank, s.
        estimate_s: u64,
    },
}

impl EstimateModel {
    /// Draws how many of `count` jobs use which estimate: ascending times, whose jobs sum up to `count`.
    ///
    /// # Errors
    /// A longest estimate below an hour; invalid known bins.
    pub fn bins(&self, count: u64, random: &mut Random) -> Result<Vec<EstimateBin>, EstimateError> {
        self.check(count)?;
        let distinct = distinct_estimates(count).max(HEAD);
        let mut percent = head::head(self, count, random);
        tail::add_tail(&mut percent, self.max_s, distinct, random);
        let known: BTreeMap<u64, u64> = self.known.iter().map(|bin| (bin.time_s, bin.jobs)).collect();
        let jobs_of = |(time_s, percent): (u64, f64)| {
            let modelled = (percent * count as f64 / 100.0).round().max(1.0) as u64;
            EstimateBin { time_s, jobs: known.get(&time_s).copied().unwrap_or(modelled) }
        };
        let mut bins: Vec<EstimateBin> = percent.into_iter().map(jobs_of).collect();
        equalise(&mut bins, count, |time_s| known.contains_key(&time_s));
        bins.retain(|bin| bin.jobs > 0);
        Ok(bins)
    }

    /// Gives every job an estimate; run times above the longest estimate are cut to it. Returns how many were cut.
    ///
    /// # Errors
    /// As [`EstimateModel::bins`] and [`assign()`].
    pub fn estimate(&self, jobs: &mut [TraceJob], seed: u64) -> Result<u64, EstimateError> {
        let mut random = Random::new(seed, ESTIMATES);
        let bins = self.bins(jobs.len() as u64, &mut random)?;
        let longest = self.max_s as f64;
        let mut cut = 0;
        for job in jobs.iter_mut().filter(|job| job.run_s > longest) {
            job.run_s = longest;
            cut += 1;
        }
        assign(jobs, &bins, &mut random)?;
        Ok(cut)
    }

    fn check(&self, count: u64) -> Result<(), EstimateError> {
        if self.max_s < 3600 {
            return Err(EstimateError::TooShort(self.max_s));
        }
        let mut times: Vec<u64> = self.known.iter().map(|bin| bin.time_s).collect();
        times.sort_unstable();
        let wrong = |why: &str| Err(EstimateError::Known(why.into()));
        if times.iter().filter(|time| **time != self.max_s).count() >= HEAD {
            return wrong("there are more than 19 besides the longest");
        }
        if times.windows(2).any(|pair| pair[0] == pair[1]) {
            return wrong("a time is given twice");
        }
        if times.first() == Some(&0) || times.last().is_some_and(|time| *time > self.max_s) {
            return wrong("a time is 0 or above the longest estimate");
        }
        let jobs = self.known.iter().try_fold(0_u64, |sum, bin| sum.checked_add(bin.jobs));
        if jobs.is_none_or(|jobs| jobs > count) {
            return wrong("they have more jobs than there are");
        }
        Ok(())
    }
}

/// The number of different estimates of this number of jobs: linear between points of the four logs that the model is
/// based on.
pub fn distinct_estimates(jobs: u64) -> usize {
    const POINTS: [(u64, u64); 7] =
        [(0, 0), (20, 10), (200, 20), (1_000, 35), (10_000, 90), (70_000, 340), (250_000, 565)];
    let Some(above) = POINTS.iter().position(|(x, _)| *x >= jobs) else { return 565 };
    let Some(((x0, y0), (x1, y1))) = above.checked_sub(1).map(|below| (POINTS[below], POINTS[above])) else { return 0 };
    let slope = (y1 - y0) as f64 / (x1 - x0) as f64;
    y0 as usize + ((jobs - x0) as f64 * slope).round() as usize
}

/// Changes bins that are not fixed until they have `count` jobs in total: in proportion, then one by one, then down to
/// one job, then down to none; large ones first.
fn equalise(bins: &mut [EstimateBin], count: u64, is_fixed: impl Fn(u64) -> bool) {
    let sum = |bins: &[EstimateBin]| bins.iter().map(|bin| bin.jobs).sum::<u64>();
    let free: u64 = bins.iter().filter(|bin| !is_fixed(bin.time_s)).map(|bin| bin.jobs).sum();
    let total = sum(bins);
    let (mut rest, is_short) = (count.abs_diff(total), total < count);
    let share = rest as f64 / free.max(1) as f64;
    for attempt in 0..4 {
        let mut order: Vec<usize> = (0..bins.len()).filter(|place| !is_fixed(bins[*place].time_s)).collect();
        order.sort_by_key(|place| (std::cmp::Reverse(bins[*place].jobs), bins[*place].time_s));
        for place in order {
            let jobs = bins[place].jobs;
            let wanted = match attempt {
                0 => (share * jobs as f64).ceil() as u64,
                1 => 1,
                2 if is_short => rest,
                2 => jobs.saturating_sub(1),
                _ => jobs,
            };
            let most = if is_short { rest } else { jobs.saturating_sub(u64::from(attempt < 3)) };
            let change = wanted.min(most).min(rest);
            bins[place].jobs = if is_short { jobs + change } else { jobs - change };
            rest -= change;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn model(max_s: u64) -> EstimateModel {
        EstimateModel { max_s, known: Vec::new() }
    }

    #[test]
    fn numbers_of_distinct_estimates_are_interpolated() {
        let pairs = [(0, 0), (20, 10), (110, 15), (1_000, 35), (10_000, 90), (40_000, 215), (1_000_000, 565)];
        for (jobs, distinct) in pairs {
            assert_eq!(distinct_estimates(jobs), distinct, "{jobs}");
        }
    }

    #[test]
    fn few_values_have_most_jobs_and_the_longest_is_the_most_popular() {
        let bins = model(64_800).bins(10_000, &mut Random::new(1, 0)).unwrap();
        assert_eq!(bins.iter().map(|bin| bin.jobs).sum::<u64>(), 10_000);
        assert!((85..=90).contains(&bins.len()), "{}", bins.len());
        let mut sorted = bins.clone();
        sorted.sort_by_key(|bin| std::cmp::Reverse(bin.jobs));
        assert_eq!((sorted[0].time_s, (2150..=2200).contains(&sorted[0].jobs)), (64_800, true), "{:?}", sorted[0]);
        let head: u64 = sorted[..20].iter().map(|bin| bin.jobs).sum();
        assert!((8_850..=8_950).contains(&head), "{head}");
    }

    #[test]
    fn known_bins_win() {
        let known = vec![EstimateBin { time_s: 64_800, jobs: 4_000 }, EstimateBin { time_s: 1_234, jobs: 777 }];
        let bins = EstimateModel { max_s: 64_800, known: known.clone() }.bins(10_000, &mut Random::new(1, 0)).unwrap();
        assert!(known.iter().all(|bin| bins.contains(bin)), "{bins:?}");
        assert_eq!(bins.iter().map(|bin| bin.jobs).sum::<u64>(), 10_000);
    }

    #[test]
    fn impossible_models_are_refused() {
        let bins = |max_s, known: &[(u64, u64)]| {
            let known = known.iter().map(|(time_s, jobs)| EstimateBin { time_s: *time_s, jobs: *jobs }).collect();
            EstimateModel { max_s, known }.bins(100, &mut Random::new(1, 0)).unwrap_err().to_string()
        };
        assert!(bins(3_599, &[]).contains("3599 s"));
        assert!(bins(7_200, &[(60, 1), (60, 2)]).contains("twice"));
        assert!(bins(7_200, &[(7_201, 1)]).contains("above the longest"));
        assert!(bins(7_200, &[(60, 60), (61, 41)]).contains("more jobs than there are"));
        assert!(bins(7_200, &[(60, u64::MAX), (61, 2)]).contains("more jobs than there are"));
    }

    #[test]
    fn jobs_get_estimates_that_cover_them() {
        let mut random = Random::new(3, 0);
        let job = |_| TraceJob { run_s: 600.0 * random.exponential(), size: 1, ..TraceJob::default() };
        let mut jobs: Vec<TraceJob> = (0..5_000).map(job).collect();
        jobs[17].run_s = 1e6;
        let cut = model(36_000).estimate(&mut jobs, 1).unwrap();
        assert_eq!((cut, jobs[17].run_s), (1, 36_000.0));
        assert!(jobs.iter().all(|job| job.estimate_s.is_some_and(|estimate| estimate >= job.run_s)));
        let mut again = jobs.clone();
        model(36_000).estimate(&mut again, 1).unwrap();
        assert_eq!(again, jobs);
        let mut long = vec![TraceJob { run_s: 35_000.0, size: 1, ..TraceJob::default() }; 1000];
        let error = model(36_000).estimate(&mut long, 1).unwrap_err().to_string();
        assert!(error.contains("say how many jobs use it"), "{error}");
    }

    proptest! {
        #[test]
        fn bins_are_complete(count in 0..30_000_u64, max_s in 3_600..1_000_000_u64, seed in any::<u64>()) {
            let bins = model(max_s).bins(count, &mut Random::new(seed, 0)).unwrap();
            prop_assert_eq!(bins.iter().map(|bin| bin.jobs).sum::<u64>(), count);
            prop_assert!(bins.windows(2).all(|pair| pair[0].time_s < pair[1].time_s));
            prop_assert!(bins.iter().all(|bin| bin.time_s > 0 && bin.time_s <= max_s));
        }

        #[test]
        fn known_bins_always_win(
            times in prop::collection::btree_set(1..20_000_u64, 0..20),
            jobs in 0..50_u64,
            seed in any::<u64>(),
        ) {
            let known: Vec<EstimateBin> = times.into_iter().map(|time_s| EstimateBin { time_s, jobs }).collect();
            let model = EstimateModel { max_s: 20_000, known };
            let bins = model.bins(2_000, &mut Random::new(seed, 0)).unwrap();
            prop_assert_eq!(bins.iter().map(|bin| bin.jobs).sum::<u64>(), 2_000);
            for bin in model.known.iter().filter(|bin| bin.jobs > 0) {
                prop_assert!(bins.contains(bin));
            }
        }
    }
}
