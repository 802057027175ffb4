//! Which records of a log can be scheduled: the strict filter of the field (predictsim's `strong_filter`), with counts.

use crate::workload::swf::Record;
use serde::Serialize;

/// Later submissions and longer jobs (more than about 31 years) are rejected.
const SECONDS_MAX: f64 = 1e9;
/// So are logs with more total run time: with jobs one after the other, the schedule must still end before the clock
/// overflows.
const TOTAL_SECONDS_MAX: f64 = 1e12;

/// A job for batch scheduling. Times are integer microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchJob {
    /// Its number in the log.
    pub number: u64,
    /// Its user's number; 0 when unknown.
    pub user: u32,
    /// When it is submitted.
    pub submit_us: u64,
    /// Its processors, at least 1.
    pub size: u32,
    /// How long it runs, at least 1; at most `estimate_us`.
    pub run_us: u64,
    /// The user's estimate of the run time.
    pub estimate_us: u64,
}

/// Records that were left out, by the first rule that they violate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Lines that are not records.
    pub malformed: u64,
    /// Parts of jobs that are in the log as a whole, too.
    pub part_of_job: u64,
    /// Neither requested nor allocated processors are known.
    pub size_unknown: u64,
    /// More processors than the machine has.
    pub larger_than_machine: u64,
    /// No run time, or 0.
    pub run_not_positive: u64,
    /// No estimate, or 0.
    pub estimate_not_positive: u64,
    /// Submitted before the log's start.
    pub submit_negative: u64,
    /// Times above 10⁹ s.
    pub out_of_range: u64,
}

impl Dropped {
    /// The total.
    pub fn total(&self) -> u64 {
        self.by_reason().iter().map(|(_, count)| count).sum()
    }

    /// Each reason in words, with its count.
    pub fn by_reason(&self) -> [(&'static str, u64); 8] {
        [
            ("lines that are no jobs", self.malformed),
            ("parts of jobs (status 2, 3, 4)", self.part_of_job),
            ("processors unknown", self.size_unknown),
            ("larger than the machine", self.larger_than_machine),
            ("run time unknown or 0", self.run_not_positive),
            ("no estimate", self.estimate_not_positive),
            ("submitted before the start", self.submit_negative),
            ("times above 1e9 s", self.out_of_range),
        ]
    }
}

/// Takes records and keeps the valid jobs.
#[derive(Clone, Debug)]
pub struct Filter {
    procs: u32,
    jobs: Vec<BatchJob>,
    dropped: Dropped,
    cut_to_estimate: u64,
    /// Σ run times, s.
    total_s: f64,
}

impl Filter {
    /// For a machine of `procs` processors.
    pub fn new(procs: u32) -> Filter {
        Filter { procs, jobs: Vec::new(), dropped: Dropped::default(), cut_to_estimate: 0, total_s: 0.0 }
    }

    /// Takes in a record.
    pub fn add(&mut self, record: &Record) {
        let positive = |known: Option<f64>| known.filter(|value| *value > 0.0);
        let dropped = &mut self.dropped;
        if record.is_part() {
            return dropped.part_of_job += 1;
        }
        let Some(size) = record.requested() else { return dropped.size_unknown += 1 };
        if size > self.procs {
            return dropped.larger_than_machine += 1;
        }
        let Some(run_s) = positive(record.run_s()) else { return dropped.run_not_positive += 1 };
        let Some(estimate_s) = positive(record.estimate_s()) else { return dropped.estimate_not_positive += 1 };
        let submit_s = record.submit_s();
        if submit_s < 0.0 {
            return dropped.submit_negative += 1;
        }
        if submit_s.max(run_s).max(estimate_s) > SECONDS_MAX || self.total_s + run_s > TOTAL_SECONDS_MAX {
            return dropped.out_of_range += 1;
        }
        self.total_s += run_s;
        // The machine ends a job at its estimate.
        self.cut_to_estimate += u64::from(run_s > estimate_s);
        let (run_us, estimate_us) = (us(run_s.min(estimate_s)).max(1), us(estimate_s).max(1));
        let number = record.number().max(0.0) as u64;
        let user = record.user().unwrap_or(0.0).max(0.0) as u32;
        self.jobs.push(BatchJob { number, user, submit_us: us(submit_s), size, run_us, estimate_us });
    }

    /// Counts lines that are not records.
    pub fn malformed(&mut self, lines: u64) {
        self.dropped.malformed += lines;
    }

    /// The jobs by submission (ties in the order of the log), the records left out, and how many run times were cut to
    /// their estimates.
    pub fn finish(mut self) -> (Vec<BatchJob>, Dropped, u64) {
        self.jobs.sort_by_key(|job| job.submit_us);
        (self.jobs, self.dropped, self.cut_to_estimate)
    }
}

fn us(seconds: f64) -> u64 {
    (seconds * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::swf::read_records;

    #[test]
    fn every_rule_counts() {
        // Columns: number submit wait run allocated cpu memory requested estimate.
        let text = "1 5 -1 10 2 -1 -1 4 20\n2 1.5 -1 10 2 -1 -1 -1 7\n3 0 -1 1 -1 -1 -1 -1 1\n4 0 -1 1 1 -1 -1 9 1\n\
                    5 0 -1 0 1 -1 -1 1 1\n6 0 -1 1 1 -1 -1 1 -1\n7 -1 -1 1 1 -1 -1 1 1\n8 0 -1 1 1 -1 -1 1 2e9\n\
                    1 5 -1 6 2 -1 -1 4 20 -1 2\n1 15 -1 4 2 -1 -1 4 20 -1 3\n";
        let mut filter = Filter::new(8);
        read_records(text.as_bytes()).unwrap().0.iter().for_each(|record| filter.add(record));
        filter.malformed(3);
        let (jobs, dropped, cut) = filter.finish();
        assert_eq!(dropped.by_reason().map(|(_, count)| count), [3, 2, 1, 1, 1, 1, 1, 1]);
        assert_eq!((dropped.total(), cut), (11, 1));
        let second = 1_000_000;
        let expected = [
            BatchJob { number: 2, user: 0, submit_us: 1_500_000, size: 2, run_us: 7 * second, estimate_us: 7 * second },
            BatchJob {
                number: 1,
                user: 0,
                submit_us: 5 * second,
                size: 4,
                run_us: 10 * second,
                estimate_us: 20 * second,
            },
        ];
        assert_eq!(jobs, expected, "requested before allocated, sorted by submission");
    }
}
