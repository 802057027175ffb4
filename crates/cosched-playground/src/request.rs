//! What is simulated, and what comes of it.

use crate::picture::Picture;
use cosched_sim::general::{self, Config, Work};
use cosched_sim::{Class, Footprint, JobSpec, Params, SimError, Strategy};
use serde::{Deserialize, Serialize};

/// What the page asks for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    strategy: String,
    nodes: u32,
    mpl: u32,
    quantum_ms: f64,
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    tasks: u32,
    exec_ms: f64,
    #[serde(rename = "type")]
    kind: String,
    arrival_ms: f64,
}

/// What it gets.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Picture(Box<Picture>),
    Error(String),
}

/// What a picture can show, and a browser bear.
const NODES_MAX: u32 = 16;
const JOBS_MAX: usize = 12;
const EXEC_MS_MAX: f64 = 1000.0;
/// Looks of the watcher (65536 events each) until a run is given up.
const LOOKS_MAX: u32 = 40;
/// A picture ends here, whether the jobs have ended or not.
const END_NS: u64 = 20_000_000_000;

fn ns(ms: f64) -> u64 {
    // Casts saturate, and what is too much is refused by the simulator.
    (ms * 1e6).round() as u64
}

impl Request {
    pub(crate) fn simulate(&self) -> Result<Answer, String> {
        let jobs = self.jobs()?;
        let strategy: Strategy = self.strategy.parse()?;
        let params = Params {
            mpl: self.mpl,
            quantum_ns: ns(self.quantum_ms),
            end_ns: Some(END_NS),
            ..Params::paper(strategy, self.nodes)
        };
        let works: Vec<Work> = jobs.iter().map(|job| Work::Paper(*job)).collect();
        let (mut picture, mut looks) = (Picture::new(jobs.len()), 0);
        let mut watch = |_| {
            looks += 1;
            looks < LOOKS_MAX
        };
        match general::simulate(&Config::paper(params), &works, &mut picture, &mut watch) {
            Ok(outcome) => Ok(Answer::Picture(Box::new(picture.with(&outcome)))),
            Err(SimError::Stopped) => Err("this takes too long for a page: fewer or shorter jobs, please".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn jobs(&self) -> Result<Vec<JobSpec>, String> {
        if !(1..=NODES_MAX).contains(&self.nodes) || !(1..=JOBS_MAX).contains(&self.jobs.len()) {
            return Err(format!("the picture has 1 to {NODES_MAX} CPUs and 1 to {JOBS_MAX} jobs"));
        }
        let job = |(at, job): (usize, &Job)| {
            if job.tasks > self.nodes {
                let (number, tasks, cpus) = (at + 1, job.tasks, self.nodes);
                return Err(format!(
                    "job {number} has {tasks} processes, and there are {cpus} CPUs: each needs one of its own"
                ));
            }
            if !(job.exec_ms > 0.0 && job.exec_ms <= EXEC_MS_MAX && (0.0..=EXEC_MS_MAX).contains(&job.arrival_ms)) {
                return Err(format!("a job lasts up to {EXEC_MS_MAX} ms, and comes within as much"));
            }
            let (arrival_ns, exec_ns, class) = (ns(job.arrival_ms), ns(job.exec_ms), Class::Batch);
            Ok(JobSpec {
                arrival_ns,
                tasks: job.tasks,
                exec_ns,
                kind: job.kind.parse()?,
                class,
                footprint: Footprint::default(),
            })
        };
        self.jobs.iter().enumerate().map(job).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::simulate;
    use serde_json::{Value, json};

    fn ask(change: impl FnOnce(&mut Value)) -> Value {
        let job = json!({"tasks": 2, "exec_ms": 5.0, "type": "J5", "arrival_ms": 0.0});
        let mut request = json!({"strategy": "GS", "nodes": 2, "mpl": 3, "quantum_ms": 10.0, "jobs": [job, job]});
        change(&mut request);
        serde_json::from_slice(&simulate(request.to_string().as_bytes())).unwrap()
    }

    #[test]
    fn every_strategy_has_a_picture_whose_slices_fit_together() {
        for strategy in cosched_sim::Strategy::all() {
            let answer = ask(|request| request["strategy"] = strategy.name().into());
            let picture = &answer["picture"];
            assert!(picture["jobs"][1]["finish_ms"].as_f64().unwrap() > 0.0, "{strategy}: {answer}");
            let mut until = [0.0; 2];
            for slice in picture["slices"].as_array().unwrap() {
                let field = |at: usize| slice[at].as_f64().unwrap();
                assert!(field(1) < field(2), "{slice}");
                if field(3) < 6.0 {
                    assert!(field(1) >= until[field(0) as usize], "a CPU does one thing at a time: {slice}");
                    until[field(0) as usize] = field(2);
                }
            }
            assert!(until[0] > 5.0, "{strategy}: {until:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (field, value, expected) in [
            ("strategy", json!("XB"), "no strategy 'XB'"),
            ("nodes", json!(0), "1 to 16 CPUs"),
            ("nodes", json!(1), "job 1 has 2 processes, and there are 1 CPUs"),
            ("mpl", json!(0), "MPL"),
            ("quantum_ms", json!(-1.0), "quantum is 0"),
            ("jobs", json!([]), "1 to 12 jobs"),
            ("jobs", json!([{"tasks": 1, "exec_ms": 1e9, "type": "J1", "arrival_ms": 0}]), "lasts up to"),
            ("jobs", json!([{"tasks": 1, "exec_ms": 1, "type": "J9", "arrival_ms": 0}]), "no job type"),
            ("jobs", json!(3), "not understood"),
        ] {
            let answer = ask(|request| request[field] = value);
            assert!(answer["error"].as_str().unwrap().contains(expected), "{expected}: {answer}");
        }
    }
}
