//! The event loop.

use super::books::{self, ARRIVES, CPU_ENDS, Counted, DELIVERED, IO_ENDS, TICK, broken, key};
use super::node::{Cpu, NO_PROCESS, Node, Process, State};
use super::short::PLACES_MAX;
use super::tree::NEVER;
use crate::error::SimError;
use crate::job::{JobSpec, Shape};
use crate::observe::{JobChange, Observer};
use crate::outcome::{JobTimes, Outcome, Progress};
use crate::params::Params;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The number of nodes whose first key is stored together: sleeping nodes are skipped in blocks.
const BLOCK_NODES: usize = 32;

/// The number of events between two progress reports.
pub(super) const WATCH_EVENTS: u64 = 1 << 20;

/// Why a simulation paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// All jobs have ended.
    Done,
    /// The limit was reached.
    Limit,
    /// A job has arrived, started or ended.
    Change,
}

/// A running job.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    /// Its tasks' nodes and their places there.
    pub(super) at: Vec<(u32, u8)>,
    /// Tasks that have not ended.
    pub(super) alive: u32,
    /// Tasks that are not near their end.
    pub(super) far: u32,
    /// The task that was last found to end too late for a window.
    pub(super) late: usize,
}

pub(super) struct Engine<'a, O, const W: u8, const A: u8> {
    pub(super) params: Params,
    pub(super) jobs: &'a [JobSpec],
    pub(super) shapes: Vec<Shape>,
    pub(super) observer: &'a mut O,
    pub(super) quanta_ns: [u64; 60],
    /// The number of places on a node.
    pub(super) places: usize,
    pub(super) nodes: Vec<Node>,
    /// The places of all nodes, node by node.
    pub(super) processes: Vec<Process>,
    /// When each node next does something that matters: time · 8 + kind.
    pub(super) keys: Vec<u64>,
    /// For each block of nodes the minimum of its keys, or less.
    pub(super) firsts: Vec<u64>,
    /// Jobs all of whose tasks are near their end.
    pub(super) ending: Vec<u32>,
    pub(super) in_window: bool,
    /// The next nodes while nodes are processed in one order; kept to reuse its memory.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    /// A job has ended while nodes were not processed in one order, which must not happen.
    pub(super) out_of_order: bool,
    /// How long nodes cannot affect each other, as a difference of keys.
    look_ahead: u64,
    /// The number of arrivals and ends of jobs so far.
    pub(super) changes: u64,
    /// Iterations that were skipped, not simulated (sampled mode).
    pub(super) skipped: u64,
    watch_at: u64,
    /// Key of the event in progress.
    pub(super) now: u64,
    /// Jobs in the order of their arrivals.
    pub(super) order: Vec<u32>,
    pub(super) arrived: usize,
    pub(super) queue: VecDeque<u32>,
    pub(super) live: Vec<Live>,
    pub(super) finished: usize,
    /// The number of free places of all nodes.
    pub(super) free_places: u64,
    free_since_ns: u64,
    /// The total of all computation that was drawn, to compare with what was done.
    pub(super) drawn_ns: u64,
    pub(super) sent: u64,
    pub(super) out: Outcome,
    task_iterations_all: u64,
}

impl<'a, O: Observer, const W: u8, const A: u8> Engine<'a, O, W, A> {
    pub(super) fn new(params: &Params, jobs: &'a [JobSpec], observer: &'a mut O) -> Result<Self, SimError> {
        super::check_jobs(params, jobs)?;
        let places = (params.mpl as usize).min(jobs.len().max(1)).min(PLACES_MAX);
        let nodes = params.nodes as usize;
        let mut order: Vec<u32> = (0..jobs.len() as u32).collect();
        order.sort_by_key(|job| jobs[*job as usize].arrival_ns);
        let shapes: Vec<Shape> = jobs.iter().map(|job| Shape::new(job, params)).collect();
        let all = shapes.iter().zip(jobs).map(|(shape, job)| shape.iterations * u64::from(job.tasks));
        Ok(Engine {
            task_iterations_all: all.sum(),
            params: *params,
            jobs,
            shapes,
            observer,
            quanta_ns: std::array::from_fn(|level| ((200 * 59 - 180 * level as u64) * 2_000_000 + 59) / (2 * 59)),
            places,
            nodes: vec![Node::new(); nodes],
            processes: vec![Process::free(); nodes * places],
            keys: vec![NEVER; nodes],
            firsts: vec![NEVER; nodes.div_ceil(BLOCK_NODES)],
            ending: Vec::new(),
            in_window: false,
            next: BinaryHeap::new(),
            out_of_order: false,
            changes: 0,
            skipped: 0,
            watch_at: WATCH_EVENTS,
            look_ahead: (params.send_ns + params.wire_ns) << 3,
            now: 0,
            order,
            arrived: 0,
            queue: VecDeque::new(),
            live: vec![Live::default(); jobs.len()],
            finished: 0,
            free_places: nodes as u64 * places as u64,
            free_since_ns: 0,
            drawn_ns: 0,
            sent: 0,
            out: Outcome { jobs: vec![JobTimes::default(); jobs.len()], ..Outcome::default() },
        })
    }

