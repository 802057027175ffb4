//! Statistics of a log, under the names of our reference values. A record is usable if its run time and its processors
//! are above 0; all sums and fits are over usable records, all counts over all records. Of parts of jobs (status 2, 3, 4) only their
//! number counts: the jobs are there as a whole, too.

mod fits;

pub use fits::{ClassFits, GAP_S_MAX, SampleFit};

use super::classes::SizeClass;
use super::swf::{ReadReport, Record, SwfHeader};
use super::trace_job::TraceJob;
pub use crate::metrics::{BOUND_S, quantile};
use fits::fits;
use std::collections::{BTreeMap, BTreeSet};

/// The statistics of a log. Times are in s from the log's start.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct TraceStats {
    /// The machine's processors: from the header, otherwise those of the largest job.
    pub procs: u32,
    /// Lines that are jobs.
    pub records: u64,
    /// Lines that begin with `;`.
    pub header_lines: u64,
    /// Lines that are neither jobs nor header lines.
    pub malformed: u64,
    /// Whether no record was submitted before the previous one.
    pub sorted_by_submit: bool,
    /// Records with run time and processors above 0.
    pub usable: u64,
    /// Records with run time 0: less than half a second.
    pub run_zero: u64,
    /// Records without a run time.
    pub run_negative: u64,
    /// Records without processors, neither allocated nor requested.
    pub procs_unknown: u64,
    /// Records with a wait time.
    pub wait_known: u64,
    /// Records with an estimate above 0.
    pub estimate_known: u64,
    /// The number of those that ran longer.
    pub run_gt_estimate: u64,
    /// Records by status; −1 is unknown.
    pub status: BTreeMap<i64, u64>,
    /// The number of different users; "unknown" counts as one.
    pub users: u64,
    /// The first submission of any record.
    pub first_submit: f64,
    /// The last end of a usable record.
    pub last_end: f64,
    /// The time between them.
    pub span_s: f64,
    /// Σ processors · run time.
    pub proc_seconds: f64,
    /// `proc_seconds / (procs · span_s)`; above 1 when `procs` is too small.
    pub utilization: f64,
    /// The mean run time, s.
    pub run_mean: f64,
    /// The coefficient of variation of the run time (of the population).
    pub run_cv: f64,
    /// The median run time, s.
    pub run_median: f64,
    /// The mean number of processors of a job.
    pub size_mean: f64,
    /// The number of processors of the largest job.
    pub size_max: u32,
    /// The fraction of jobs with one processor.
    pub size_serial: f64,
    /// The mean bounded slowdown in the log; `None` without waits.
    pub recorded_avebsld: Option<f64>,
    /// `Σ E[size] E[run] / (E[gap] procs)` over size classes; `None` if a class has no gap.
    pub rho_from_class_means: Option<f64>,
    /// Fits of all jobs (`all`) and of each size class.
    #[serde(serialize_with = "as_map")]
    pub hyper_erlang: Vec<(String, ClassFits)>,
}

fn as_map<S: serde::Serializer>(pairs: &[(String, ClassFits)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, fits)| (name, fits)))
}

/// Collects statistics record by record.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    /// What is counted record by record; the rest is known at the end.
    counted: TraceStats,
    last_submit: f64,
    unsorted: bool,
    users: BTreeSet<i64>,
    first_submit: Option<f64>,
    bsld: f64,
    bsld_of: u64,
    jobs: Vec<TraceJob>,
}

