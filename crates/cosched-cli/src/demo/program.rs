//! Which parallel program the demo runs, and how.

use crate::out::Failure;
use crate::programs::{Launcher, directories, mpirun};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// CPU work between two barriers of a job's processes, in microseconds.
const GRAIN_US: &str = "100";

/// A parallel program and its launcher.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Everything before the program's own options.
    start: Vec<OsString>,
    /// Settings that the launcher needs.
    pub(crate) environment: Vec<(&'static str, &'static str)>,
    /// A description for users.
    pub(crate) description: String,
    /// The number of processes of each job.
    pub(crate) processes: usize,
}

/// The amount of work, the same in each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Work {
    /// The number of barriers.
    pub(crate) iterations: u64,
    /// Loops between two of them.
    pub(crate) grain_loops: u64,
}

impl Program {
    /// The named program or the default one, with `processes` processes per job.
    pub(crate) fn find(named: Option<&Path>, processes: usize) -> Result<Program, Failure> {
        let launcher = mpirun(None);
        let usual = ["barrier-mpi", "barrier-omp", "barrier-threads"];
        let wanted = if launcher.is_some() { &usual[..] } else { &usual[1..] };
        let path = match named {
            Some(path) if path.is_file() => path.to_owned(),
            Some(path) => return Err(missing(&format!("{} is not a file", path.display()))),
            None => directories()
                .iter()
                .flat_map(|directory| wanted.iter().map(|name| directory.join(name)))
                .find(|path| path.is_file())
                .ok_or_else(|| missing("barrier-mpi, barrier-omp and barrier-threads were not found"))?,
        };
        let is_mpi = path.file_name().is_some_and(|name| name.to_string_lossy().contains("mpi"));
        match launcher {
            Some(launcher) if is_mpi => Ok(Program::mpi(&launcher, path, processes)),
            None if is_mpi => Err(missing("no mpirun was found for this MPI program")),
            _ => Ok(Program::threads(path, processes)),
        }
    }

    fn mpi(launcher: &Launcher, path: PathBuf, processes: usize) -> Program {
        let (mut start, environment) = launcher.start(processes);
        let description = format!("{} -n {processes} {}", launcher.path.display(), path.display());
        start.push(path.into());
        Program { start, environment, description, processes }
    }

    fn threads(path: PathBuf, processes: usize) -> Program {
        let description = format!("{} --threads {processes}", path.display());
        let start = vec![path.into(), "--threads".into(), processes.to_string().into()];
        Program { start, environment: Vec::new(), description, processes }
    }

    /// Checks that all processes of a job met: MPI programs started by another MPI's mpirun run as independent single
    /// processes.
    pub(crate) fn check(&self, report: Report) -> Result<(), Failure> {
        match report.members {
            Some(members) if members != self.processes as u64 => Err(Failure::explained(
                1,
                "the demo's program did not run in parallel",
                &format!(
                    "only {members} of {} processes communicated: the program was built for another MPI",
                    self.processes
                ),
                "set COSCHED_MPIRUN to its mpirun",
            )),
            _ => Ok(()),
        }
    }

    /// The command line for a run of a given time, which shows how much work that is.
    pub(crate) fn calibration(&self, seconds: f64) -> Vec<OsString> {
        self.with(&["--grain-us", GRAIN_US, "--seconds", &seconds.to_string()])
    }

    /// The command line for a given amount of work.
    pub(crate) fn command(&self, work: Work) -> Vec<OsString> {
        let (iterations, loops) = (work.iterations.to_string(), work.grain_loops.to_string());
        self.with(&["--grain-loops", &loops, "--iterations", &iterations])
    }

    fn with(&self, options: &[&str]) -> Vec<OsString> {
        let options = options.iter().chain(&["--wait", "spin", "--json"]);
        self.start.iter().cloned().chain(options.map(OsString::from)).collect()
    }
}

/// A run's report about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) work: Work,
    /// The processes or threads that met, if reported.
    pub(crate) members: Option<u64>,
}

/// Finds a run's report, the line of JSON in its output.
pub(crate) fn read_report(output: &str) -> Option<Report> {
    output.lines().find_map(|line| {
        let value: serde_json::Value = serde_json::from_str(line.trim()).ok()?;
        let number = |name: &str| value.get(name)?.as_u64();
        let work = Work { iterations: number("iterations")?, grain_loops: number("grain_loops")? };
        Some(Report { work, members: number("members") })
    })
}

fn missing(why: &str) -> Failure {
    let hint = "`make programs` builds them in the source (packages have barrier-threads); or use --program PATH, or set COSCHED_PROGRAMS to their directory";
    Failure::explained(1, "no parallel program for the demo", why, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_work_from_the_programs_report() {
        let output = "some warning of mpirun\n{\"program\":\"barrier-mpi\",\"members\":2,\"grain_loops\":90000,\"iterations\":1234,\
            \"main_phase_s\":1.5}\n";
        let work = Work { iterations: 1234, grain_loops: 90_000 };
        assert_eq!(read_report(output), Some(Report { work, members: Some(2) }));
        assert_eq!(read_report("{\"iterations\":1234}\nno report"), None);
    }

    #[test]
    fn command_lines() {
        let program = Program::threads("/p/barrier-omp".into(), 2);
        let words = program.command(Work { iterations: 10, grain_loops: 7 });
        let text: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(text.join(" "), "/p/barrier-omp --threads 2 --grain-loops 7 --iterations 10 --wait spin --json");
    }
}
