//! Gang scheduling in the paper's model (D17): rows of the matrix take turns, and in its row a gang has its CPUs alone.
//!
//! So between two switches nothing can disturb a task's iteration: when its messages have arrived, computation, I/O and
//! the next sends are known at once. One event per iteration is left: the time at which both messages are there; and
//! between switches even these need not be ordered (`ahead.rs`).
//! Switches stop and resume whole rows. Network interfaces are shared by the rows, and are simulated exactly.

mod ahead;
mod books;
mod jump;
mod rows;
mod task;

use super::books::{ARRIVES, TURNS, key};
use super::engine::{WATCH_EVENTS, Why};
use super::tree::{NEVER, Tree};
use crate::error::SimError;
use crate::job::{JobSpec, Shape};
use crate::observe::{JobChange, Observer};
use crate::outcome::{JobTimes, Outcome, Progress};
use crate::params::Params;
use cosched_core::{JobId, Matrix, Node as CoreNode, NodeId, Packing};
use std::collections::VecDeque;
use task::{Inbox, Task};

const NONE: u32 = u32::MAX;

/// A job in the matrix.
#[derive(Clone, Debug, Default)]
struct Live {
    row: usize,
    columns: Vec<u32>,
    alive: u32,
    /// The iteration before which its tasks wait for each other, to be computed ahead together, and how many wait.
    cut: u64,
    held: u32,
}

pub(super) struct Gangs<'a, O> {
    params: Params,
    jobs: &'a [JobSpec],
    shapes: Vec<Shape>,
    observer: &'a mut O,
    matrix: Matrix,
    rows_max: usize,
    row: usize,
    /// A switch to `row` is in progress.
    switching: bool,
    /// When the quantum or the switch ends.
    turn_ns: u64,
    /// Until then it is certain that the row is current.
    until_ns: u64,
    /// Up to this time jobs may be computed ahead; `limit` is the key at which the caller wants to see the present
    /// state.
    limit: u64,
    /// Jobs some of whose tasks are held.
    holding: Vec<u32>,
    lanes: ahead::Lanes,
    /// One task per cell: node by node, row by row.
    tasks: Vec<Task>,
    inboxes: Vec<Inbox>,
    tree: Tree,
    order: Vec<u32>,
    arrived: usize,
    queue: VecDeque<u32>,
    live: Vec<Live>,
    finished: usize,
    free_cells: u64,
    free_since_ns: u64,
    drawn_ns: u64,
    sent: u64,
    now: u64,
    /// The number of arrivals and ends of jobs so far.
    changes: u64,
    /// Iterations that were skipped, not simulated (sampled mode).
    skipped: u64,
    out: Outcome,
    task_iterations_all: u64,
    watch_at: u64,
}

impl<'a, O: Observer> Gangs<'a, O> {
    pub(super) fn new(params: &Params, jobs: &'a [JobSpec], observer: &'a mut O) -> Result<Self, SimError> {
        super::check_jobs(params, jobs)?;
        let (nodes, rows_max) = (params.nodes as usize, (params.mpl as usize).min(jobs.len().max(1)));
        let mut order: Vec<u32> = (0..jobs.len() as u32).collect();
        order.sort_by_key(|job| jobs[*job as usize].arrival_ns);
        let shapes: Vec<Shape> = jobs.iter().map(|job| Shape::new(job, params)).collect();
        let all = shapes.iter().zip(jobs).map(|(shape, job)| shape.iterations * u64::from(job.tasks));
        Ok(Gangs {
            task_iterations_all: all.sum(),
            params: *params,
            jobs,
            shapes,
            observer,
            matrix: Matrix::new(&[CoreNode { id: NodeId(0), cpus: params.nodes }]),
            rows_max,
            row: 0,
            switching: false,
            turn_ns: NEVER,
            until_ns: 0,
            limit: NEVER,
            holding: Vec::new(),
            lanes: ahead::Lanes::default(),
            tasks: vec![Task::none(); nodes * rows_max],
            inboxes: vec![Inbox::new(); nodes],
            tree: Tree::new(nodes),
            order,
            arrived: 0,
            queue: VecDeque::new(),
            live: vec![Live::default(); jobs.len()],
            finished: 0,
            free_cells: nodes as u64 * rows_max as u64,
            free_since_ns: 0,
            drawn_ns: 0,
            sent: 0,
            now: 0,
            changes: 0,
            skipped: 0,
            out: Outcome { jobs: vec![JobTimes::default(); jobs.len()], ..Outcome::default() },
            watch_at: WATCH_EVENTS,
        })
    }

