//! What happened in a simulation, as the page draws it.

use cosched_sim::{Activity, JobChange, Message, Observer, Outcome, Slice};
use serde::Serialize;

/// A job's moments.
#[derive(Clone, Default, Serialize)]
struct Job {
    start_ms: Option<f64>,
    finish_ms: Option<f64>,
    /// The CPU of each task.
    nodes: Vec<u32>,
}

/// A run.
#[derive(Serialize)]
pub(crate) struct Picture {
    end_ms: f64,
    jobs: Vec<Job>,
    /// Node, begin, end, activity, job and task, or -1: in the order of their ends. More than a page can draw are left out.
    slices: Vec<(u32, f64, f64, u8, i64, i64)>,
    /// When which row became current.
    rows: Vec<(f64, u32)>,
    is_cut: bool,
    /// How the CPU time was spent, in the order of the activities; the last is nothing.
    cpu: [f64; 7],
    context_switches: u64,
}

const SLICES_MAX: usize = 400_000;

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The page knows activities by number: those below 6 have the CPU.
fn number(activity: Activity) -> u8 {
    match activity {
        Activity::Compute => 0,
        Activity::Message => 1,
        Activity::Spin => 2,
        Activity::Switch => 3,
        Activity::Interrupt => 4,
        Activity::Scheduler => 5,
        Activity::Io => 6,
        Activity::Blocked => 7,
    }
}

impl Picture {
    pub(crate) fn new(jobs: usize) -> Picture {
        let jobs = vec![Job::default(); jobs];
        Picture {
            end_ms: 0.0,
            jobs,
            slices: Vec::new(),
            rows: Vec::new(),
            is_cut: false,
            cpu: [0.0; 7],
            context_switches: 0,
        }
    }

    pub(crate) fn with(self, outcome: &Outcome) -> Picture {
        let cpu = &outcome.cpu;
        let spent =
            [cpu.compute_ns, cpu.message_ns, cpu.spin_ns, cpu.switch_ns, cpu.interrupt_ns, cpu.sched_ns, cpu.idle_ns];
        let all: u64 = spent.iter().sum();
        Picture {
            end_ms: ms(outcome.sim_end_ns),
            cpu: spent.map(|ns| ns as f64 / all.max(1) as f64),
            context_switches: outcome.context_switches,
            ..self
        }
    }
}

impl Observer for Picture {
    fn slice(&mut self, slice: Slice) {
        self.is_cut |= self.slices.len() == SLICES_MAX;
        if !self.is_cut {
            let (job, task) = slice.process.map_or((-1, -1), |(job, task)| (job.into(), task.into()));
            let (begin, end) = (ms(slice.start_ns), ms(slice.end_ns));
            self.slices.push((slice.node, begin, end, number(slice.activity), job, task));
        }
    }

    fn message(&mut self, _: Message) {}

    fn job(&mut self, time_ns: u64, job: u32, change: JobChange, nodes: &[u32], _: Option<u32>) {
        let job = &mut self.jobs[job as usize];
        match change {
            JobChange::Arrived => {}
            JobChange::Started => (job.start_ms, job.nodes) = (Some(ms(time_ns)), nodes.to_vec()),
            JobChange::Finished => job.finish_ms = Some(ms(time_ns)),
        }
    }

    fn row(&mut self, time_ns: u64, row: u32) {
        self.rows.push((ms(time_ns), row));
    }
}