    pub(super) fn run(mut self, watch: &mut dyn FnMut(Progress) -> bool) -> Result<Outcome, SimError> {
        self.go(NEVER, false, watch)?;
        self.finish()
    }

    /// Continues until all jobs have ended, the key `limit` or the end of the simulation is reached, or, if requested, a
    /// job has arrived, started or ended.
    pub(super) fn go(
        &mut self,
        limit: u64,
        to_change: bool,
        watch: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Why, SimError> {
        let limit = limit.min(key(books::end_ns(&self.params), 7) + 1);
        let changes = self.changes;
        while self.finished < self.jobs.len() {
            if to_change && self.changes != changes {
                return Ok(Why::Change);
            }
            let arrival =
                self.order.get(self.arrived).map_or(NEVER, |j| key(self.jobs[*j as usize].arrival_ns, ARRIVES));
            let first = self.firsts.iter().copied().min().unwrap_or(NEVER);
            if first.min(arrival) >= limit {
                return Ok(Why::Limit);
            }
            if arrival < first {
                self.now = arrival;
                self.out.events += 1;
                self.arrival(arrival >> 3);
            } else {
                let end = (first + self.look_ahead).min(arrival).min(limit);
                if self.may_end(first >> 3, end >> 3) { self.ordered_window(end) } else { self.window(end) }
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

    /// Processes every node by itself up to a time before which it cannot be affected by the others: a message takes at
    /// least the time in the sender's interface and on the wire. Only the end of a job reaches other nodes at once; here
    /// there is none.
    fn window(&mut self, limit: u64) {
        self.in_window = true;
        for block in 0..self.firsts.len() {
            if self.firsts[block] < limit {
                for node in self.nodes_of(block) {
                    while self.keys[node] < limit {
                        self.event(node);
                    }
                }
                self.find_first(block);
            }
        }
        self.in_window = false;
    }

    /// The same with all events in one order, up to the end of a job, which changes other nodes at once.
    fn ordered_window(&mut self, limit: u64) {
        let changes = self.changes;
        let mut next = std::mem::take(&mut self.next);
        next.clear();
        let soon = self.keys.iter().enumerate().filter(|(_, key)| **key < limit);
        next.extend(soon.map(|(node, key)| Reverse((*key, node as u32))));
        while let Some(Reverse((_, node))) = next.pop() {
            self.event(node as usize);
            if self.changes != changes {
                break;
            }
            let key = self.keys[node as usize];
            if key < limit {
                next.push(Reverse((key, node)));
            }
        }
        self.next = next;
        (0..self.firsts.len()).for_each(|block| self.find_first(block));
    }

    fn nodes_of(&self, block: usize) -> std::ops::Range<usize> {
        block * BLOCK_NODES..((block + 1) * BLOCK_NODES).min(self.keys.len())
    }

    fn find_first(&mut self, block: usize) {
        self.firsts[block] = self.keys[self.nodes_of(block)].iter().copied().min().unwrap_or(NEVER);
    }

    /// The node does what is due at this key.
    #[inline]
    pub(super) fn set_key(&mut self, n: usize, key: u64) {
        self.keys[n] = key;
        let first = &mut self.firsts[n / BLOCK_NODES];
        *first = key.min(*first);
    }

    pub(super) fn progress(&self) -> Progress {
        Progress {
            time_ns: self.now >> 3,
            events: self.out.events,
            task_iterations: (self.out.task_iterations + self.skipped, self.task_iterations_all),
            jobs: (self.finished as u64, self.jobs.len() as u64),
        }
    }

    fn arrival(&mut self, time_ns: u64) {
        let job = self.order[self.arrived];
        self.arrived += 1;
        self.changes += 1;
        self.count_free(time_ns);
        self.queue.push_back(job);
        if O::TELL {
            self.observer.job(time_ns, job, JobChange::Arrived, &[], None);
        }
        self.admit(time_ns);
    }

    #[inline]
    fn event(&mut self, node: usize) {
        let event = self.keys[node];
        let time_ns = event >> 3;
        self.now = event;
        self.out.events += 1;
        self.drain(node);
        match event & 7 {
            TICK => self.tick(node, time_ns),
            IO_ENDS => {
                self.io_ends(node);
                self.start_cpu(node, time_ns);
            }
            DELIVERED => self.delivery(node, time_ns),
            _ if self.nodes[node].cpu_end_ns == time_ns => self.cpu_ends(node, time_ns),
            _ => self.start_cpu_again(node, time_ns),
        }
        self.update(node, time_ns);
        if self.params.check_invariants {
            self.check(node);
        }
    }

    /// When the node next does something that matters.
    #[inline]
    pub(super) fn update(&mut self, n: usize, time_ns: u64) {
        let node = &self.nodes[n];
        let io = if node.cpu == Cpu::Idle { key(node.io_end_ns, IO_ENDS) } else { NEVER };
        let first = key(node.cpu_end_ns, CPU_ENDS).min(io).min(self.watch_key(n));
        let first = first.min(key(self.next_tick(n, time_ns, first >> 3), TICK));
        self.set_key(n, first);
    }

    /// Accounts for free places while jobs wait, up to now; to be called before either changes.
    pub(super) fn count_free(&mut self, time_ns: u64) {
        if !self.queue.is_empty() {
            let since = time_ns - self.free_since_ns;
            self.out.free_while_waiting_ns += u128::from(self.free_places) * u128::from(since);
        }
        self.free_since_ns = time_ns;
    }

    /// Closes the accounts.
    pub(super) fn finish(mut self) -> Result<Outcome, SimError> {
        let end_ns = books::stopped_ns(&self.out, &self.params);
        self.out.sim_end_ns = end_ns;
        self.count_free(end_ns);
        for n in 0..self.nodes.len() {
            self.cut(n, end_ns);
        }
        if self.out_of_order {
            return Err(broken("a job ended too early for the order of events"));
        }
        let iteration = |(n, p): &(u32, u8)| self.processes[*n as usize * self.places + *p as usize].iteration;
        let done = |job: usize| self.live[job].at.iter().map(iteration).sum();
        let counted = Counted { drawn_ns: self.drawn_ns, sent: self.sent, skipped: self.skipped };
        books::close(self.out, &self.params, (self.jobs, &self.shapes), &counted, done)
    }

    /// Checks the state of a node after an event.
    fn check(&self, n: usize) {
        let node = &self.nodes[n];
        let of = |place: u8| &self.processes[n * self.places + place as usize];
        let ready = |place: &u8| node.ready.iter().filter(|p| *p == place).count();
        for place in node.table.iter() {
            let expected = usize::from(of(*place).state == State::Ready);
            assert_eq!(ready(place), expected, "node {n}, place {place}: {:?}", of(*place));
            assert_eq!(of(*place).state == State::Current, node.current == *place, "node {n}");
        }
        assert!(node.ready.windows(2).all(|w| of(w[0]).level >= of(w[1]).level), "node {n}: levels out of order");
        assert!(
            node.io.is_sorted_by_key(|p| of(*p).io_ns) && node.incoming.is_sorted_by_key(|m| m.reaches_ns),
            "node {n}"
        );
        assert_eq!(node.table.len(), node.count as usize);
        assert!(
            node.cpu != Cpu::Idle || (node.current == NO_PROCESS && node.ready.is_empty()),
            "node {n} idles with work"
        );
    }
}
