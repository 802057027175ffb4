//! The reader.

use super::profile::Profiles;
use crate::job::JobType;
use crate::workload::TraceJob;
use crate::workload::lines::excerpt;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Read};

/// The contents of a workload file.
#[derive(Clone, Debug, PartialEq)]
pub struct BatsimWorkload {
    /// The machine's processors.
    pub procs: u32,
    /// Jobs in the order of the file. Their numbers are the ids if these are numbers, otherwise the position from 1.
    pub jobs: Vec<TraceJob>,
    /// Why jobs were left out, and how many.
    pub dropped: Vec<(String, u64)>,
}

/// Why a workload cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BatsimError {
    /// The text could not be read.
    #[error(
        "the workload cannot be read\n  why: {0}\n  hint: look whether the file is whole, and whether you may read it"
    )]
    Read(io::Error),
    /// The text is not JSON.
    #[error(
        "this is not a Batsim workload\n  why: {0}\n  hint: a workload is a JSON object with nb_res, jobs and profiles"
    )]
    Json(serde_json::Error),
    /// It is JSON, but not of this kind.
    #[error(
        "this is not a Batsim workload\n  why: it has no {0}\n  hint: a workload is a JSON object with nb_res, jobs and profiles"
    )]
    Missing(&'static str),
    /// No job could be used.
    #[error(
        "the workload has no usable jobs\n  why: {0}\n  hint: delay profiles can be used; computing ones with the speed of a processor"
    )]
    Nothing(String),
}

/// Reads a workload of Batsim 4.x or 5.x. `flops` is the speed of a processor, flop/s, for profiles that compute;
/// communication takes no time.
///
/// # Errors
/// An error of the reader; not JSON; no `nb_res`, `jobs` or `profiles`; no usable jobs.
pub fn read_batsim(input: impl Read, flops: Option<f64>) -> Result<BatsimWorkload, BatsimError> {
    let root = Root::read(input)?;
    let (procs, jobs, profiles) = root.parts()?;
    let profiles = Profiles::new(profiles, flops);
    let (jobs, dropped) = each(jobs, |entry, place| job(entry, place, &profiles))?;
    Ok(BatsimWorkload { procs, jobs, dropped })
}

/// What was read, and how often something was left out for which reason.
type Kept<T> = (Vec<T>, Vec<(String, u64)>);

/// Reads each job, with its position from 1. It is an error if none can be used.
pub(super) fn each<'a, T>(
    jobs: &'a [Value],
    mut read: impl FnMut(&'a Value, u64) -> Result<T, String>,
) -> Result<Kept<T>, BatsimError> {
    let mut kept = Vec::new();
    let mut dropped: BTreeMap<String, u64> = BTreeMap::new();
    for (place, entry) in (1..).zip(jobs) {
        match read(entry, place) {
            Ok(job) => kept.push(job),
            Err(reason) => *dropped.entry(reason).or_default() += 1,
        }
    }
    if kept.is_empty() {
        let why = dropped.into_keys().next();
        return Err(BatsimError::Nothing(why.unwrap_or_else(|| "it has no jobs".into())));
    }
    Ok((kept, dropped.into_iter().collect()))
}

type Parts<'a> = (u32, &'a Vec<Value>, &'a serde_json::Map<String, Value>);

/// A file that is JSON.
pub(super) struct Root(Value);

impl Root {
    pub(super) fn read(input: impl Read) -> Result<Root, BatsimError> {
        let root = serde_json::from_reader(input).map_err(|error| match error.io_error_kind() {
            Some(kind) => BatsimError::Read(io::Error::new(kind, error.to_string())),
            None => BatsimError::Json(error),
        })?;
        Ok(Root(root))
    }

    /// Processors, jobs, profiles.
    pub(super) fn parts(&self) -> Result<Parts<'_>, BatsimError> {
        let procs = self.0["nb_res"].as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
        let procs = procs.ok_or(BatsimError::Missing("nb_res"))?;
        let jobs = self.0["jobs"].as_array().ok_or(BatsimError::Missing("jobs"))?;
        Ok((procs, jobs, self.0["profiles"].as_object().ok_or(BatsimError::Missing("profiles"))?))
    }
}

/// What each job has.
pub(super) struct Head<'a> {
    pub(super) size: u32,
    pub(super) submit_s: f64,
    pub(super) profile: &'a str,
    /// A negative one means that there is none.
    pub(super) walltime_s: Option<f64>,
}

pub(super) fn head(entry: &Value) -> Result<Head<'_>, String> {
    let size = entry["res"].as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
    let size = size.ok_or("res is not a whole number from 1")?;
    let submit_s = entry["subtime"].as_f64().filter(|time| *time >= 0.0).ok_or("subtime is not a time")?;
    let profile = entry["profile"].as_str().ok_or("it has no profile")?;
    Ok(Head { size, submit_s, profile, walltime_s: entry["walltime"].as_f64().filter(|value| *value > 0.0) })
}

fn job(entry: &Value, place: u64, profiles: &Profiles<'_>) -> Result<TraceJob, String> {
    let Head { size, submit_s, profile: name, walltime_s } = head(entry)?;
    let run_s = profiles.run_s(name, size).map_err(|why| format!("its profile {} {why}", excerpt(name)))?;
    Ok(TraceJob {
        number: number(&entry["id"]).unwrap_or(place),
        submit_s,
        run_s,
        size,
        estimate_s: walltime_s,
        kind: type_of(entry),
    })
}

