//! Profiles as programs of the simulator: computation and messages, on whatever machine.
//!
//! A parallel task computes and communicates at once, as in Batsim: it sends, computes, then receives, and messages need no CPU.

use super::profile::{DEPTH_MAX, PARTS_MAX, kind};
use super::read::{BatsimError, Head, Root, each, head, type_of};
use crate::general::{Own, ProgramJob};
use crate::job::{JobSpec, JobType, Shape};
use crate::params::Params;
use crate::program::{OPS_MAX, Peer, Program, Statement, Who};
use crate::workload::lines::excerpt;
use crate::workload::trace_job::{TraceJob, to_specs};
use crate::workload::types::TypeMix;
use cosched_core::Class;
use serde_json::Value;
use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

/// The largest amounts of a profile, in ns (31 years) and bytes.
const NS_MAX: f64 = 1e18;
const BYTES_MAX: f64 = 1e15;
/// The most statements of a job's program: a matrix has one for each pair.
pub(super) const STATEMENTS_MAX: usize = 1_000_000;

/// A job with its names in the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct BatsimJob {
    /// Its id.
    pub id: String,
    /// Its profile's name.
    pub profile: String,
    /// Its type, if known.
    pub kind: Option<JobType>,
    /// What it does.
    pub job: ProgramJob,
}

/// A workload whose jobs compute and communicate.
#[derive(Clone, Debug, PartialEq)]
pub struct BatsimPrograms {
    /// The machine's processors.
    pub procs: u32,
    /// Jobs in the order of the file.
    pub jobs: Vec<BatsimJob>,
    /// Why jobs were left out, and how many.
    pub dropped: Vec<(String, u64)>,
}

/// Reads a workload of Batsim 4.x or 5.x. `flops` is the speed of a processor, flop/s.
///
/// # Errors
/// An error of the reader; not JSON; no `nb_res`, `jobs` or `profiles`; no usable jobs.
pub fn read_batsim_programs(input: impl Read, flops: f64) -> Result<BatsimPrograms, BatsimError> {
    let root = Root::read(input)?;
    let (procs, jobs, profiles) = root.parts()?;
    let mut programs: HashMap<(&str, u32), Result<Arc<Program>, String>> = HashMap::new();
    let (jobs, dropped) = each(jobs, |entry, place| {
        let of = head(entry)?;
        let program = programs.entry((of.profile, of.size)).or_insert_with(|| {
            let (profiles, size) = (profiles, of.size);
            let mut writer = Writer { profiles, size, flops, parts_left: PARTS_MAX, statements: 0, ops: 0 };
            writer.body(of.profile, 0).map(|body| Arc::new(Program { body }))
        });
        match program {
            Ok(program) => Ok(job(entry, place, &of, Arc::clone(program))),
            Err(why) => Err(format!("its profile {} {why}", excerpt(of.profile))),
        }
    })?;
    Ok(BatsimPrograms { procs, jobs, dropped })
}

fn job(entry: &Value, place: u64, of: &Head<'_>, program: Arc<Program>) -> BatsimJob {
    let id = &entry["id"];
    let id = id.as_str().map(str::to_owned).or_else(|| id.as_u64().map(|id| id.to_string()));
    let job = ProgramJob {
        arrival_ns: ns(of.submit_s),
        tasks: of.size,
        program,
        estimate_ns: of.walltime_s.map(ns),
        class: Class::Batch,
        own: Own::default(),
    };
    BatsimJob { id: id.unwrap_or_else(|| place.to_string()), profile: of.profile.to_owned(), kind: type_of(entry), job }
}

