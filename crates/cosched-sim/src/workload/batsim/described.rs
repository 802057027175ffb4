//! A workload for a scheduler outside of the simulator: jobs as it is told of them, and how long they run.

use super::profile::Profiles;
use super::read::{BatsimError, Head, Root, each, head};
use crate::workload::lines::excerpt;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::io::Read;

/// The workload's name, which the ids of its jobs begin with.
pub const WORKLOAD: &str = "w0";

/// Later submissions and longer jobs (more than about 31 years) are left out.
const SECONDS_MAX: f64 = 1e9;

/// A job of such a workload. Times are integer microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedJob {
    /// The workload's name, `!`, and its id in the file.
    pub id: String,
    /// What the file says of it, with that id.
    pub description: Value,
    /// Its profile's name.
    pub profile: String,
    /// The hosts that it requests.
    pub size: u32,
    /// When it is submitted.
    pub submit_us: u64,
    /// How long it would run, at least 1.
    pub run_us: u64,
    /// It is ended after this time.
    pub walltime_us: Option<u64>,
}

impl DescribedJob {
    /// How long it runs at most, and whether its walltime ends it.
    pub fn duration_us(&self) -> (u64, bool) {
        match self.walltime_us {
            Some(walltime_us) if walltime_us <= self.run_us => (walltime_us, true),
            _ => (self.run_us, false),
        }
    }
}

/// The contents of a workload's file.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedWorkload {
    /// The machine's processors: its hosts.
    pub procs: u32,
    /// Jobs by submission, those of one time in the order of the file.
    pub jobs: Vec<DescribedJob>,
    /// The profiles, as the file has them.
    pub profiles: Map<String, Value>,
    /// Why jobs were left out, and how many.
    pub dropped: Vec<(String, u64)>,
}

/// Reads a workload of Batsim 4.x or 5.x. `flops` is the speed of a host, flop/s, for profiles that compute; communication takes no
/// time.
///
/// # Errors
/// An error of the reader; not JSON; no `nb_res`, `jobs` or `profiles`; no usable jobs.
pub fn read_batsim_described(input: impl Read, flops: f64) -> Result<DescribedWorkload, BatsimError> {
    let root = Root::read(input)?;
    let (procs, entries, all) = root.parts()?;
    let profiles = Profiles::new(all, Some(flops));
    let mut ids = HashSet::new();
    let (mut jobs, dropped) = each(entries, |entry, place| {
        let job = job(entry, place, &profiles)?;
        if ids.insert(job.id.clone()) { Ok(job) } else { Err("another job has its id".into()) }
    })?;
    jobs.sort_by_key(|job| job.submit_us);
    Ok(DescribedWorkload { procs, jobs, profiles: all.clone(), dropped })
}

fn job(entry: &Value, place: u64, profiles: &Profiles<'_>) -> Result<DescribedJob, String> {
    let Head { size, submit_s, profile, walltime_s } = head(entry)?;
    let run_s = profiles.run_s(profile, size).map_err(|why| format!("its profile {} {why}", excerpt(profile)))?;
    if submit_s.max(run_s) > SECONDS_MAX {
        return Err("times above 1e9 s".into());
    }
    let id = match &entry["id"] {
        Value::String(id) => id.rsplit('!').next().unwrap_or_default().to_owned(),
        other => other.as_u64().unwrap_or(place).to_string(),
    };
    let id = format!("{WORKLOAD}!{id}");
    let mut description = entry.clone();
    description["id"] = id.clone().into();
    // The cast saturates: an endless walltime is none.
    let us = |seconds: f64| (seconds * 1e6).round() as u64;
    Ok(DescribedJob {
        id,
        description,
        profile: profile.to_owned(),
        size,
        submit_us: us(submit_s),
        run_us: us(run_s).max(1),
        walltime_us: walltime_s.map(|seconds| us(seconds).max(1)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_described_as_in_the_file() {
        let text = r#"{"nb_res": 4, "jobs": [
            {"id": "old!b", "subtime": 5, "res": 2, "profile": "d", "walltime": 3, "extra": [1]},
            {"id": 7, "subtime": 0.5, "res": 9, "profile": "h", "walltime": 5},
            {"subtime": 5, "res": 1, "profile": "d", "walltime": -1},
            {"id": "b", "subtime": 5, "res": 1, "profile": "d"}, {"id": "s", "subtime": 5, "res": 1, "profile": "s"},
            {"id": "l", "subtime": 2e9, "res": 1, "profile": "d"}],
          "profiles": {"d": {"type": "delay", "delay": 3}, "h": {"type": "parallel_homogeneous", "cpu": 2e9, "com": 1},
            "s": {"type": "smpi"}}}"#;
        let read = read_batsim_described(text.as_bytes(), 1e9).unwrap();
        let second = 1_000_000;
        let found: Vec<_> = read.jobs.iter().map(|job| (job.id.as_str(), job.size, job.submit_us)).collect();
        assert_eq!(found, [("w0!7", 9, second / 2), ("w0!b", 2, 5 * second), ("w0!3", 1, 5 * second)]);
        let times: Vec<_> = read.jobs.iter().map(DescribedJob::duration_us).collect();
        assert_eq!(times, [(2 * second, false), (3 * second, true), (3 * second, false)]);
        let described = serde_json::json!({
            "id": "w0!b", "subtime": 5, "res": 2, "profile": "d", "walltime": 3, "extra": [1]
        });
        assert_eq!((&read.jobs[1].description, read.procs, read.profiles.len()), (&described, 4, 3));
        let reasons: Vec<&str> = read.dropped.iter().map(|(reason, _)| reason.as_str()).collect();
        let smpi = "its profile s is of type smpi, whose time depends on the platform";
        assert_eq!(reasons, ["another job has its id", smpi, "times above 1e9 s"]);
    }
}