impl Collector {
    /// Adds a record.
    pub fn add(&mut self, record: &Record) {
        let whole = |known: Option<f64>| known.map_or(-1, |value| value as i64);
        let submit = record.submit_s();
        let counted = &mut self.counted;
        *counted.status.entry(whole(record.status())).or_default() += 1;
        if record.is_part() {
            return;
        }
        self.unsorted |= counted.records > 0 && submit < self.last_submit;
        self.last_submit = submit;
        counted.records += 1;
        self.first_submit = Some(self.first_submit.map_or(submit, |first| first.min(submit)));
        counted.run_zero += u64::from(record.run_s() == Some(0.0));
        counted.run_negative += u64::from(record.run_s().is_none());
        counted.procs_unknown += u64::from(record.size().is_none());
        counted.wait_known += u64::from(record.wait_s().is_some());
        if let Some(estimate) = record.estimate_s().filter(|estimate| *estimate > 0.0) {
            counted.estimate_known += 1;
            counted.run_gt_estimate += u64::from(record.run_s().is_some_and(|run| run > estimate));
        }
        self.users.insert(whole(record.user()));
        let Some(job) = TraceJob::measured(record) else { return };
        counted.last_end = counted.last_end.max(submit + record.wait_s().unwrap_or_default() + job.run_s);
        if let Some(wait) = record.wait_s() {
            self.bsld += ((wait + job.run_s) / job.run_s.max(BOUND_S)).max(1.0);
            self.bsld_of += 1;
        }
        self.jobs.push(job);
    }

    /// The usable jobs, in the order of the log.
    pub fn jobs(&self) -> &[TraceJob] {
        &self.jobs
    }

    /// The statistics; `None` without a usable job. `procs` replaces the header's value.
    pub fn finish(mut self, header: &SwfHeader, report: &ReadReport, procs: Option<u32>) -> Option<TraceStats> {
        // Ties keep the order of the log.
        self.jobs.sort_by(|a, b| a.submit_s.total_cmp(&b.submit_s));
        let n = self.jobs.len() as f64;
        let size_max = self.jobs.iter().map(|job| job.size).max()?;
        let procs = procs.or_else(|| header.processors()).unwrap_or(size_max);
        let sum = |of: fn(&TraceJob) -> f64| self.jobs.iter().map(of).sum::<f64>();
        let run_mean = sum(|job| job.run_s) / n;
        let variance = self.jobs.iter().map(|job| (job.run_s - run_mean).powi(2)).sum::<f64>() / n;
        let proc_seconds = sum(|job| f64::from(job.size) * job.run_s);
        let first_submit = self.first_submit.unwrap_or_default();
        let span_s = self.counted.last_end - first_submit;
        let mut runs: Vec<f64> = self.jobs.iter().map(|job| job.run_s).collect();
        runs.sort_by(f64::total_cmp);
        let hyper_erlang = fits(&self.jobs);
        Some(TraceStats {
            procs,
            header_lines: header.lines(),
            malformed: report.malformed,
            sorted_by_submit: !self.unsorted,
            usable: self.jobs.len() as u64,
            users: self.users.len() as u64,
            first_submit,
            span_s,
            proc_seconds,
            utilization: proc_seconds / (f64::from(procs) * span_s),
            run_mean,
            run_cv: variance.sqrt() / run_mean,
            run_median: median(&runs),
            size_mean: sum(|job| f64::from(job.size)) / n,
            size_max,
            size_serial: sum(|job| f64::from(u8::from(job.size == 1))) / n,
            recorded_avebsld: (self.bsld_of > 0).then(|| self.bsld / self.bsld_of as f64),
            rho_from_class_means: rho(&hyper_erlang, procs),
            hyper_erlang,
            ..self.counted
        })
    }
}

fn rho(fits: &[(String, ClassFits)], procs: u32) -> Option<f64> {
    let classes = fits.iter().filter(|(name, _)| name != "all");
    let of = |fits: &ClassFits| {
        let gap = fits.interarrival.as_ref()?.moments[0];
        (gap > 0.0).then(|| fits.mean_size * fits.runtime.moments[0] / gap)
    };
    classes.map(|(_, fits)| of(fits)).sum::<Option<f64>>().map(|sum| sum / f64::from(procs))
}

/// The median of a sorted sample: the mean of the two middle values if their number is even.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted {
        [] => 0.0,
        _ if sorted.len() % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// The arrivals in each hour of the day, in the log's time zone if its header specifies one.