/// Jobs of a trace with the programs that the paper's jobs of their types have; unknown types are drawn from the mix.
pub fn of_types(jobs: &[TraceJob], mix: TypeMix, seed: u64, params: &Params) -> Vec<BatsimJob> {
    let of_type = |(job, spec): (&TraceJob, JobSpec)| {
        let shape = Shape::new(&spec, params);
        let job_of = ProgramJob {
            arrival_ns: spec.arrival_ns,
            tasks: spec.tasks,
            program: Arc::new(Program::of_paper(&shape)),
            estimate_ns: job.estimate_s.map(ns),
            class: spec.class,
            own: Own::default(),
        };
        let profile = format!("{}_{}", spec.kind, shape.iterations);
        BatsimJob { id: job.number.to_string(), profile, kind: Some(spec.kind), job: job_of }
    };
    jobs.iter().zip(to_specs(jobs, mix, seed)).map(of_type).collect()
}

/// The cast saturates.
fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Makes the program of a profile for a number of processors.
struct Writer<'a> {
    profiles: &'a serde_json::Map<String, Value>,
    size: u32,
    flops: f64,
    parts_left: u32,
    statements: usize,
    /// Of all tasks together.
    ops: u64,
}

impl Writer<'_> {
    fn body(&mut self, name: &str, depth: u32) -> Result<Vec<Statement>, String> {
        let profile = self.profiles.get(name).ok_or("is not in the file")?;
        self.parts_left = self.parts_left.checked_sub(1).ok_or("is composed of too many parts")?;
        let number = |key: &str| profile[key].as_f64();
        let size = f64::from(self.size);
        match kind(profile) {
            "delay" | "DelayProfile" => {
                self.count(1, self.size.into())?;
                Ok(vec![Statement::Hold { ns: ns_of(number("delay").ok_or("has no delay")? * 1e9)? }])
            }
            "composed" | "SequentialCompositionProfile" if depth == DEPTH_MAX => Err("is composed too deeply".into()),
            "composed" | "SequentialCompositionProfile" => {
                let parts = profile["seq"].as_array().ok_or("has no seq")?;
                let mut body = Vec::new();
                for part in parts {
                    body.extend(self.body(part.as_str().unwrap_or_default(), depth + 1)?);
                }
                let times = profile.get("repeat").or_else(|| profile.get("nb")).map_or(Some(1), Value::as_u64);
                self.count(1, 2 * u64::from(self.size))?;
                match times.ok_or("has no whole number of repetitions")? {
                    0 => Err("is repeated 0 times".into()),
                    1 => Ok(body),
                    times => Ok(vec![Statement::Repeat { times, body }]),
                }
            }
            "parallel_homogeneous" => self.equal(number("cpu"), number("com")),
            "ParallelTaskHomogeneousProfile" => match profile["generation_strategy"].as_str() {
                Some("DefinedAmountsSpreadUniformly") => {
                    self.equal(number("cpu").map(|cpu| cpu / size), number("com").map(|com| com / (size * size)))
                }
                _ => self.equal(number("cpu"), number("com")),
            },
            "parallel" | "ParallelTaskProfile" => self.matrix(profile),
            other => Err(format!("is of type {other}, which is not simulated")),
        }
    }

    /// Each computes as much, and sends as much to each other.
    fn equal(&mut self, flop: Option<f64>, bytes: Option<f64>) -> Result<Vec<Statement>, String> {
        let bytes = size_of(bytes.unwrap_or(0.0))?;
        let others = if bytes > 0 { i64::from(self.size) } else { 1 };
        self.count(2 * others as usize, u64::from(self.size).saturating_mul(2 * others as u64))?;
        let mut body: Vec<Statement> = (1..others).map(|k| Statement::Send { to: Peer::Offset(k), bytes }).collect();
        body.push(compute(flop.unwrap_or(0.0) / self.flops * 1e9)?);
        body.extend((1..others).map(|k| Statement::Receive { from: Peer::Offset(-k) }));
        Ok(body)
    }

    /// Each computes its own amount; row i of the matrix is what processor i sends.
    fn matrix(&mut self, profile: &Value) -> Result<Vec<Statement>, String> {
        let list = |key: &str| -> Result<Vec<f64>, String> {
            let list = profile[key].as_array().ok_or(format!("has no {key}"))?;
            list.iter().map(|value| value.as_f64().ok_or(format!("has a {key} that is no number"))).collect()
        };
        let (cpu, com, size) = (list("cpu")?, list("com")?, self.size as usize);
        if cpu.len() != size || com.len() != size * size {
            return Err(format!("is for {} processors", cpu.len()));
        }
        let steps = size + 2 * com.iter().filter(|bytes| **bytes > 0.0).count();
        self.count(steps, steps as u64)?;
        let on = |task: usize, body: Vec<Statement>| Statement::On { who: Who::Range(task as u32, task as u32), body };
        let mut all = Vec::new();
        for task in 0..size {
            let pairs = |other: usize| (other, com[task * size + other], com[other * size + task]);
            let mut body = Vec::new();
            for (other, bytes, _) in (0..size).map(pairs).filter(|(other, bytes, _)| *bytes > 0.0 && *other != task) {
                body.push(Statement::Send { to: Peer::Task(other as u32), bytes: size_of(bytes)? });
            }
            body.push(compute(cpu[task] / self.flops * 1e9)?);
            for (other, _, bytes) in (0..size).map(pairs).filter(|(other, _, bytes)| *bytes > 0.0 && *other != task) {
                size_of(bytes)?;
                body.push(Statement::Receive { from: Peer::Task(other as u32) });
            }
            all.push(on(task, body));
        }
        Ok(all)
    }

    fn count(&mut self, statements: usize, ops: u64) -> Result<(), String> {
        (self.statements, self.ops) = (self.statements + statements, self.ops.saturating_add(ops));
        let fits = self.statements <= STATEMENTS_MAX && self.ops <= OPS_MAX as u64;
        if fits { Ok(()) } else { Err("has too many messages".into()) }
    }
}

