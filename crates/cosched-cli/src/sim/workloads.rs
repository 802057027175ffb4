//! The jobs of simulations: WL1 to WL8, job lists and traces.

use crate::out::{EXIT_REFUSED, Failure};
use crate::workload::{input, input::Source, say_left_out};
use cosched_sim::JobSpec;
use cosched_sim::sweep::Wanted;
use cosched_sim::workload::scale::{Scaling, scale};
use cosched_sim::workload::select::Selection;
use cosched_sim::workload::{TraceJob, TypeMix, from_specs, generate, to_specs};
use std::collections::HashMap;
use std::path::Path;

/// The jobs of a file: a list as it is; of a trace those that fit on a machine with so many CPUs, with types as in WL7.
pub(crate) fn of_file(path: &Path, cpus: u32, seed: u64) -> Result<Vec<JobSpec>, Failure> {
    let source = match input::read(path, None, false)? {
        Source::Jobs(specs) => return Ok(specs),
        trace => trace,
    };
    let refused = |reason: String| Failure { code: EXIT_REFUSED, message: format!("{}: {reason}", path.display()) };
    let (mut jobs, not_taken) = source.select(Selection { procs: Some(cpus), ..Selection::default() });
    say_left_out(&not_taken.by_reason());
    if jobs.is_empty() {
        return Err(refused(none_fits(cpus)));
    }
    scale(&mut jobs, &Scaling::default()).map_err(|error| refused(error.to_string()))?;
    Ok(to_specs(&jobs, mixed().map_err(refused)?, seed))
}

/// The files of a sweep, each read once.
pub(crate) struct Workloads(HashMap<String, Source>);

impl Workloads {
    /// Reads those of these names that are no generated workload's.
    pub(crate) fn read<'a>(names: impl Iterator<Item = &'a String>) -> Result<Workloads, Failure> {
        let mut files = HashMap::new();
        for name in names {
            if name.parse::<TypeMix>().is_err() && !files.contains_key(name) {
                files.insert(name.clone(), input::read(Path::new(name), None, false)?);
            }
        }
        Ok(Workloads(files))
    }

    /// Makes the jobs that a cell wants; an error is what a person should read.
    ///
    /// A generated workload has the wanted number of jobs, mean execution time and load. A job list stays as it is but
    /// for the load. Of a trace the first so many jobs that fit are taken, scaled to that mean, with types as in WL7.
    pub(crate) fn jobs(&self, wanted: &Wanted) -> Result<Vec<JobSpec>, String> {
        match self.0.get(&wanted.workload) {
            None => {
                let drawn = generate::paper(wanted.jobs, wanted.nodes, wanted.seed);
                scaled(wanted, drawn, wanted.workload.parse()?)
            }
            Some(Source::Jobs(specs)) => list(wanted, specs),
            Some(trace) => {
                let asked = Selection { procs: Some(wanted.nodes), limit: Some(wanted.jobs), ..Selection::default() };
                let (taken, _) = trace.select(asked);
                if taken.is_empty() { Err(none_fits(wanted.nodes)) } else { scaled(wanted, taken, mixed()?) }
            }
        }
    }
}

fn none_fits(cpus: u32) -> String {
    format!("no job of the trace fits on {cpus} nodes\n  hint: simulate a larger machine")
}

fn list(wanted: &Wanted, specs: &[JobSpec]) -> Result<Vec<JobSpec>, String> {
    let Some(load) = wanted.load else { return Ok(specs.to_vec()) };
    let mut jobs = from_specs(specs);
    let scaling = Scaling { load: Some((load, wanted.nodes)), keep_start: true, ..Scaling::default() };
    scale(&mut jobs, &scaling).map_err(|e| e.to_string())?;
    // The types are known, so the mix decides nothing.
    Ok(to_specs(&jobs, mixed()?, wanted.seed))
}

/// All six types.
fn mixed() -> Result<TypeMix, String> {
    "WL7".parse()
}

