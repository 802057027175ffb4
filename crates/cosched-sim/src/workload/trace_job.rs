//! A job in logs and models: submission, run time, processors. Its internal behaviour is mostly unknown.

use super::random::Random;
use super::swf::{FIELDS, Record};
use super::types::{TypeMix, assign_types};
use crate::job::{JobSpec, JobType};

/// A usable job of a log or a model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TraceJob {
    /// Its number in the log, from 1.
    pub number: u64,
    /// Submission, s.
    pub submit_s: f64,
    /// Run time, s; above 0.
    pub run_s: f64,
    /// Processors, at least 1.
    pub size: u32,
    /// The user's estimate of the run time, s; above 0.
    pub estimate_s: Option<f64>,
    /// Its internal behaviour, if known.
    pub kind: Option<JobType>,
}

impl TraceJob {
    /// For statistics: with the allocated processors. `None` if the run time or the processors are not above 0.
    pub fn measured(record: &Record) -> Option<TraceJob> {
        TraceJob::with_size(record, record.size())
    }

    /// For simulation: with the requested processors.
    pub fn requested(record: &Record) -> Option<TraceJob> {
        TraceJob::with_size(record, record.requested())
    }

    fn with_size(record: &Record, size: Option<u32>) -> Option<TraceJob> {
        let positive = |known: Option<f64>| known.filter(|value| *value > 0.0);
        Some(TraceJob {
            number: record.number().max(0.0) as u64,
            submit_s: record.submit_s(),
            run_s: positive(record.run_s())?,
            size: size?,
            estimate_s: positive(record.estimate_s()),
            kind: None,
        })
    }

    /// As a record: completed, everything else unknown.
    pub fn record(&self) -> Record {
        let mut fields = [-1.0; FIELDS];
        let size = f64::from(self.size);
        let known = [(0, self.number as f64), (1, self.submit_s), (3, self.run_s), (4, size), (7, size), (10, 1.0)];
        for (place, value) in known {
            fields[place] = value;
        }
        fields[8] = self.estimate_s.unwrap_or(-1.0);
        Record::new(fields)
    }
}

/// Jobs of the simulator, numbered from 1.
pub fn from_specs(specs: &[JobSpec]) -> Vec<TraceJob> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let job = |(number, spec): (u64, &JobSpec)| TraceJob {
        number,
        submit_s: seconds(spec.arrival_ns),
        run_s: seconds(spec.exec_ns),
        size: spec.tasks,
        estimate_s: None,
        kind: Some(spec.kind),
    };
    (1..).zip(specs).map(job).collect()
}

/// Jobs as records, in their order.
pub fn to_records(jobs: &[TraceJob]) -> impl Iterator<Item = Record> {
    jobs.iter().map(TraceJob::record)
}

/// Jobs for the simulator, in their order: times are rounded to microseconds (D21), run times to at least one, and unknown
/// types are drawn from the mix. Times must be from 0 to 10⁹ s, as [`super::scale::scale`] leaves them.
pub fn to_specs(jobs: &[TraceJob], mix: TypeMix, seed: u64) -> Vec<JobSpec> {
    let mut random = Random::new(seed, super::random::TYPES);
    let kinds = assign_types(mix, jobs.len(), &mut random);
    let spec = |(job, kind): (&TraceJob, _)| JobSpec {
        arrival_ns: micros(job.submit_s) * 1000,
        tasks: job.size,
        exec_ns: micros(job.run_s).max(1) * 1000,
        kind: job.kind.unwrap_or(kind),
        class: cosched_core::Class::Batch,
        footprint: crate::job::Footprint::default(),
    };
    jobs.iter().zip(kinds).map(spec).collect()
}

fn micros(seconds: f64) -> u64 {
    // Casts saturate: a negative time becomes 0.
    (seconds * 1e6).round() as u64
}