pub(super) fn compute(ns: f64) -> Result<Statement, String> {
    Ok(Statement::Compute { ns: ns_of(ns)?, skew: false })
}

pub(super) fn ns_of(ns: f64) -> Result<u64, String> {
    let possible = Some(ns).filter(|ns| (0.0..=NS_MAX).contains(ns));
    let ns = possible.ok_or("lasts for no possible time: 0 to 31 years are")?;
    Ok(ns.round() as u64)
}

pub(super) fn size_of(bytes: f64) -> Result<u64, String> {
    let bytes = Some(bytes).filter(|bytes| (0.0..=BYTES_MAX).contains(bytes)).ok_or("sends no possible size")?;
    Ok(bytes.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::general::{Config, Work, simulate_on};
    use crate::platform::read_toml;
    use crate::{Params, Silent};

    const WORKLOAD: &str = r#"{"nb_res": 4, "jobs": [
        {"id": "w!1", "subtime": 0, "walltime": 100, "res": 4, "profile": "d"},
        {"id": 2, "subtime": 1.5, "res": 2, "profile": "h"},
        {"id": "3", "subtime": 3, "res": 2, "profile": "wide"},
        {"id": "4", "subtime": 6, "res": 3, "profile": "m"},
        {"id": "5", "subtime": 9, "res": 4, "profile": "c"},
        {"id": "6", "subtime": 9, "res": 2, "profile": "m"},
        {"id": "7", "subtime": 9, "res": 2, "profile": "s"},
        {"id": "8", "subtime": 9, "res": 2, "profile": "loop"}],
      "profiles": {"d": {"type": "delay", "delay": 1.25},
        "h": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 1e6},
        "wide": {"type": "ParallelTaskHomogeneousProfile", "cpu": 1e9, "com": 2e8, "generation_strategy": "DefinedAmountsUsedForEachValue"},
        "m": {"type": "parallel", "cpu": [1e9, 0, 5e8], "com": [0, 1e8, 0, 0, 7, 0, 0, 0, 0]},
        "c": {"type": "composed", "repeat": 2, "seq": ["h", "d"]},
        "s": {"type": "smpi", "trace": "x"}, "loop": {"type": "composed", "seq": ["loop"]}}}"#;

    /// Computation and messages overlap: the longer one decides.
    #[test]
    fn jobs_take_what_they_compute_or_send() {
        let read = read_batsim_programs(WORKLOAD.as_bytes(), 1e9).unwrap();
        let platform = "model = \"CM02\"\n[[cluster]]\nname = \"c\"\nhosts = 4\nspeed = \"1Gf\"\nbandwidth = \"100MBps\"\nlatency = \"0\"\n";
        let works: Vec<Work> = read.jobs.iter().map(|job| Work::Program(job.job.clone())).collect();
        let config = Config::paper(Params::paper("FCFS".parse().unwrap(), 4));
        let platform = read_toml(platform).unwrap();
        let out = simulate_on(&config, Some(&platform), &works, &mut Silent, &mut |_| true).unwrap();
        let took_s: Vec<f64> =
            out.jobs.iter().map(|job| (job.finish_ns.unwrap() - job.start_ns.unwrap()) as f64 / 1e9).collect();
        // 200 MB each way at 100 MB/s with 5 % of acknowledgements; 100 MB one way; twice 1 s and 1.25 s.
        for (took, expected) in took_s.iter().zip([1.25, 1.0, 2.1, 1.0, 4.5]) {
            assert!((took - expected).abs() < 0.002, "{took_s:?}");
        }
        let names: Vec<_> =
            read.jobs.iter().map(|job| (job.id.as_str(), job.profile.as_str(), job.job.tasks)).collect();
        assert_eq!(names, [("w!1", "d", 4), ("2", "h", 2), ("3", "wide", 2), ("4", "m", 3), ("5", "c", 4)]);
        assert_eq!(read.jobs[0].job.estimate_ns, Some(100_000_000_000));
        let reasons: Vec<&str> = read.dropped.iter().map(|(reason, _)| reason.as_str()).collect();
        let expected = [
            "its profile loop is composed too deeply",
            "its profile m is for 3 processors",
            "its profile s is of type smpi, which is not simulated",
        ];
        assert_eq!(reasons, expected);
    }

    #[test]
    fn a_delay_may_last_for_weeks() {
        let text = r#"{"nb_res": 1, "jobs": [{"id": 1, "subtime": 0, "res": 1, "profile": "p"}], "profiles": {"p": {"type": "delay", "delay": 2e6}}}"#;
        let read = read_batsim_programs(text.as_bytes(), 1e9).unwrap();
        assert_eq!(read.jobs[0].job.program.body, [Statement::Hold { ns: 2_000_000_000_000_000 }]);
    }

    #[test]
    fn impossible_amounts_are_named() {
        let with = |profile: &str, size: u32| {
            let text = format!(
                r#"{{"nb_res": 9, "jobs": [{{"id": 1, "subtime": 0, "res": {size}, "profile": "p"}}], "profiles": {{"p": {profile}}}}}"#
            );
            read_batsim_programs(text.as_bytes(), 1.0).unwrap_err().to_string()
        };
        let cases = [
            (r#"{"type": "delay", "delay": -1}"#, 1, "lasts for no possible time: 0 to 31 years are"),
            (r#"{"type": "delay", "delay": 1e300}"#, 1, "lasts for no possible time"),
            (r#"{"type": "parallel_homogeneous", "cpu": 1, "com": 1}"#, 2_300, "has too many messages"),
            (r#"{"type": "parallel_homogeneous", "cpu": 1, "com": -1}"#, 2, "sends no possible size"),
            (r#"{"type": "parallel_homogeneous", "cpu": 1, "com": 1}"#, 600_000, "has too many messages"),
            (r#"{"type": "parallel", "cpu": [1, "x"], "com": [0, 0, 0, 0]}"#, 2, "has a cpu that is no number"),
            (r#"{"type": "composed", "seq": [], "repeat": -3}"#, 1, "has no whole number of repetitions"),
        ];
        for (profile, size, part) in cases {
            let message = with(profile, size);
            assert!(message.contains(part), "{profile}: {message}");
        }
    }
}
