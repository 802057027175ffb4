//! The jobs of simulations: WL1 to WL8, job lists and traces.

use crate::out::{EXIT_REFUSED, Failure};
use crate::workload::{input, input::Source, say_left_out};
use cosched_sim::JobSpec;
use cosched_sim::sweep::Wanted;
use cosched_sim::workload::TypeMix;
use cosched_study::workload::generated;
use std::collections::HashMap;
use std::path::Path;

/// The jobs of a file, for a machine with this number of CPUs.
pub(crate) fn of_file(path: &Path, cpus: u32, seed: u64) -> Result<Vec<JobSpec>, Failure> {
    let refused = |reason: String| Failure { code: EXIT_REFUSED, message: format!("{}: {reason}", path.display()) };
    let (jobs, not_taken) = input::read(path, None, false)?.jobs(cpus, seed).map_err(refused)?;
    say_left_out(&not_taken.by_reason());
    Ok(jobs)
}

/// The files of a sweep, each read once.
pub(crate) struct Workloads(HashMap<String, Source>);

impl Workloads {
    /// Reads all of these names that are files, not generated workloads.
    pub(crate) fn read<'a>(names: impl Iterator<Item = &'a String>) -> Result<Workloads, Failure> {
        let mut files = HashMap::new();
        for name in names {
            if name.parse::<TypeMix>().is_err() && !files.contains_key(name) {
                files.insert(name.clone(), input::read(Path::new(name), None, false)?);
            }
        }
        Ok(Workloads(files))
    }

    /// Creates the jobs that a cell requests; an error is a message for the user.
    pub(crate) fn jobs(&self, wanted: &Wanted) -> Result<Vec<JobSpec>, String> {
        self.0.get(&wanted.workload).map_or_else(|| generated(wanted), |source| source.wanted(wanted))
    }
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
