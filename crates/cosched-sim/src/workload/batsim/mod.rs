//! Batsim's workload JSON: its 4.x and 5.x profiles are read, 5.x is written.

mod described;
mod profile;
mod programs;
mod read;

pub use described::{DescribedJob, DescribedWorkload, WORKLOAD, read_batsim_described};
pub use programs::{BatsimJob, BatsimPrograms, read_batsim_programs};
pub use read::{BatsimError, BatsimWorkload, read_batsim};

use super::trace_job::TraceJob;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes jobs with delay profiles, one for each different run time; estimates become walltimes, types extra data.
///
/// # Errors
/// An error of the writer, such as a full disk.
pub fn write_batsim(mut out: impl Write, procs: u32, jobs: &[TraceJob]) -> io::Result<()> {
    let mut profiles: BTreeMap<String, f64> = BTreeMap::new();
    writeln!(out, "{{\n\"nb_res\": {procs},\n\"jobs\": [")?;
    for (place, job) in jobs.iter().enumerate() {
        let profile = format!("delay_{}", job.run_s);
        let mut entry = json!({
            "id": job.number.to_string(), "subtime": job.submit_s, "res": job.size, "profile": profile,
        });
        if let Some(estimate) = job.estimate_s {
            entry["walltime"] = estimate.into();
        }
        if let Some(kind) = job.kind {
            entry["extra_data"] = json!({ "type": kind.name() });
        }
        let comma = if place + 1 < jobs.len() { "," } else { "" };
        writeln!(out, "{entry}{comma}")?;
        profiles.insert(profile, job.run_s);
    }
    writeln!(out, "],")?;
    let profile = |(name, delay): (String, f64)| (name, json!({ "type": "DelayProfile", "delay": delay }));
    let profiles: serde_json::Map<String, Value> = profiles.into_iter().map(profile).collect();
    writeln!(out, "\"profiles\": {}\n}}", Value::Object(profiles))?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobType;
    use proptest::prelude::*;

    fn any_job() -> impl Strategy<Value = TraceJob> {
        let kind = prop::option::of((0..6_usize).prop_map(|place| JobType::ALL[place]));
        let estimate = prop::option::of(0.001..1e6_f64);
        (1..1_000_000_u64, 0.0..1e9_f64, 0.001..1e6_f64, 1..5000_u32, estimate, kind).prop_map(
            |(number, submit_s, run_s, size, estimate_s, kind)| TraceJob {
                number,
                submit_s,
                run_s,
                size,
                estimate_s,
                kind,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(mut jobs in prop::collection::vec(any_job(), 1..20), procs in 1..5000_u32) {
            for (number, job) in (1..).zip(&mut jobs) {
                job.number = number;
            }
            let mut text = Vec::new();
            write_batsim(&mut text, procs, &jobs).unwrap();
            let read = read_batsim(&text[..], None).unwrap();
            prop_assert_eq!(read.procs, procs);
            prop_assert_eq!(read.dropped, vec![]);
            prop_assert_eq!(read.jobs, jobs);
        }
    }
}
