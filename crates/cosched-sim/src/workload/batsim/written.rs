//! Writes workloads of Batsim 5.x.

use super::amounts::Amounts;
use super::programs::BatsimJob;
use crate::job::JobType;
use crate::params::Params;
use crate::workload::trace_job::TraceJob;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// Writes jobs with delay profiles, one for each different run time; estimates become walltimes, types extra data.
///
/// # Errors
/// An error of the writer, such as a full disk.
pub fn write_batsim(out: impl Write, procs: u32, jobs: &[TraceJob]) -> io::Result<()> {
    let name = |job: &TraceJob| format!("delay_{}", job.run_s);
    let delay = |job: &TraceJob| json!({ "type": "DelayProfile", "delay": job.run_s }).to_string();
    let profiles = jobs.iter().map(|job| (name(job), delay(job))).collect();
    let entries = jobs.iter().map(|job| {
        let entry = json!({
            "id": job.number.to_string(), "subtime": job.submit_s, "res": job.size, "profile": name(job),
        });
        with_options(entry, job.estimate_s, job.kind)
    });
    write(out, procs, entries, &profiles)
}

/// Writes jobs with what their programs compute and send on processors of `flops` flop/s: a parallel task, and a delay as long as the most
/// that a task waits for devices or holds its CPU. Those with the same profile and number of tasks must have the same program.
/// Returns why jobs were left out, and how many.
///
/// # Errors
/// An error of the writer, such as a full disk.
pub fn write_batsim_programs(
    out: impl Write,
    procs: u32,
    jobs: &[BatsimJob],
    (flops, params): (f64, &Params),
) -> io::Result<Vec<(String, u64)>> {
    let mut profiles: BTreeMap<String, String> = BTreeMap::new();
    let mut known: HashMap<(&str, u32), Result<String, String>> = HashMap::new();
    let mut left_out: BTreeMap<String, u64> = BTreeMap::new();
    let mut entries = Vec::new();
    for job in jobs {
        let tasks = job.job.tasks;
        let profile = known.entry((job.profile.as_str(), tasks)).or_insert_with(|| {
            let name = format!("{}_{tasks}", job.profile);
            let amounts = Amounts::of(&job.job, params)?;
            let found = amounts.profiles(&name, flops).map_err(|why| format!("its program {why}"))?;
            profiles.extend(found.into_iter().map(|(name, profile)| (name, profile.to_string())));
            Ok(name)
        });
        match profile {
            Ok(profile) => entries.push(entry(job, profile)),
            Err(why) => *left_out.entry(why.clone()).or_default() += 1,
        }
    }
    write(out, procs, entries.into_iter(), &profiles)?;
    Ok(left_out.into_iter().collect())
}

fn entry(job: &BatsimJob, profile: &str) -> Value {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let of = &job.job;
    let entry = json!({ "id": job.id, "subtime": seconds(of.arrival_ns), "res": of.tasks, "profile": profile });
    with_options(entry, of.estimate_ns.map(seconds), job.kind)
}

fn with_options(mut entry: Value, estimate_s: Option<f64>, kind: Option<JobType>) -> Value {
    if let Some(estimate) = estimate_s {
        entry["walltime"] = estimate.into();
    }
    if let Some(kind) = kind {
        entry["extra_data"] = json!({ "type": kind.name() });
    }
    entry
}