/// Scales lengths to the wanted mean, and arrivals to the wanted load or else with the lengths.
fn scaled(wanted: &Wanted, mut jobs: Vec<TraceJob>, mix: TypeMix) -> Result<Vec<JobSpec>, String> {
    let mean_s = jobs.iter().map(|job| job.run_s).sum::<f64>() / jobs.len().max(1) as f64;
    let factor = wanted.mean_exec_s / mean_s;
    let load = wanted.load.map(|load| (load, wanted.nodes));
    let scaling = Scaling { lengths: Some(factor), times: Some(factor), load, ..Scaling::default() };
    scale(&mut jobs, &scaling).map_err(|e| e.to_string())?;
    Ok(to_specs(&jobs, mix, wanted.seed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn wanted(workload: &str, load: Option<f64>) -> Wanted {
        Wanted { workload: workload.to_owned(), load, nodes: 32, seed: 3, jobs: 40, mean_exec_s: 2.0 }
    }

    fn jobs(wanted: &Wanted) -> Result<Vec<JobSpec>, String> {
        Workloads::read([&wanted.workload].into_iter()).map_err(|failure| failure.message)?.jobs(wanted)
    }

    fn load(jobs: &[JobSpec]) -> f64 {
        let work: f64 = jobs.iter().map(|job| f64::from(job.tasks) * job.exec_ns as f64).sum();
        work / (32.0 * jobs.iter().map(|job| job.arrival_ns).max().unwrap() as f64)
    }

    #[test]
    fn generated_workloads_have_their_mean_and_load() {
        let jobs = jobs(&wanted("WL3", Some(0.6))).unwrap();
        let mean_s = jobs.iter().map(|job| job.exec_ns as f64 / 1e9).sum::<f64>() / 40.0;
        assert_eq!(jobs.len(), 40);
        assert!((mean_s - 2.0).abs() < 1e-5 && (load(&jobs) - 0.6).abs() < 1e-5, "{mean_s} {}", load(&jobs));
        assert!(jobs.iter().all(|job| job.kind == cosched_sim::JobType::J3));
    }

    #[test]
    fn lists_stay_as_they_are_but_for_the_load() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"arrival_s,tasks,exec_s,type\n1,8,2,J4\n5.000000001,16,3,J1\n").unwrap();
        let path = file.path().to_str().unwrap();
        let plain = jobs(&wanted(path, None)).unwrap();
        assert_eq!((plain[0].arrival_ns, plain[1].arrival_ns), (1_000_000_000, 5_000_000_001));
        let loaded = jobs(&wanted(path, Some(0.5))).unwrap();
        assert!((load(&loaded) - 0.5).abs() < 1e-6);
        assert_eq!((loaded[1].tasks, loaded[1].exec_ns, loaded[1].kind), (16, 3_000_000_000, plain[1].kind));
    }

    #[test]
    fn traces_give_the_first_jobs_that_fit() {
        let mut file = tempfile::Builder::new().suffix(".swf").tempfile().unwrap();
        for (number, procs) in [(1, 4), (2, 64), (3, 32), (4, 1)] {
            writeln!(file, "{number} {} 0 {} {procs} -1 -1 {procs} -1 -1 1 1 1 1 1 1 -1 -1", number * 10, number * 100)
                .unwrap();
        }
        let jobs = jobs(&wanted(file.path().to_str().unwrap(), None)).unwrap();
        assert_eq!(jobs.iter().map(|job| job.tasks).collect::<Vec<_>>(), [4, 32, 1]);
        // 100, 300 and 400 s become 2 s on average, the gaps shrink with them.
        assert_eq!((jobs[0].exec_ns, jobs[0].arrival_ns), (750_000_000, 0));
        assert_eq!(jobs[1].arrival_ns, 150_000_000);
    }

    #[test]
    fn what_is_not_there_is_told() {
        let error = jobs(&wanted("nowhere.csv", None)).unwrap_err();
        assert!(error.contains("No such file") && error.contains("hint:"), "{error}");
    }
}