    pub(super) fn run(mut self, watch: &mut dyn FnMut(Progress) -> bool) -> Result<Outcome, SimError> {
        self.go(NEVER, false, watch)?;
        self.finish()
    }

    /// Like the other engine's.
    pub(super) fn go(
        &mut self,
        limit: u64,
        to_change: bool,
        watch: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Why, SimError> {
        self.limit = limit;
        let limit = limit.min(key(self.end_ns(), 7) + 1);
        let changes = self.changes;
        while self.finished < self.jobs.len() {
            if to_change && self.changes != changes {
                return Ok(Why::Change);
            }
            let arrival =
                self.order.get(self.arrived).map_or(NEVER, |j| key(self.jobs[*j as usize].arrival_ns, ARRIVES));
            let turn = key(self.turn_ns, TURNS);
            let (event, node) = self.tree.first();
            let first = event.min(arrival).min(turn);
            if !self.holding.is_empty() && (first == turn || first >= limit) {
                self.release_all();
                continue;
            }
            if first >= limit {
                return Ok(Why::Limit);
            }
            self.now = first;
            self.out.events += 1;
            if first == event {
                self.complete(node as usize, event >> 3);
            } else if first == arrival {
                self.arrival(arrival >> 3);
            } else {
                self.turn(turn >> 3);
            }
            if self.out.events >= self.watch_at {
                self.watch_at = self.out.events + WATCH_EVENTS;
                if !watch(self.progress()) {
                    return Err(SimError::Stopped);
                }
            }
        }
        Ok(Why::Done)
    }

    fn end_ns(&self) -> u64 {
        super::books::end_ns(&self.params)
    }

    pub(super) fn progress(&self) -> Progress {
        Progress {
            time_ns: self.now >> 3,
            events: self.out.events,
            task_iterations: (self.out.task_iterations + self.skipped, self.task_iterations_all),
            jobs: (self.finished as u64, self.jobs.len() as u64),
        }
    }

    fn arrival(&mut self, t: u64) {
        let job = self.order[self.arrived];
        self.arrived += 1;
        self.changes += 1;
        self.count_free(t);
        self.queue.push_back(job);
        if O::TELL {
            self.observer.job(t, job, JobChange::Arrived, &[], None);
        }
        self.admit(t);
    }

    /// First come, first served: into the lowest row with room, the lowest free columns.
    fn admit(&mut self, t: u64) {
        while let Some(job) = self.queue.front().copied() {
            let id = JobId(job.into());
            let Some(place) =
                self.matrix.insert_within(self.rows_max, id, self.jobs[job as usize].tasks, Packing::FirstFit)
            else {
                return;
            };
            self.queue.pop_front();
            let tasks = place.columns.len();
            self.free_cells -= tasks as u64;
            self.out.jobs[job as usize].start_ns = Some(t);
            if O::TELL {
                self.observer.job(t, job, JobChange::Started, &place.columns, Some(place.row as u32));
            }
            let live = Live { row: place.row, columns: place.columns, alive: tasks as u32, cut: 1, held: 0 };
            self.settle(job, &live);
            let columns = live.columns.clone();
            self.live[job as usize] = live;
            if self.turn_ns == NEVER {
                self.begin_quantum(place.row, t);
            } else if place.row == self.row && !self.switching {
                columns.iter().for_each(|n| self.go_on(*n as usize, t));
            }
        }
    }

    /// The last task of a job has ended (D25).
    fn end(&mut self, job: u32, t: u64) {
        self.count_free(t);
        let live = std::mem::take(&mut self.live[job as usize]);
        for n in &live.columns {
            self.tasks[*n as usize * self.rows_max + live.row] = Task::none();
        }
        self.matrix.remove(JobId(job.into()));
        self.free_cells += live.columns.len() as u64;
        self.finished += 1;
        self.changes += 1;
        self.out.jobs[job as usize].finish_ns = Some(t);
        if O::TELL {
            self.observer.job(t, job, JobChange::Finished, &live.columns, Some(live.row as u32));
        }
        if self.free_cells == self.inboxes.len() as u64 * self.rows_max as u64 {
            self.turn_ns = NEVER;
        }
        self.admit(t);
    }
}
