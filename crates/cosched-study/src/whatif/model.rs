//! An observed job as a program of the simulator.
//!
//! - With a recording: what is left of it. How much is done is known by the CPU time so far.
//! - Otherwise its busy tasks repeat what was seen: computation, then a barrier for each wait that was seen. CPU time that it was given in
//!   its slots and did not use, it sleeps.
//! - A program that polls for messages while it waits busy does not show how often it waits. It is simulated as if it only computed, which
//!   is right while its processes run together.

use super::machine::Machine;
use cosched_sim::general::Own;
use cosched_sim::program::{Pattern, Peer, Program, Setting, Statement, Who};
use cosched_sim::{Class, Topology};
use std::sync::Arc;

/// A job that leaves less than this of its CPU time unused does not sleep: slots have edges.
const SLEEPS_FROM: f64 = 0.1;
/// The period in which a job that sleeps computes and sleeps: it is not observed.
const PERIOD_NS: u64 = 20_000_000;
/// The computation between two looks at the program counter, where a job does nothing else.
const PIECE_NS: u64 = 10_000_000;
/// More passes than any prediction has.
const ENDLESS: u64 = 1_000_000_000;
/// This number of places is tried at which a recording can be continued.
const PLACES: usize = 200;

/// A running job as it was seen for some seconds.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The CPUs that it has at a time.
    pub cpus: u32,
    /// The threads that use CPU time.
    pub tasks: u32,
    /// How long it was looked at.
    pub seconds: f64,
    /// The CPU time that it used meanwhile.
    pub cpu_s: f64,
    /// That part of it that it used outside of its slots.
    pub outside_s: f64,
    /// The part of the machine's CPU time that the plan gave it, 0 to 1.
    pub due: Option<f64>,
    /// Its waits, if they are seen.
    pub waits: Option<Waits>,
    /// Its class.
    pub class: Class,
    /// Its own policy (gang or local), its share, and how it waits now.
    pub own: Own,
    /// When its time limit ends it, in seconds from now.
    pub limit_s: Option<f64>,
    /// What is left of its recording, and its number of tasks.
    pub rest: Option<(Arc<Program>, u32)>,
    /// The part of its recording that is done, 0 to 1.
    pub done: Option<f64>,
}

/// What the wait library saw meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waits {
    /// Calls that asked for a message.
    pub polls: u64,
    /// Waits: rows of such calls. None is counted while processes wait busy.
    pub waits: u64,
    /// Time spent spinning.
    pub spin_s: f64,
    /// Time spent blocked.
    pub block_s: f64,
}

/// The program of a job.
#[derive(Clone, Debug)]
pub(super) struct Modelled {
    pub(super) program: Arc<Program>,
    pub(super) tasks: u32,
    /// It has an end.
    pub(super) ends: bool,
    /// The computation that is left, if that is known.
    pub(super) left_s: Option<f64>,
    /// It waits by polling, and how often is not known.
    pub(super) polls_unseen: bool,
}

impl Modelled {
    /// The same for at least this time: what ends begins again. Messages alone may end sooner.
    pub(super) fn lasting(&self, seconds: f64) -> Modelled {
        let pass_ns = cost_ns(&self.program.body, self.tasks);
        if !self.ends || pass_ns <= 0.0 {
            return self.clone();
        }
        let times = (seconds * 1e9 / pass_ns) as u64 + 1;
        let body = vec![Statement::Repeat { times, body: self.program.body.clone() }];
        Modelled { program: Arc::new(Program { body }), ..self.clone() }
    }
}

pub(super) fn modelled(machine: &Machine, job: &Observed) -> Modelled {
    if let Some((program, tasks)) = job.rest.as_ref().filter(|(_, tasks)| *tasks <= machine.cpus) {
        let left_s = cost_ns(&program.body, *tasks) / 1e9 * f64::from(*tasks);
        return Modelled {
            program: Arc::clone(program),
            tasks: *tasks,
            ends: true,
            left_s: Some(left_s),
            polls_unseen: false,
        };
    }
    let tasks = job.cpus.min(machine.cpus).max(1);
    let busy = job.tasks.clamp(1, tasks);
    let waits = job.waits.filter(|waits| waits.waits > 0 && busy > 1);
    let body = match waits {
        Some(waits) => meeting(job, waits, busy, tasks),
        None => on_busy(busy, tasks, sleeping(machine, job, busy)),
    };
    Modelled {
        program: Arc::new(Program { body: vec![Statement::Repeat { times: ENDLESS, body }] }),
        tasks,
        ends: false,
        left_s: None,
        polls_unseen: busy > 1 && job.waits.is_some_and(|seen| seen.polls > 0 && seen.waits == 0),
    }
}