/// The file; profiles are JSON by their names.
fn write(
    mut out: impl Write,
    procs: u32,
    entries: impl Iterator<Item = Value>,
    profiles: &BTreeMap<String, String>,
) -> io::Result<()> {
    writeln!(out, "{{\n\"nb_res\": {procs},\n\"jobs\": [")?;
    let mut comma = "";
    for entry in entries {
        write!(out, "{comma}{entry}")?;
        comma = ",\n";
    }
    writeln!(out, "\n],\n\"profiles\": {{")?;
    comma = "";
    for (name, profile) in profiles {
        write!(out, "{comma}{}: {profile}", Value::from(name.as_str()))?;
        comma = ",\n";
    }
    writeln!(out, "\n}}\n}}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::Strategy as Named;
    use crate::workload::TypeMix;
    use crate::workload::batsim::{of_types, read_batsim, read_batsim_programs};
    use crate::workload::generate::paper;
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

    fn params() -> Params {
        Params::paper(Named::Gang, 32)
    }

    fn again(jobs: &[BatsimJob], flops: f64) -> (String, Vec<BatsimJob>) {
        let mut text = Vec::new();
        assert_eq!(write_batsim_programs(&mut text, 32, jobs, (flops, &params())).unwrap(), []);
        let read = read_batsim_programs(&text[..], flops).unwrap();
        assert_eq!((read.procs, read.dropped), (32, vec![]));
        (String::from_utf8(text).unwrap(), read.jobs)
    }

    fn with_program(text: &str, tasks: u32) -> BatsimJob {
        let mut job = of_types(
            &[TraceJob { number: 1, run_s: 1.0, size: tasks, ..TraceJob::default() }],
            TypeMix::default(),
            1,
            &params(),
        );
        job[0].job.program = std::sync::Arc::new(text.parse().unwrap());
        job.remove(0)
    }

    #[test]
    fn amounts_are_sums_over_loops_and_patterns() {
        let job = with_program(
            "repeat 3 { compute 2s; io 1s; repeat 2 { exchange 1d 5B }; barrier }; on 0 { hold 4s; compute 1s }",
            4,
        );
        let text = again(&[job], 10.0).0;
        let root: Value = serde_json::from_str(&text).unwrap();
        let name = root["jobs"][0]["profile"].as_str().unwrap();
        let profile = |ending: &str| &root["profiles"][format!("{name}{ending}")];
        assert_eq!(profile("")["seq"], json!([format!("{name}_parallel"), format!("{name}_delay")]));
        assert_eq!(profile("_parallel")["cpu"], json!([70.0, 60.0, 60.0, 60.0]));
        assert_eq!(profile("_parallel")["com"], json!([0, 30, 0, 30, 30, 0, 30, 0, 0, 30, 0, 30, 30, 0, 30, 0]));
        assert_eq!(profile("_delay")["delay"], json!(7.0));
    }

    #[test]
    fn what_all_do_alike_is_one_number() {
        let kind = |text: &str, tasks| {
            let root: Value = serde_json::from_str(&again(&[with_program(text, tasks)], 1e9).0).unwrap();
            let profiles = root["profiles"].as_object().unwrap().values();
            profiles.map(|profile| profile["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(kind("alltoall 9B; compute 1s", 5), "ParallelTaskHomogeneousProfile");
        assert_eq!(kind("compute 1s", 1), "ParallelTaskHomogeneousProfile");
        assert_eq!(kind("ring 9B", 5), "ParallelTaskProfile");
        assert_eq!(kind("on last { compute 1s }", 5), "ParallelTaskProfile");
        assert_eq!(kind("hold 1s; io 2s; barrier", 5), "DelayProfile");
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let jobs = [
            with_program("ring 9B", 1001),
            BatsimJob { profile: "b".into(), ..with_program("repeat 1000000 { repeat 1000001 { compute 1s } }", 1) },
            BatsimJob { profile: "c".into(), ..with_program("repeat 1000000000 { compute 2s }", 1) },
            BatsimJob { profile: "d".into(), ..with_program("compute 2s", 1) },
        ];
        let mut text = Vec::new();
        let left_out = write_batsim_programs(&mut text, 2000, &jobs, (1e9, &params())).unwrap();
        let reasons: Vec<&str> = left_out.iter().map(|(why, _)| why.as_str()).collect();
        let expected = [
            "its program lasts for no possible time: 0 to 31 years are",
            "its program needs a table of more than 1000000 numbers for its messages",
            "loops in loops are done more than 10^12 times",
        ];
        assert_eq!((reasons, read_batsim_programs(&text[..], 1e9).unwrap().jobs.len()), (expected.to_vec(), 1));
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

        #[test]
        fn the_work_of_generated_lists_is_read_back(count in 1..30_usize, nodes in 1..33_u32, seed in 0..1000_u64, flops in 1.0..1e12_f64) {
            let jobs = of_types(&paper(count, nodes, seed), TypeMix::default(), seed, &params());
            let read = again(&jobs, flops).1;
            prop_assert_eq!(read.len(), jobs.len());
            for (read, job) in read.iter().zip(&jobs) {
                prop_assert_eq!(Amounts::of(&read.job, &params()), Amounts::of(&job.job, &params()));
                prop_assert_eq!((&read.id, read.kind, read.job.arrival_ns), (&job.id, job.kind, job.job.arrival_ns));
                prop_assert_eq!((read.job.tasks, read.job.estimate_ns), (job.job.tasks, job.job.estimate_ns));
            }
        }
    }
}