pub fn arrivals_by_hour(jobs: &[TraceJob], header: &SwfHeader) -> [u64; 24] {
    let start = header.unix_start_s().unwrap_or_default() as f64;
    let zone = header.get("TimeZone").and_then(|text| text.trim().parse::<f64>().ok());
    let zone = zone.filter(|seconds| seconds.abs() <= 86_400.0).unwrap_or_default();
    let mut hours = [0; 24];
    for job in jobs {
        let of_day = (job.submit_s + start + zone).rem_euclid(86_400.0);
        hours[(of_day / 3600.0) as usize % 24] += 1;
    }
    hours
}

/// The usable jobs in each size class.
pub fn jobs_by_class(jobs: &[TraceJob]) -> Vec<(SizeClass, u64)> {
    let mut counts: BTreeMap<SizeClass, u64> = BTreeMap::new();
    for job in jobs {
        *counts.entry(SizeClass::of(job.size)).or_default() += 1;
    }
    counts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::swf::read_records;
    use super::*;

    fn stats(text: &str) -> Option<TraceStats> {
        let (records, header, report) = read_records(text.as_bytes()).unwrap();
        let mut collector = Collector::default();
        records.iter().for_each(|record| collector.add(record));
        collector.finish(&header, &report, None)
    }

    #[test]
    fn counts_are_of_all_records_and_sums_of_usable_ones() {
        let text = "; MaxProcs: 10\n\
            1 5 2 10 2 -1 -1 2 20 -1 1 1\n\
            2 0 -1 4 0 -1 -1 4 3 -1 0 -1\n\
            3 7 0 0 1 -1 -1 1 5 -1 5 1\n\
            4 8 1 -1 -1 -1 -1 -1 -1 -1 -1 2\n\
            1 -1 9 6 2 -1 -1 2 20 -1 3 7\n\
            rubbish\n";
        let stats = stats(text).unwrap();
        assert_eq!((stats.records, stats.usable, stats.malformed, stats.header_lines), (4, 2, 1, 1));
        assert_eq!((stats.run_zero, stats.run_negative, stats.procs_unknown), (1, 1, 1));
        assert_eq!((stats.wait_known, stats.estimate_known, stats.run_gt_estimate), (3, 3, 1));
        assert_eq!((stats.users, stats.sorted_by_submit, stats.size_max), (3, false, 4));
        assert_eq!(stats.status, BTreeMap::from([(-1, 1), (0, 1), (1, 1), (3, 1), (5, 1)]));
        assert_eq!((stats.first_submit, stats.last_end, stats.span_s), (0.0, 17.0, 17.0));
        assert_eq!((stats.proc_seconds, stats.utilization), (36.0, 36.0 / 170.0));
        assert_eq!((stats.run_mean, stats.run_median, stats.run_cv), (7.0, 7.0, 3.0 / 7.0));
        assert_eq!(stats.recorded_avebsld, Some(1.2));
    }

    #[test]
    fn a_log_without_usable_jobs_has_no_statistics() {
        assert!(stats("1 0 0 0 1\n").is_none());
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        let sorted = [1.0, 2.0, 4.0];
        assert_eq!(
            [0.0, 0.25, 0.5, 0.75, 1.0, 2.0].map(|part| quantile(&sorted, part)),
            [1.0, 1.5, 2.0, 3.0, 4.0, 4.0]
        );
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn hours_are_those_of_the_machine() {
        let header = SwfHeader::new([("UnixStartTime".into(), "3600".into()), ("TimeZone".into(), "-7200".into())]);
        let job = |submit_s| TraceJob { submit_s, run_s: 1.0, size: 1, ..TraceJob::default() };
        let hours = arrivals_by_hour(&[job(-1.0), job(0.0), job(3600.0), job(90_000.0)], &header);
        assert_eq!((hours[22], hours[23], hours[0], hours.iter().sum::<u64>()), (1, 1, 2, 4));
    }
}
