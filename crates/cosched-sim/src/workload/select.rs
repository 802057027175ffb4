//! Selects jobs of a log, with a count for each reason for rejection.

use super::swf::Record;
use super::trace_job::TraceJob;
use serde::Serialize;

/// The conditions for a job. The default takes every usable one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Submitted at this time or later, s of the log.
    pub from_s: Option<f64>,
    /// Submitted before this time, s of the log.
    pub to_s: Option<f64>,
    /// Not larger than this machine.
    pub procs: Option<u32>,
    /// Not larger than this.
    pub max_tasks: Option<u32>,
    /// In one of these states (1 completed, 0 failed, 5 cancelled; −1 unknown); empty: in any but 2, 3 and 4, those of parts of jobs.
    pub statuses: Vec<i64>,
    /// The first jobs that pass, by submission.
    pub limit: Option<usize>,
}

/// Records that were not taken, by the first reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NotTaken {
    /// Lines that are not records.
    pub malformed: u64,
    /// No run time, or 0.
    pub run_not_positive: u64,
    /// Neither requested nor allocated processors are known.
    pub size_unknown: u64,
    /// Submitted at another time.
    pub outside_window: u64,
    /// In another state.
    pub status: u64,
    /// Parts of jobs that are in the log as a whole, too.
    pub part_of_job: u64,
    /// More processors than the machine has.
    pub larger_than_machine: u64,
    /// More processors than requested by `max_tasks`.
    pub more_than_max_tasks: u64,
    /// After the last requested one.
    pub beyond_limit: u64,
}

impl NotTaken {
    /// Each reason in words, with its count.
    pub fn by_reason(&self) -> [(&'static str, u64); 9] {
        [
            ("lines that are no jobs", self.malformed),
            ("run time unknown or 0", self.run_not_positive),
            ("processors unknown", self.size_unknown),
            ("outside the window", self.outside_window),
            ("another status", self.status),
            ("parts of jobs (status 2, 3, 4)", self.part_of_job),
            ("larger than the machine", self.larger_than_machine),
            ("more than the maximum of tasks", self.more_than_max_tasks),
            ("beyond the limit", self.beyond_limit),
        ]
    }
}

/// Takes records and keeps the selected jobs.
#[derive(Clone, Debug)]
pub struct Selector {
    selection: Selection,
    jobs: Vec<TraceJob>,
    not_taken: NotTaken,
}

impl Selector {
    /// For a selection.
    pub fn new(selection: Selection) -> Selector {
        Selector { selection, jobs: Vec::new(), not_taken: NotTaken::default() }
    }

    /// Takes in a record.
    pub fn add(&mut self, record: &Record) {
        let status = record.status().map_or(-1, |status| status as i64);
        if self.selection.statuses.is_empty() && record.is_part() {
            self.not_taken.part_of_job += 1;
        } else if record.run_s().is_none_or(|run| run <= 0.0) {
            self.not_taken.run_not_positive += 1;
        } else if let Some(job) = TraceJob::requested(record) {
            self.take(job, Some(status));
        } else {
            self.not_taken.size_unknown += 1;
        }
    }

    /// Adds a job that is not from a log, and so has no status.
    pub fn add_job(&mut self, job: TraceJob) {
        self.take(job, None);
    }

    fn take(&mut self, job: TraceJob, status: Option<i64>) {
        let asked = &self.selection;
        let counts = &mut self.not_taken;
        let is_before = asked.from_s.is_some_and(|from| job.submit_s < from);
        if is_before || asked.to_s.is_some_and(|to| job.submit_s >= to) {
            counts.outside_window += 1;
        } else if status.is_some_and(|status| !asked.statuses.is_empty() && !asked.statuses.contains(&status)) {
            counts.status += 1;
        } else if asked.procs.is_some_and(|procs| job.size > procs) {
            counts.larger_than_machine += 1;
        } else if asked.max_tasks.is_some_and(|tasks| job.size > tasks) {
            counts.more_than_max_tasks += 1;
        } else {
            self.jobs.push(job);
        }
    }

    /// Counts lines that are not records.
    pub fn malformed(&mut self, lines: u64) {
        self.not_taken.malformed += lines;
    }

    /// The jobs by submission (ties in the order of the log), and the counts.
    pub fn finish(mut self) -> (Vec<TraceJob>, NotTaken) {
        self.jobs.sort_by(|a, b| a.submit_s.total_cmp(&b.submit_s));
        if let Some(limit) = self.selection.limit.filter(|limit| *limit < self.jobs.len()) {
            self.not_taken.beyond_limit = (self.jobs.len() - limit) as u64;
            self.jobs.truncate(limit);
        }
        (self.jobs, self.not_taken)
    }
}

#[cfg(test)]
mod tests {
    use super::super::swf::read_records;
    use super::*;

    #[test]
    fn every_reason_counts() {
        // Columns: number submit wait run allocated cpu memory requested estimate memory status.
        let text = "1 90 -1 10 2 -1 -1 4 20 -1 1\n2 20 -1 10 2 -1 -1 -1 -1 -1 1\n3 5 -1 0 2 -1 -1 4 20 -1 1\n\
                    4 5 -1 1 -1 -1 -1 0 20 -1 1\n5 9 -1 1 1 -1 -1 1 1 -1 1\n6 100 -1 1 1 -1 -1 1 1 -1 1\n\
                    7 30 -1 1 1 -1 -1 1 1 -1 5\n8 30 -1 1 1 -1 -1 99 1 -1 1\n9 30 -1 1 1 -1 -1 9 1 -1 1\n\
                    10 95 -1 1 1 -1 -1 1 1 -1 1\n";
        let mut selector = Selector::new(Selection {
            from_s: Some(10.0),
            to_s: Some(100.0),
            procs: Some(64),
            max_tasks: Some(8),
            statuses: vec![1],
            limit: Some(2),
        });
        read_records(text.as_bytes()).unwrap().0.iter().for_each(|record| selector.add(record));
        selector.malformed(4);
        let (jobs, not_taken) = selector.finish();
        assert_eq!(not_taken.by_reason().map(|(_, count)| count), [4, 1, 1, 2, 1, 0, 1, 1, 1]);
        let numbers: Vec<(u64, u32, Option<f64>)> =
            jobs.iter().map(|job| (job.number, job.size, job.estimate_s)).collect();
        assert_eq!(numbers, [(2, 2, None), (1, 4, Some(20.0))], "requested before allocated, by submission");
    }

    #[test]
    fn by_default_all_usable_jobs_are_taken() {
        let mut selector = Selector::new(Selection::default());
        read_records(&b"1 -1 -1 3 2\n2 5 -1 3 9\n"[..]).unwrap().0.iter().for_each(|record| selector.add(record));
        assert_eq!(selector.finish().0.len(), 2);
    }

    #[test]
    fn parts_of_jobs_are_taken_only_if_asked_for() {
        let taken = |statuses: &[i64]| {
            let mut selector = Selector::new(Selection { statuses: statuses.to_vec(), ..Selection::default() });
            let text = "1 0 -1 9 2 -1 -1 2 9 -1 1\n1 0 -1 6 2 -1 -1 2 9 -1 2\n1 8 -1 3 2 -1 -1 2 9 -1 4\n";
            read_records(text.as_bytes()).unwrap().0.iter().for_each(|record| selector.add(record));
            let (jobs, not_taken) = selector.finish();
            (jobs.len(), not_taken.part_of_job, not_taken.status)
        };
        assert_eq!([taken(&[]), taken(&[2, 3, 4])], [(1, 2, 0), (2, 0, 1)]);
    }
}
