//! Jobs of the paper's kind: tasks that repeatedly compute, do I/O and communicate with their neighbours (D8, D10,
//! D11).

use crate::params::Params;
use cosched_core::Class;
use std::fmt;
use std::str::FromStr;

/// A job type of Table 2: how its ideal time is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobType {
    /// 35 % computation, 15 % I/O, 50 % communication.
    J1,
    /// 35 % computation, 50 % I/O, 15 % communication.
    J2,
    /// 35 % computation, 35 % I/O, 30 % communication.
    J3,
    /// 90 % computation, 5 % I/O, 5 % communication.
    J4,
    /// 35 % computation, 5 % I/O, 60 % communication.
    J5,
    /// 65 % computation, 5 % I/O, 30 % communication.
    J6,
}

impl JobType {
    /// All six.
    pub const ALL: [JobType; 6] = [JobType::J1, JobType::J2, JobType::J3, JobType::J4, JobType::J5, JobType::J6];

    /// Computation, I/O and communication in per cent of the ideal time (Zhang et al. 2000, Table 2).
    pub fn percent(self) -> (u64, u64, u64) {
        match self {
            JobType::J1 => (35, 15, 50),
            JobType::J2 => (35, 50, 15),
            JobType::J3 => (35, 35, 30),
            JobType::J4 => (90, 5, 5),
            JobType::J5 => (35, 5, 60),
            JobType::J6 => (65, 5, 30),
        }
    }

    /// J1 to J6.
    pub fn name(self) -> &'static str {
        ["J1", "J2", "J3", "J4", "J5", "J6"][self as usize]
    }
}

impl fmt::Display for JobType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for JobType {
    type Err = String;

    /// Reads J1 to J6 or 1 to 6.
    fn from_str(text: &str) -> Result<JobType, String> {
        let digits = text.strip_prefix(['J', 'j']).unwrap_or(text);
        let number = digits.parse::<usize>().ok().filter(|_| digits.len() == 1);
        let found = number.and_then(|n| JobType::ALL.get(n.wrapping_sub(1)));
        found.copied().ok_or_else(|| format!("no job type '{text}'; there are J1 to J6"))
    }
}

/// A job in a job list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// When it arrives.
    pub arrival_ns: u64,
    /// The number of tasks, each on a node of its own.
    pub tasks: u32,
    /// Its execution time alone, without skewness.
    pub exec_ns: u64,
    /// How that time is divided.
    pub kind: JobType,
    /// How urgent it is (live).
    pub class: Class,
    /// What it wants of the memory.
    pub footprint: Footprint,
}

/// What each process of a job wants of the memory, on machines that have one ([`crate::general::Memory`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The data that it goes over again and again; at most the cache's size counts.
    pub working_set_bytes: u64,
    /// The bandwidth that it needs to compute at full speed.
    pub bytes_per_s: u64,
}

impl Footprint {
    /// The largest working set, 1 PiB, and the largest bandwidth, 1 PB/s: beyond them is surely a wrong unit.
    pub const MOST: Footprint = Footprint { working_set_bytes: 1 << 50, bytes_per_s: 1_000_000_000_000_000 };
}

/// The parts of an iteration of a job (D10). Times are those of the ideal case, before skewness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Computation.
    pub compute_ns: u64,
    /// I/O.
    pub io_ns: u64,
    /// Communication: from the first send to the last receive.
    pub communicate_ns: u64,
    /// The number of iterations, at least one.
    pub iterations: u64,
}

impl Shape {
    /// The shape of a job: the communication of a balanced iteration is known, the type's shares give the rest, and
    /// the execution time the number of iterations (D10; Zhang et al. 2000, §3.2).
    pub fn new(job: &JobSpec, params: &Params) -> Shape {
        let one_way = params.send_ns + params.wire_ns + params.receive_ns;
        let both = one_way + params.send_ns;
        let communicate_ns = match job.tasks {
            0 | 1 => 0,
            2 => one_way,
            _ => both,
        };
        let basis = if job.tasks == 1 { both } else { communicate_ns };
        let (compute, io, communicate) = job.kind.percent();
        let part = |percent: u64| (basis * percent * params.cd_scale * 2 + communicate) / (communicate * 2);
        let (compute_ns, io_ns) = (part(compute), part(io));
        let iteration = (compute_ns + io_ns + communicate_ns).max(1);
        let iterations = (u128::from(job.exec_ns) * 2 + u128::from(iteration)) / (u128::from(iteration) * 2);
        Shape { compute_ns, io_ns, communicate_ns, iterations: (iterations as u64).max(1) }
    }

    /// An iteration's ideal time.
    pub fn iteration_ns(&self) -> u64 {
        self.compute_ns + self.io_ns + self.communicate_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::Strategy;

    fn shape(tasks: u32, exec_ns: u64, kind: JobType) -> Shape {
        let job = JobSpec {
            arrival_ns: 0,
            tasks,
            exec_ns,
            kind,
            class: cosched_core::Class::Batch,
            footprint: Footprint::default(),
        };
        Shape::new(&job, &Params::paper(Strategy::Gang, 32))
    }

    #[test]
    fn shares_of_a_type_are_of_the_ideal_iteration() {
        let j3 = shape(32, 1_000_000_000, JobType::J3);
        assert_eq!((j3.communicate_ns, j3.compute_ns, j3.io_ns), (265_480, 309_727, 309_727));
        assert_eq!(j3.iterations, 1130);
        let two = shape(2, 1_000_000_000, JobType::J1);
        assert_eq!((two.communicate_ns, two.compute_ns, two.io_ns), (185_480, 129_836, 55_644));
    }

    #[test]
    fn computation_and_io_scale_at_literal_messages() {
        let job = JobSpec {
            arrival_ns: 0,
            tasks: 32,
            exec_ns: 1_000_000_000,
            kind: JobType::J3,
            class: cosched_core::Class::Batch,
            footprint: Footprint::default(),
        };
        let scaled = Shape::new(&job, &Params { cd_scale: 3, ..Params::paper(Strategy::Gang, 32) });
        assert_eq!((scaled.communicate_ns, scaled.compute_ns, scaled.io_ns), (265_480, 929_180, 929_180));
        assert_eq!(scaled.iterations, 471);
    }

    #[test]
    fn a_lone_task_computes_as_if_it_talked_but_does_not() {
        let one = shape(1, 619_454 * 3, JobType::J3);
        assert_eq!((one.communicate_ns, one.compute_ns, one.io_ns, one.iterations), (0, 309_727, 309_727, 3));
        assert_eq!(shape(1, 1, JobType::J3).iterations, 1, "at least one");
    }

    #[test]
    fn types_are_read_by_name_and_number() {
        assert_eq!("J4".parse(), Ok(JobType::J4));
        assert_eq!("4".parse(), Ok(JobType::J4));
        for wrong in ["J7", "0", "", "J", "44", "J+1"] {
            assert!(wrong.parse::<JobType>().is_err(), "{wrong}");
        }
    }
}
