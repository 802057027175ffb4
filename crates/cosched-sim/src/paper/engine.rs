//! The event loop.

use super::books::{self, ARRIVES, Counted, broken, key};
use super::keys::Keys;
use super::node::{Node, Process, Task};
use super::short::PLACES_MAX;
use super::site::{Live, Shared, Site};
use super::tree::NEVER;
use crate::error::SimError;
use crate::job::{JobSpec, Shape};
use crate::observe::{JobChange, Observer};
use crate::outcome::{JobTimes, Outcome, Progress};
use crate::params::Params;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

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

pub(super) struct Engine<'a, O, const W: u8, const A: u8> {
    pub(super) all: Shared<'a, O>,
    pub(super) shapes: Vec<Shape>,
    /// The number of places on a node.
    pub(super) places: usize,
    pub(super) nodes: Vec<Node>,
    /// The places of all nodes, node by node.
    pub(super) processes: Vec<Process>,
    pub(super) tasks: Vec<Task>,
    pub(super) keys: Keys,
    pub(super) in_window: bool,
    /// The next nodes while nodes are processed in one order; kept to reuse its memory.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    /// A job has ended while nodes were not processed in one order, which must not happen.
    pub(super) out_of_order: bool,
    /// How long nodes cannot affect each other.
    look_ahead_ns: u64,
    /// The number of arrivals and ends of jobs so far.
    pub(super) changes: u64,
    /// Iterations that were skipped, not simulated (sampled mode).
    pub(super) skipped: u64,
    watch_at: u64,
    /// Jobs in the order of their arrivals.
    pub(super) order: Vec<u32>,
    pub(super) arrived: usize,
    pub(super) queue: VecDeque<u32>,
    pub(super) finished: usize,
    /// The number of free places of all nodes.
    pub(super) free_places: u64,
    free_since_ns: u64,
    sent: u64,
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
        let iterations = shapes.iter().zip(jobs).map(|(shape, job)| shape.iterations * u64::from(job.tasks));
        let all = Shared {
            params: *params,
            jobs,
            observer,
            quanta_ns: std::array::from_fn(|level| ((200 * 59 - 180 * level as u64) * 2_000_000 + 59) / (2 * 59)),
            now: 0,
            live: vec![Live::default(); jobs.len()],
            ending: Vec::new(),
            ended: None,
            outbox: Vec::new(),
            drawn_ns: 0,
            out: Outcome { jobs: vec![JobTimes::default(); jobs.len()], ..Outcome::default() },
        };
        Ok(Engine {
            task_iterations_all: iterations.sum(),
            all,
            shapes,
            places,
            nodes: vec![Node::new(); nodes],
            processes: vec![Process::free(); nodes * places],
            tasks: vec![Task::none(); nodes * places],
            keys: Keys::new(nodes),
            in_window: false,
            next: BinaryHeap::new(),
            out_of_order: false,
            changes: 0,
            skipped: 0,
            watch_at: WATCH_EVENTS,
            look_ahead_ns: params.send_ns + params.wire_ns + params.receive_ns,
            order,
            arrived: 0,
            queue: VecDeque::new(),
            finished: 0,
            free_places: nodes as u64 * places as u64,
            free_since_ns: 0,
            sent: 0,
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
        let limit = limit.min(key(books::end_ns(&self.all.params), 7) + 1);
        let changes = self.changes;
        while self.finished < self.order.len() {
            if to_change && self.changes != changes {
                return Ok(Why::Change);
            }
            let arrival =
                self.order.get(self.arrived).map_or(NEVER, |j| key(self.all.jobs[*j as usize].arrival_ns, ARRIVES));
            let first = self.keys.first();
            if first.min(arrival) >= limit {
                return Ok(Why::Limit);
            }
            if arrival < first {
                self.all.now = arrival;
                self.all.out.events += 1;
                self.arrival(arrival >> 3);
            } else {
                let end_ns = (first >> 3) + self.look_ahead_ns;
                self.windows(first >> 3, key(end_ns, 0).min(arrival).min(limit));
            }
            if self.all.out.events >= self.watch_at {
                self.watch_at = self.all.out.events + WATCH_EVENTS;
                if !watch(self.progress()) {
                    return Err(SimError::Stopped);
                }
            }
        }
        Ok(Why::Done)
    }

    /// Processes all nodes up to a time before which no message that is sent from `from_ns` on is delivered: it takes at least
    /// the time in both interfaces and on the wire. Only the end of a job reaches other nodes at once; so nodes are processed
    /// in one order from the first time at which a job may end.
    fn windows(&mut self, from_ns: u64, limit: u64) {
        match self.may_end(from_ns, limit >> 3) {
            None => self.window(limit),
            Some(end_ns) if end_ns > from_ns => self.window(key(end_ns, 0)),
            Some(_) => self.ordered_window(limit),
        }
        self.post();
    }

    /// Processes every node by itself; no job ends.
    fn window(&mut self, limit: u64) {
        self.in_window = true;
        let mut next = 0;
        while let Some((block, nodes)) = self.keys.due(next, limit) {
            let mut first = NEVER;
            for node in nodes {
                let mut key = self.keys.get(node);
                while key < limit {
                    key = self.event(node, key);
                    self.keys.put(node, key);
                }
                first = first.min(key);
            }
            self.keys.set_first(block, first);
            next = block + 1;
        }
        self.in_window = false;
    }

    /// The same with all events in one order, up to the end of a job, which changes other nodes at once.
    fn ordered_window(&mut self, limit: u64) {
        let changes = self.changes;
        let mut next = std::mem::take(&mut self.next);
        let mut block = 0;
        while let Some((found, nodes)) = self.keys.due(block, limit) {
            next.extend(nodes.map(|n| (self.keys.get(n), n as u32)).filter(|(key, _)| *key < limit).map(Reverse));
            block = found + 1;
        }
        while let Some(Reverse((_, node))) = next.pop() {
            let key = self.ordered_event(node as usize);
            self.keys.set(node as usize, key);
            if self.changes != changes {
                break;
            }
            if key < limit {
                next.push(Reverse((key, node)));
            }
        }
        next.clear();
        self.next = next;
        let mut block = 0;
        while let Some((found, _)) = self.keys.due(block, limit) {
            self.keys.find_first(found);
            block = found + 1;
        }
    }

    #[inline(always)]
    pub(super) fn site(&mut self, n: usize) -> Site<'_, 'a, O, W, A> {
        let places = n * self.places..(n + 1) * self.places;
        Site {
            n: n as u32,
            node: &mut self.nodes[n],
            processes: &mut self.processes[places.clone()],
            tasks: &mut self.tasks[places],
            all: &mut self.all,
        }
    }

    /// A node does what is due at this key; returns its next one.
    #[inline(always)]
    fn event(&mut self, n: usize, event: u64) -> u64 {
        let mut site = self.site(n);
        site.event(event);
        if site.all.ended.is_some() {
            self.ended(n, event >> 3);
            site = self.site(n);
        }
        let next = site.next_key(event >> 3);
        if site.all.params.check_invariants {
            site.check();
        }
        next
    }

    #[inline(never)]
    fn ordered_event(&mut self, n: usize) -> u64 {
        self.event(n, self.keys.get(n))
    }

    /// Jobs end; then this node's CPU is given to a process: a job that starts here finds the CPU taken.
    #[cold]
    fn ended(&mut self, n: usize, time_ns: u64) {
        while let Some(job) = self.all.ended.take() {
            self.end(job, time_ns);
            self.site(n).start_cpu(time_ns);
        }
    }

    pub(super) fn update(&mut self, n: usize, time_ns: u64) {
        let key = self.site(n).next_key(time_ns);
        self.keys.set(n, key);
    }

    /// Messages come to their receivers' nodes. If others are delayed by one, their check will be in vain.
    fn post(&mut self) {
        let mut outbox = std::mem::take(&mut self.all.outbox);
        self.sent += outbox.len() as u64;
        for (n, message) in &outbox {
            let n = *n as usize;
            let watch = self.site(n).insert(*message);
            if watch < self.keys.get(n) {
                self.keys.set(n, watch);
            }
        }
        outbox.clear();
        self.all.outbox = outbox;
    }

    pub(super) fn progress(&self) -> Progress {
        Progress {
            time_ns: self.all.now >> 3,
            events: self.all.out.events,
            task_iterations: (self.all.out.task_iterations + self.skipped, self.task_iterations_all),
            jobs: (self.finished as u64, self.order.len() as u64),
        }
    }

    fn arrival(&mut self, time_ns: u64) {
        let job = self.order[self.arrived];
        self.arrived += 1;
        self.changes += 1;
        self.count_free(time_ns);
        self.queue.push_back(job);
        if O::TELL {
            self.all.observer.job(time_ns, job, JobChange::Arrived, &[], None);
        }
        self.admit(time_ns);
    }

    /// Accounts for free places while jobs wait, up to now; to be called before either changes.
    pub(super) fn count_free(&mut self, time_ns: u64) {
        if !self.queue.is_empty() {
            let since = time_ns - self.free_since_ns;
            self.all.out.free_while_waiting_ns += u128::from(self.free_places) * u128::from(since);
        }
        self.free_since_ns = time_ns;
    }

    /// Closes the accounts.
    pub(super) fn finish(mut self) -> Result<Outcome, SimError> {
        let end_ns = books::stopped_ns(&self.all.out, &self.all.params);
        self.all.out.sim_end_ns = end_ns;
        self.count_free(end_ns);
        for n in 0..self.nodes.len() {
            self.site(n).cut(end_ns);
        }
        if self.out_of_order {
            return Err(broken("a job ended too early for the order of events"));
        }
        let iteration = |(n, p): &(u32, u8)| self.tasks[*n as usize * self.places + *p as usize].iteration;
        let done = |job: usize| self.all.live[job].at.iter().map(iteration).sum();
        let counted = Counted { drawn_ns: self.all.drawn_ns, sent: self.sent, skipped: self.skipped };
        books::close(self.all.out, &self.all.params, (self.all.jobs, &self.shapes), &counted, done)
    }
}
