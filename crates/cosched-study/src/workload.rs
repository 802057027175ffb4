//! Workloads: job lists and traces, plain or compressed, recognised by their contents; and the selection of jobs for
//! simulations.

use cosched_sim::JobSpec;
use cosched_sim::sweep::Wanted;
use cosched_sim::workload::batsim::{BatsimError, BatsimWorkload, read_batsim};
use cosched_sim::workload::scale::{Scaling, scale};
use cosched_sim::workload::select::{NotTaken, Selection, Selector};
use cosched_sim::workload::swf::{ReadReport, Record, SwfError, SwfHeader, SwfReader, unpack};
use cosched_sim::workload::{JobListError, TraceJob, TypeMix, from_specs, generate, read_jobs, to_records, to_specs};
use std::io::{self, BufRead, Cursor, Read};

/// A workload.
#[derive(Debug)]
pub enum Source {
    /// A trace.
    Swf {
        /// Its jobs.
        records: Vec<Record>,
        /// The metadata in its header.
        header: SwfHeader,
        /// What was skipped while reading.
        report: ReadReport,
    },
    /// A job list.
    Jobs(Vec<JobSpec>),
    /// A Batsim workload.
    Batsim(BatsimWorkload),
}

/// Why a workload cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be decompressed.
    #[error("{0}")]
    Packed(#[source] io::Error),
    /// A trace.
    #[error(transparent)]
    Swf(#[from] SwfError),
    /// A job list.
    #[error(transparent)]
    Jobs(#[from] JobListError),
    /// A Batsim workload.
    #[error(transparent)]
    Batsim(#[from] BatsimError),
}

impl ReadError {
    /// Whether the input could not be read, as opposed to having wrong contents.
    pub fn is_unread(&self) -> bool {
        match self {
            ReadError::Packed(_) => true,
            ReadError::Swf(error) => matches!(error, SwfError::Read(_) | SwfError::Truncated { .. }),
            ReadError::Jobs(error) => matches!(error, JobListError::Read(_)),
            ReadError::Batsim(error) => matches!(error, BatsimError::Read(_)),
        }
    }
}

impl Source {
    /// Reads a workload in any of the formats. `flops` is the speed of Batsim's machine. `progress` is called from time to time
    /// with the number of jobs of a trace.
    ///
    /// # Errors
    /// If it cannot be read, or is not a workload.
    pub fn read(packed: impl Read, flops: Option<f64>, progress: &mut dyn FnMut(u64)) -> Result<Source, ReadError> {
        let mut all = Vec::new();
        let mut source = Source::stream(packed, flops, progress, &mut |_, record| all.push(*record))?;
        if let Source::Swf { records, .. } = &mut source {
            *records = all;
        }
        Ok(source)
    }

    /// As [`Source::read`], but a trace's records go to `take`, with the header as far as it has been read, and are not kept.
    ///
    /// # Errors
    /// If it cannot be read, or is not a workload.
    pub fn stream(
        packed: impl Read,
        flops: Option<f64>,
        progress: &mut dyn FnMut(u64),
        take: &mut dyn FnMut(&SwfHeader, &Record),
    ) -> Result<Source, ReadError> {
        let mut text = unpack(packed).map_err(ReadError::Packed)?;
        let mut start = Vec::new();
        (&mut text).take(PEEKED).read_to_end(&mut start).map_err(|error| SwfError::of_io(error, 0))?;
        let format = guess(&start);
        let text = Cursor::new(start).chain(text);
        Ok(match format {
            Guess::Swf => read_trace(text, progress, take)?,
            Guess::Jobs => Source::Jobs(read_jobs(text)?),
            Guess::Batsim => Source::Batsim(read_batsim(text, flops)?),
        })
    }

    /// As a trace: fields that its format does not have are unknown.
    pub fn into_trace(self) -> (Vec<Record>, SwfHeader, ReadReport) {
        let of = |jobs: &[TraceJob], entries: Vec<(String, String)>| {
            let report = ReadReport { records: jobs.len() as u64, ..ReadReport::default() };
            (to_records(jobs).collect(), SwfHeader::new(entries), report)
        };
        match self {
            Source::Swf { records, header, report } => (records, header, report),
            Source::Jobs(jobs) => of(&from_specs(&jobs), Vec::new()),
            Source::Batsim(workload) => of(&workload.jobs, vec![("MaxProcs".into(), workload.procs.to_string())]),
        }
    }

    /// The selected jobs, by submission time, and why others are not taken.
    pub fn select(&self, asked: Selection) -> (Vec<TraceJob>, NotTaken) {
        let mut selector = Selector::new(asked);
        match self {
            Source::Swf { records, report, .. } => {
                selector.malformed(report.malformed);
                records.iter().for_each(|record| selector.add(record));
            }
            Source::Jobs(jobs) => from_specs(jobs).into_iter().for_each(|job| selector.add_job(job)),
            Source::Batsim(workload) => {
                selector.malformed(workload.dropped.iter().map(|(_, count)| count).sum());
                workload.jobs.iter().for_each(|job| selector.add_job(*job));
            }
        }
        selector.finish()
    }

    /// The jobs of a list unchanged; of a trace those that fit on a machine with this number of CPUs, with types as in WL7, and
    /// why others are not taken.
    ///
    /// # Errors
    /// As text: no job fits, or a time is out of range.
    pub fn jobs(self, cpus: u32, seed: u64) -> Result<(Vec<JobSpec>, NotTaken), String> {
        if let Source::Jobs(specs) = self {
            return Ok((specs, NotTaken::default()));
        }
        let (mut jobs, not_taken) = self.select(Selection { procs: Some(cpus), ..Selection::default() });
        if jobs.is_empty() {
            return Err(none_fits(cpus));
        }
        scale(&mut jobs, &Scaling::default()).map_err(|error| error.to_string())?;
        Ok((to_specs(&jobs, TypeMix::default(), seed), not_taken))
    }

    /// The jobs for a cell of a sweep. A job list is unchanged except for the load. From a trace the first jobs that fit are
    /// taken, scaled to the wanted mean, with types as in WL7.
    ///
    /// # Errors
    /// As text: no job fits, or a time is out of range.
    pub fn wanted(&self, wanted: &Wanted) -> Result<Vec<JobSpec>, String> {
        if let Source::Jobs(specs) = self {
            return list(wanted, specs);
        }
        let asked = Selection { procs: Some(wanted.nodes), limit: Some(wanted.jobs), ..Selection::default() };
        let (taken, _) = self.select(asked);
        if taken.is_empty() { Err(none_fits(wanted.nodes)) } else { scaled(wanted, taken, TypeMix::default()) }
    }
}

/// The jobs of WL1 to WL8 for a cell of a sweep, with its number of jobs, mean execution time and load.
///
/// # Errors
/// As text: there is no such workload.
pub fn generated(wanted: &Wanted) -> Result<Vec<JobSpec>, String> {
    let mix = wanted.workload.parse()?;
    scaled(wanted, generate::paper(wanted.jobs, wanted.nodes, wanted.seed), mix)
}

/// The clock is read after this number of jobs.
const STEPS: u64 = 1024;

fn read_trace(
    text: impl BufRead,
    progress: &mut dyn FnMut(u64),
    take: &mut dyn FnMut(&SwfHeader, &Record),
) -> Result<Source, SwfError> {
    let mut reader = SwfReader::new(text);
    while let Some(record) = reader.next_record()? {
        take(reader.header(), &record);
        let count = reader.report().records;
        if count.is_multiple_of(STEPS) {
            progress(count);
        }
    }
    let report = reader.report().clone();
    Ok(Source::Swf { records: Vec::new(), header: reader.header().clone(), report })
}

fn none_fits(cpus: u32) -> String {
    format!("no job of the trace fits on {cpus} nodes\n  hint: simulate a larger machine")
}

fn list(wanted: &Wanted, specs: &[JobSpec]) -> Result<Vec<JobSpec>, String> {
    let Some(load) = wanted.load else { return Ok(specs.to_vec()) };
    let mut jobs = from_specs(specs);
    let scaling = Scaling { load: Some((load, wanted.nodes)), keep_start: true, ..Scaling::default() };
    scale(&mut jobs, &scaling).map_err(|e| e.to_string())?;
    // The types are known, so the mix has no influence.
    let mut scaled = to_specs(&jobs, TypeMix::default(), wanted.seed);
    for (job, given) in scaled.iter_mut().zip(specs) {
        // A trace has neither.
        (job.class, job.footprint) = (given.class, given.footprint);
    }
    Ok(scaled)
}

/// Scales lengths to the wanted mean, and arrivals to the wanted load or, without one, together with the lengths.
fn scaled(wanted: &Wanted, mut jobs: Vec<TraceJob>, mix: TypeMix) -> Result<Vec<JobSpec>, String> {
    let mean_s = jobs.iter().map(|job| job.run_s).sum::<f64>() / jobs.len().max(1) as f64;
    let factor = wanted.mean_exec_s / mean_s;
    let load = wanted.load.map(|load| (load, wanted.nodes));
    let scaling = Scaling { lengths: Some(factor), times: Some(factor), load, ..Scaling::default() };
    scale(&mut jobs, &scaling).map_err(|e| e.to_string())?;
    Ok(to_specs(&jobs, mix, wanted.seed))
}

enum Guess {
    Swf,
    Jobs,
    Batsim,
}

/// The number of bytes that are inspected to recognise a format.
const PEEKED: u64 = 4096;

/// Recognises the format by the first bytes: an object is Batsim's, words with commas are a job list's header; a trace has
/// comments and numbers.
fn guess(start: &[u8]) -> Guess {
    let start = String::from_utf8_lossy(start);
    let start = start.trim_start_matches('\u{feff}').trim_start();
    let first = start.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    match first {
        Some(line) if line.starts_with('{') => Guess::Batsim,
        Some(line) if line.contains(',') && line.starts_with(char::is_alphabetic) => Guess::Jobs,
        _ => Guess::Swf,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_content() {
        let of = |text: &str| match guess(text.as_bytes()) {
            Guess::Swf => "swf",
            Guess::Jobs => "jobs",
            Guess::Batsim => "batsim",
        };
        assert_eq!(of("\u{feff}\n {\"nb_res\": 1}"), "batsim");
        assert_eq!(of("# made today\n\narrival_s,tasks,exec_s,type\n"), "jobs");
        assert_eq!(of("task,s\n1,2\n"), "jobs");
        assert_eq!(of("; Version: 2\n"), "swf");
        assert_eq!(of(""), "swf");
    }
}
