//! What evalys makes of the jobs.csv that the simulator writes.

use crate::fake::{Place, program, text};
use crate::sim_results::jobs;
use serde_json::Value;

const LOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cosched-sim/testdata/swf/synthetic.swf");

/// Reads a file, draws it, and says what evalys found: times to 1e-6 s, as it rounds them.
const READ: &str = r#"
import json, sys, warnings
import matplotlib
matplotlib.use("agg")
warnings.simplefilter("ignore")
from evalys.jobset import JobSet
jobs = JobSet.from_csv(sys.argv[1])
of = jobs.df
near = lambda a, b: bool(((a - b).abs() < 3e-6).all())
work = (of.proc_alloc * of.execution_time).sum()
mean = work / (of.finish_time.max() - of.starting_time.min())
jobs.gantt()
jobs.plot(with_details=True)
print(json.dumps({
    "columns": sorted(set(JobSet.columns) - {"job_id"} - set(of.columns)),
    "jobs": len(of), "processors": jobs.MaxProcs, "free": len(jobs.free_intervals()), "queue": len(jobs.queue) > 0,
    "sizes": bool((of.proc_alloc == of.requested_number_of_resources).all()),
    "waits": near(of.starting_time - of.submission_time, of.waiting_time),
    "execution": near(of.finish_time - of.starting_time, of.execution_time),
    "turnaround": near(of.waiting_time + of.execution_time, of.turnaround_time),
    "load": bool(abs(jobs.mean_utilisation() / mean - 1) < 1e-4),
}))
"#;

/// Writes jobs.csv by a command, and has it read.
fn is_read(place: &Place, words: &[&str], option: &str, (jobs, processors): (u64, u64)) {
    let Some(mut python) = program("python", "import evalys.jobset") else { return };
    let csv = place.path("found.csv");
    let output = place.output(&[words, &[option, csv.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    let output = python.args(["-c", READ]).arg(&csv).env("MPLCONFIGDIR", place.path("matplotlib")).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["columns"], Value::Array(Vec::new()), "missing ones of {words:?}");
    assert_eq!((found["jobs"].as_u64(), found["processors"].as_u64()), (Some(jobs), Some(processors)), "{words:?}");
    for what in ["queue", "sizes", "waits", "execution", "turnaround", "load"] {
        assert_eq!(found[what], true, "{what} of {words:?}: {found}");
    }
}

#[test]
fn runs_are_read() {
    let place = Place::new();
    let jobs = jobs(&place);
    for strategy in ["FCFS", "GS", "SB"] {
        let run = ["sim", "run", "-s", strategy, "--jobs", &jobs, "--nodes", "4", "--quiet"];
        is_read(&place, &run, "--batsim", (24, 4));
    }
}

#[test]
fn workloads_of_batsim_are_read() {
    let place = Place::new();
    let work = place.path("work.json");
    let work = work.to_str().unwrap();
    let output = place.output(&["workload", "convert", &jobs(&place), work, "--work-flops", "1e9", "--nodes", "4"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    is_read(&place, &["sim", "batsim", work, "-s", "FCFS", "--quiet"], "--csv", (24, 4));
}

#[test]
fn batch_policies_are_read() {
    let place = Place::new();
    for policy in ["easy", "conservative", "soft-gang", "oversubscribe"] {
        is_read(&place, &["sim", "backfill", "--trace", LOG, "--policy", policy], "--jobs-csv", (353, 64));
    }
    let failing = ["--mtbf", "9d", "--mttr", "4h", "--node-procs", "8"];
    let easy = ["sim", "backfill", "--trace", LOG, "--policy", "easy"];
    is_read(&place, &[&easy[..], &failing].concat(), "--jobs-csv", (353, 64));
}