/// Computation between waits, and a meeting of the busy tasks for each wait.
fn meeting(job: &Observed, waits: Waits, busy: u32, tasks: u32) -> Vec<Statement> {
    let work_s = (job.cpu_s - waits.spin_s).max(job.cpu_s * 0.01);
    let ns = (work_s / waits.waits as f64 * 1e9).round().max(1.0) as u64;
    let mut body = on_busy(busy, tasks, vec![compute(ns)]);
    if busy == tasks {
        body.push(Statement::Pattern(Pattern::Barrier));
        return body;
    }
    let each = |task: u32| {
        let (right, left) = ((task + 1) % busy, (task + busy - 1) % busy);
        let meet =
            vec![Statement::Send { to: Peer::Task(right), bytes: 0 }, Statement::Receive { from: Peer::Task(left) }];
        Statement::On { who: Who::Range(task, task), body: meet }
    };
    body.extend((0..busy).map(each));
    body
}

/// Computation, and sleep for that part of the CPU time in its slots that it did not use.
fn sleeping(machine: &Machine, job: &Observed, busy: u32) -> Vec<Statement> {
    let offered_s = job.due.map(|due| {
        let part = f64::from(busy) / f64::from(job.cpus.min(machine.cpus).max(1));
        due * f64::from(machine.cpus) * job.seconds * part * (1.0 - machine.others.clamp(0.0, 0.99))
    });
    let asleep = match offered_s.filter(|offered| *offered > 0.0) {
        Some(offered) => 1.0 - ((job.cpu_s - job.outside_s) / offered).clamp(0.001, 1.0),
        None => 0.0,
    };
    if asleep < SLEEPS_FROM {
        return vec![compute(PIECE_NS)];
    }
    let io = (PERIOD_NS as f64 * asleep) as u64;
    vec![compute(PERIOD_NS - io), Statement::Io { ns: io, skew: false }]
}

fn compute(ns: u64) -> Statement {
    Statement::Compute { ns, skew: false }
}

/// For the busy tasks only: the others have cells and nothing to do.
fn on_busy(busy: u32, tasks: u32, body: Vec<Statement>) -> Vec<Statement> {
    if busy == tasks { body } else { vec![Statement::On { who: Who::Range(0, busy - 1), body }] }
}

/// What is left of a program of which a part (0 to 1) is done: it continues at the first place from there on at which no message is under
/// way. None if there is none, or nothing is left.
pub fn rest_of(program: &Program, tasks: u32, done: f64) -> Option<Program> {
    let mut skip_ns = cost_ns(&program.body, tasks) * done.clamp(0.0, 1.0);
    let mut body = program.body.as_slice();
    let mut begun = None;
    while let Some((first, others)) = body.split_first() {
        let cost = cost_ns(std::slice::from_ref(first), tasks);
        if cost > skip_ns {
            if let Statement::Repeat { times, body: inner } = first {
                let passes = (skip_ns / (cost / *times as f64)) as u64;
                begun = Some(Statement::Repeat { times: (times - passes).max(1), body: inner.clone() });
                body = others;
            }
            break;
        }
        skip_ns -= cost;
        body = others;
    }
    let fits = |body: &Vec<Statement>| {
        let setting = Setting { tasks, seed: 1, topology: Topology::Ring };
        !body.is_empty() && Program { body: body.clone() }.expand(setting).is_ok()
    };
    let with = |from: usize| begun.iter().filter(|_| from == 0).chain(&body[from..]).cloned().collect::<Vec<_>>();
    (0..=body.len().min(PLACES)).map(with).find(fits).map(|body| Program { body })
}

/// The computation of a task, the mean of all, in ns.
fn cost_ns(body: &[Statement], tasks: u32) -> f64 {
    let of = |statement: &Statement| match statement {
        Statement::Compute { ns, .. } | Statement::Hold { ns } => *ns as f64,
        Statement::Repeat { times, body } => *times as f64 * cost_ns(body, tasks),
        Statement::On { who, body } => {
            let count = match *who {
                Who::Range(first, last) => (last.min(tasks.saturating_sub(1)) + 1).saturating_sub(first),
                Who::Even => tasks.div_ceil(2),
                Who::Odd => tasks / 2,
                Who::Last => 1,
            };
            f64::from(count) / f64::from(tasks.max(1)) * cost_ns(body, tasks)
        }
        _ => 0.0,
    };
    body.iter().map(of).sum()
}
