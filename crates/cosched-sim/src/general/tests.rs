//! Checks the engine against the decisions: jobs alone, cases computed by hand, readings, laws.

mod alone;
mod auto;
mod beyond;
mod by_hand;
mod custom;
mod flexible;
mod laws;
mod live;
mod memory;
mod messages;
mod platform;
mod programs;

use super::{Config, Own, ProgramJob, Work, run, simulate as simulate_all};
use crate::error::SimError;
use crate::job::{JobSpec, JobType};
use crate::observe::{Activity, JobChange, Message, Observer, Silent, Slice};
use crate::outcome::Outcome;
use crate::params::Params;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn simulate(params: &Params, jobs: &[JobSpec]) -> Outcome {
    run(params, jobs, &mut Silent, &mut |_| true).unwrap()
}

fn job(arrival_ns: u64, tasks: u32, exec_ns: u64, kind: JobType) -> JobSpec {
    JobSpec {
        arrival_ns,
        tasks,
        exec_ns,
        kind,
        class: cosched_core::Class::Batch,
        footprint: crate::job::Footprint::default(),
    }
}

/// Jobs with programs: (arrival in µs, tasks, program).
fn programs(jobs: &[(u64, u32, &str)]) -> Vec<Work> {
    let work = |(at_us, tasks, text): &(u64, u32, &str)| {
        let program = std::sync::Arc::new(text.parse().unwrap());
        Work::Program(ProgramJob {
            arrival_ns: at_us * US,
            tasks: *tasks,
            program,
            estimate_ns: None,
            class: cosched_core::Class::Batch,
            own: Own::default(),
        })
    };
    jobs.iter().map(work).collect()
}

/// The ends of jobs, in µs, the outcome and the records.
fn outcome_of(config: &Config, works: &[Work]) -> (Vec<u64>, Outcome, Record) {
    let mut record = Record::default();
    let outcome = simulate_all(config, works, &mut record, &mut |_| true).unwrap();
    let end = |job: &crate::outcome::JobTimes| job.finish_ns.unwrap() / US;
    (outcome.jobs.iter().map(end).collect(), outcome, record)
}

/// The paper's machine with this strategy, without skewness, checked at each step.
fn machine(strategy: &str, nodes: u32) -> Config {
    let params = Params::paper(strategy.parse().unwrap(), nodes);
    Config::paper(Params { skew: 0.0, check_invariants: true, ..params })
}

/// The same with another reading.
fn reading(config: Config, change: impl FnOnce(&mut crate::params::Readings)) -> Config {
    let mut config = config;
    change(&mut config.params.readings);
    config
}

/// Records all slices and messages.
#[derive(Default)]
struct Record {
    slices: Vec<Slice>,
    messages: Vec<Message>,
    rows: Vec<(u64, u32)>,
    /// The nodes on which jobs started.
    nodes: Vec<Vec<u32>>,
}

impl Record {
    /// (activity, from, to, job) of a node's CPU, in ns.
    fn of_cpu(&self, node: u32) -> Vec<(Activity, u64, u64, Option<u32>)> {
        let cpu = |slice: &&Slice| slice.node == node && !matches!(slice.activity, Activity::Io | Activity::Blocked);
        let short = |s: &Slice| (s.activity, s.start_ns, s.end_ns, s.process.map(|(job, _)| job));
        self.slices.iter().filter(cpu).map(short).collect()
    }

    /// When a node's CPU began to switch, in µs, and to which job.
    fn switches(&self, node: u32) -> Vec<(u64, u32)> {
        let switch = |(activity, start_ns, _, job): (Activity, u64, u64, Option<u32>)| {
            job.filter(|_| activity == Activity::Switch).map(|job| (start_ns / US, job))
        };
        self.of_cpu(node).into_iter().filter_map(switch).collect()
    }
}

impl Observer for Record {
    fn slice(&mut self, slice: Slice) {
        self.slices.push(slice);
    }

    fn message(&mut self, message: Message) {
        self.messages.push(message);
    }

    fn job(&mut self, _: u64, _: u32, change: JobChange, nodes: &[u32], _: Option<u32>) {
        if change == JobChange::Started {
            self.nodes.push(nodes.to_vec());
        }
    }

    fn row(&mut self, time_ns: u64, row: u32) {
        self.rows.push((time_ns, row));
    }
}

fn recorded(params: &Params, jobs: &[JobSpec]) -> (Outcome, Record) {
    let mut record = Record::default();
    let outcome = run(params, jobs, &mut record, &mut |_| true).unwrap();
    (outcome, record)
}

#[test]
fn what_cannot_run_is_refused() {
    let params = Params::paper("SB".parse().unwrap(), 4);
    let refused = |params: &Params, tasks: u32| {
        run(params, &[job(0, 1, MS, JobType::J3), job(0, tasks, MS, JobType::J3)], &mut Silent, &mut |_| true)
    };
    assert_eq!(refused(&params, 5), Err(SimError::TooLarge { index: 1, tasks: 5, places: 4 }));
    assert_eq!(refused(&params, 0), Err(SimError::NoTasks { index: 1 }));
    let late = [job(u64::MAX, 1, MS, JobType::J3)];
    assert!(matches!(run(&params, &late, &mut Silent, &mut |_| true), Err(SimError::Params(_))));
    assert!(matches!(refused(&Params { mpl: 0, ..params }, 1), Err(SimError::Params(_))));
}

#[test]
fn the_watcher_can_stop_a_run() {
    let params = Params::paper("GS".parse().unwrap(), 2);
    let jobs = [job(0, 2, 20_000 * MS, JobType::J5)];
    let mut calls = 0;
    let stopped = run(&params, &jobs, &mut Silent, &mut |progress| {
        calls += 1;
        assert!(progress.time_ns > 0 && progress.task_iterations.0 < progress.task_iterations.1);
        calls < 3
    });
    assert_eq!((stopped, calls), (Err(SimError::Stopped), 3));
}