pub(super) fn type_of(entry: &Value) -> Option<JobType> {
    entry["extra_data"]["type"].as_str()?.parse().ok()
}

/// `7`, `"7"` or `"workload!7"`.
fn number(id: &Value) -> Option<u64> {
    id.as_u64().or_else(|| id.as_str()?.rsplit('!').next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OLD: &str = r#"{"version": 0, "nb_res": 4, "jobs": [
        {"id": "w0!7", "subtime": 1, "walltime": 100, "res": 4, "profile": "d"},
        {"id": 8, "subtime": 2.5, "walltime": -1, "res": 2, "profile": "c"},
        {"id": "x", "subtime": 3, "res": 1, "profile": "h"},
        {"id": "y", "subtime": 4, "res": 4, "profile": "t"},
        {"id": "z", "subtime": 4, "res": 1, "profile": "s"},
        {"id": "0", "subtime": 4, "res": 0, "profile": "d"},
        {"id": "0", "subtime": -4, "res": 1, "profile": "d"},
        {"id": "0", "subtime": 4, "res": 1, "profile": "none"},
        {"id": "0", "subtime": 4, "res": 1, "profile": "loop"}],
      "profiles": {"d": {"type": "delay", "delay": 10.5}, "e": {"type": "delay", "delay": 1},
        "c": {"type": "composed", "seq": ["d", "e", "d"], "nb": 2},
        "h": {"type": "parallel_homogeneous", "cpu": 5e6, "com": 1},
        "t": {"type": "parallel_homogeneous_total", "cpu": 8e6, "com": 1},
        "s": {"type": "smpi", "trace": "x"}, "loop": {"type": "composed", "seq": ["loop"]}}}"#;

    #[test]
    fn the_old_generation_is_read() {
        let read = read_batsim(OLD.as_bytes(), Some(1e6)).unwrap();
        let found: Vec<_> = read.jobs.iter().map(|job| (job.number, job.submit_s, job.run_s, job.estimate_s)).collect();
        let expected = [(7, 1.0, 10.5, Some(100.0)), (8, 2.5, 44.0, None), (3, 3.0, 5.0, None), (4, 4.0, 2.0, None)];
        assert_eq!(found, expected);
        let reasons: Vec<&str> = read.dropped.iter().map(|(reason, _)| reason.as_str()).collect();
        let expected = [
            "its profile loop is composed too deeply",
            "its profile none is not in the file",
            "its profile s is of type smpi, whose time depends on the platform",
            "res is not a whole number from 1",
            "subtime is not a time",
        ];
        assert_eq!(reasons, expected);
        assert_eq!(read_batsim(OLD.as_bytes(), None).unwrap().jobs.len(), 2);
    }

    #[test]
    fn the_new_generation_is_read() {
        let text = r#"{"nb_res": 2, "jobs": [
            {"id": "1", "subtime": 0, "res": 2, "profile": "c", "extra_data": {"type": "J4"}},
            {"id": "2", "subtime": 0, "res": 2, "profile": "p"}],
          "profiles": {"d": {"type": "DelayProfile", "delay": 3},
            "h": {"type": "ParallelTaskHomogeneousProfile", "cpu": 4, "com": 0,
                  "generation_strategy": "DefinedAmountsSpreadUniformly"},
            "p": {"type": "ParallelTaskProfile", "cpu": [1, 9], "com": [0, 0, 0, 0]},
            "c": {"type": "SequentialCompositionProfile", "seq": ["d", "h"], "repeat": 2}}}"#;
        let jobs = read_batsim(text.as_bytes(), Some(1.0)).unwrap().jobs;
        assert_eq!((jobs[0].run_s, jobs[0].kind, jobs[1].run_s), (10.0, Some(JobType::J4), 9.0));
    }

    #[test]
    fn compositions_end() {
        let wide: Vec<String> =
            (0..14).map(|i| format!(r#""{i}": {{"type": "composed", "seq": ["{0}","{0}","{0}"]}}"#, i + 1)).collect();
        let profiles = format!(r#"{}, "14": {{"type": "delay", "delay": 1}}"#, wide.join(","));
        let jobs = r#"{"id": "1", "subtime": 0, "res": 1, "profile": "0"}"#;
        let text = format!(r#"{{"nb_res": 1, "jobs": [{jobs}], "profiles": {{{profiles}}}}}"#);
        let error = read_batsim(text.as_bytes(), None).unwrap_err().to_string();
        assert!(error.contains("its profile 0 is composed of too many parts"), "{error}");
    }

    #[test]
    fn other_files_are_refused() {
        let error = |text: &str| read_batsim(text.as_bytes(), None).unwrap_err().to_string();
        assert!(error("1 2 3").contains("trailing characters at line 1"));
        assert!(error(&OLD[..300]).contains("EOF while parsing"));
        assert!(error("[]").contains("no nb_res") && error("{\"nb_res\": 0}").contains("no nb_res"));
        assert!(error("{\"nb_res\": 1}").contains("no jobs"));
        assert!(error("{\"nb_res\": 1, \"jobs\": [], \"profiles\": {}}").contains("no usable jobs"));
        assert!(error(&"[".repeat(100_000)).contains("recursion limit"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_batsim(&bytes[..], None);
        }

        #[test]
        fn damaged_workloads_are_answered(place in 0..OLD.len(), byte in any::<u8>()) {
            let mut text = OLD.as_bytes().to_vec();
            text[place] = byte;
            let _ = read_batsim(&text[..], Some(1.0));
            let _ = read_batsim(&text[..place], Some(1.0));
        }
    }
}
