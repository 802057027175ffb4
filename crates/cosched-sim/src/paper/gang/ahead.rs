//! Simulates whole jobs ahead.
//!
//! Problem: between two switches a task's iteration is known when its messages have arrived, but ordering these events costs far
//! more than the iteration. Rule: nothing outside a job can disturb it there, so once all its tasks are about to begin the same
//! iteration (the *cut*), iterations are computed task by task: the time of each task's messages determines when they reach its
//! neighbours' interfaces, and these times the start of its next iteration (recurrences in max and +).
//! This is valid while no message reaches an interface before those of the previous iteration have; where one would, at the end
//! of the quantum, and for the last iteration, the events take over at the cut. Tasks that reach it are held until the last one
//! has, unless the messages that they hold back would arrive before others.

use super::super::tree::NEVER;
use super::Gangs;
use super::task::Stage;
use crate::draw::{Draws, skewed_ns};
use crate::observe::Observer;

/// A task that is computed ahead, at the start of an iteration.
#[derive(Clone, Copy, Debug)]
struct Lane {
    draws: Draws,
    start_ns: u64,
    compute_ns: u64,
    io_ns: u64,
    /// When computation and I/O are done.
    ready_ns: u64,
    /// Until when the sender's side of its interface is busy before this iteration's messages, and with them.
    send_free_ns: u64,
    sent_ns: u64,
    /// Until when the receiver's side is busy before them.
    receive_free_ns: u64,
    /// When this iteration's messages reach it from the left and from the right; the same if there is only one.
    reaches_ns: [u64; 2],
}

impl Lane {
    /// Shifts its times.
    fn later(&mut self, delta_ns: u64) {
        for ns in [&mut self.start_ns, &mut self.ready_ns, &mut self.send_free_ns, &mut self.sent_ns] {
            *ns += delta_ns;
        }
        self.receive_free_ns += delta_ns;
        self.reaches_ns.iter_mut().for_each(|ns| *ns += delta_ns);
    }
}

/// The tasks of a job, in this iteration and in the next; kept to reuse the memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes {
    now: Vec<Lane>,
    next: Vec<Lane>,
}

impl Lanes {
    /// From one iteration to the next, all times increase by the same amount: if nothing is drawn, this repeats for ever.
    fn period_ns(&self) -> Option<u64> {
        let period_ns = self.next[0].start_ns - self.now[0].start_ns;
        let talks = self.now.len() > 1;
        let alike = |(now, next): (&Lane, &Lane)| {
            let interface = next.send_free_ns == now.send_free_ns + period_ns
                && next.receive_free_ns == now.receive_free_ns + period_ns;
            next.start_ns == now.start_ns + period_ns && (interface || !talks)
        };
        (period_ns > 0 && self.now.iter().zip(&self.next).all(alike)).then_some(period_ns)
    }
}

/// What an iteration of all tasks adds to the counters.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    compute_ns: u64,
    drawn_ns: u64,
    spin_ns: u64,
}

impl<O: Observer> Gangs<'_, O> {
    /// The job of the task on node `n` is to meet at its next iteration.
    pub(super) fn meet(&mut self, n: usize) {
        let task = &self.tasks[n * self.rows_max + self.row];
        if let Some(live) = self.live.get_mut(task.job as usize) {
            live.cut = live.cut.max(task.iteration + 1);
        }
    }

    /// The task on node `n` would begin its iteration at `t`, but waits for the others.
    pub(super) fn hold(&mut self, n: usize, t: u64) {
        self.tree.set(n, NEVER);
        let task = &mut self.tasks[n * self.rows_max + self.row];
        let Stage::Compute { ns, .. } = task.stage else { return };
        task.stage = Stage::Held { ns, since_ns: t };
        let (job, out, ready_ns) = (task.job, task.out, t + ns + task.io_ns);
        let live = &mut self.live[job as usize];
        live.held += 1;
        if live.held == 1 {
            self.holding.push(job);
        }
        let is_last = live.held as usize == live.columns.len();
        let mut sent_ns = self.inboxes[n].send_free_ns.max(ready_ns);
        for to in out.into_iter().take_while(|to| *to != super::NONE) {
            sent_ns += self.params.send_ns;
            let reaches_ns = sent_ns + self.params.wire_ns;
            let inbox = &mut self.inboxes[to as usize];
            inbox.barrier_ns = inbox.barrier_ns.min(reaches_ns);
            if inbox.incoming.last().is_some_and(|m| m.reaches_ns >= reaches_ns) {
                self.release(job);
                return;
            }
        }
        if is_last {
            self.go_ahead(job);
            self.release(job);
        }
    }

    pub(super) fn release_all(&mut self) {
        while let Some(job) = self.holding.last().copied() {
            self.release(job);
        }
    }

    /// Held tasks continue, event by event, and meet again later.
    pub(super) fn release(&mut self, job: u32) {
        self.holding.retain(|other| *other != job);
        let live = &mut self.live[job as usize];
        live.held = 0;
        live.cut += 2;
        let columns = std::mem::take(&mut live.columns);
        columns.iter().for_each(|n| self.inboxes[*n as usize].barrier_ns = NEVER);
        for n in &columns {
            let task = &mut self.tasks[*n as usize * self.rows_max + self.row];
            if let Stage::Held { ns, since_ns } = task.stage {
                task.stage = Stage::Compute { ns, began_ns: 0 };
                self.go_on(*n as usize, since_ns);
            }
        }
        self.live[job as usize].columns = columns;
    }

    /// All tasks of the job are at the cut: computes as many iterations as are certain, except the last one.
    fn go_ahead(&mut self, job: u32) {
        let columns = std::mem::take(&mut self.live[job as usize].columns);
        if columns.iter().all(|n| self.inboxes[*n as usize].incoming.is_empty()) {
            let mut lanes = std::mem::take(&mut self.lanes);
            self.load(&columns, &mut lanes);
            let first = &self.tasks[columns[0] as usize * self.rows_max + self.row];
            let (mut iteration, last) = (first.iteration, first.iterations - 1);
            while iteration < last {
                let Some(step) = self.step(job, iteration + 1, &mut lanes) else { break };
                let more = self.repeats(&lanes, last - iteration - 1);
                self.count(columns.len() as u64, step, 1 + more);
                std::mem::swap(&mut lanes.now, &mut lanes.next);
                if more > 0 {
                    let period_ns = lanes.now[0].start_ns - lanes.next[0].start_ns;
                    lanes.now.iter_mut().for_each(|lane| lane.later(more * period_ns));
                }
                iteration += 1 + more;
            }
            self.store(&columns, &lanes.now, iteration);
            self.live[job as usize].cut = iteration;
            self.lanes = lanes;
        }
        self.live[job as usize].columns = columns;
    }

    fn load(&self, columns: &[u32], lanes: &mut Lanes) {
        let lane = |n: &u32| {
            let (inbox, task) = (&self.inboxes[*n as usize], &self.tasks[*n as usize * self.rows_max + self.row]);
            let (compute_ns, start_ns) =
                if let Stage::Held { ns, since_ns } = task.stage { (ns, since_ns) } else { (0, 0) };
            Lane {
                draws: task.draws,
                start_ns,
                compute_ns,
                io_ns: task.io_ns,
                ready_ns: start_ns + compute_ns + task.io_ns,
                send_free_ns: inbox.send_free_ns,
                sent_ns: 0,
                receive_free_ns: inbox.receive_free_ns,
                reaches_ns: [0; 2],
            }
        };
        lanes.now.clear();
        lanes.now.extend(columns.iter().map(lane));
        self.post(&mut lanes.now);
        lanes.next.clone_from(&lanes.now);
    }

    /// Stores the state of the tasks at the start of this iteration.
    fn store(&mut self, columns: &[u32], lanes: &[Lane], iteration: u64) {
        for (n, lane) in columns.iter().zip(lanes) {
            let task = &mut self.tasks[*n as usize * self.rows_max + self.row];
            task.stage = Stage::Held { ns: lane.compute_ns, since_ns: lane.start_ns };
            (task.io_ns, task.iteration) = (lane.io_ns, iteration);
            if lanes.len() > 1 {
                let inbox = &mut self.inboxes[*n as usize];
                (inbox.send_free_ns, inbox.receive_free_ns) = (lane.send_free_ns, lane.receive_free_ns);
            }
        }
    }

    /// Sends the messages of an iteration: computes when they reach their receivers.
    fn post(&self, lanes: &mut [Lane]) {
        let (tasks, send_ns, wire_ns) = (lanes.len(), self.params.send_ns, self.params.wire_ns);
        for i in 0..if tasks > 1 { tasks } else { 0 } {
            let mut sent_ns = lanes[i].send_free_ns.max(lanes[i].ready_ns) + send_ns;
            let right = &mut lanes[if i + 1 < tasks { i + 1 } else { 0 }];
            right.reaches_ns[0] = sent_ns + wire_ns;
            if tasks == 2 {
                right.reaches_ns[1] = sent_ns + wire_ns;
            } else {
                sent_ns += send_ns;
                lanes[if i > 0 { i } else { tasks } - 1].reaches_ns[1] = sent_ns + wire_ns;
            }
            lanes[i].sent_ns = sent_ns;
        }
    }

    /// Completes an iteration of all tasks, and begins `iteration`. `None` if the row may stop before, or if a message of
    /// `iteration` would reach an interface too early.
    fn step(&self, job: u32, iteration: u64, lanes: &mut Lanes) -> Option<Step> {
        let shape = &self.shapes[job as usize];
        let (skew, receive_ns, tasks) = (self.params.skew, self.params.receive_ns, lanes.now.len());
        let (mut step, mut last_ns) = (Step::default(), 0);
        for (now, next) in lanes.now.iter().zip(&mut lanes.next) {
            let [left, right] = now.reaches_ns;
            let mut free_ns = now.receive_free_ns;
            if tasks > 1 {
                free_ns = free_ns.max(left.min(right)) + receive_ns;
            }
            if tasks > 2 {
                free_ns = free_ns.max(left.max(right)) + receive_ns;
            }
            let start_ns = if tasks > 1 { free_ns.max(now.ready_ns) } else { now.ready_ns };
            last_ns = last_ns.max(start_ns);
            (next.compute_ns, next.io_ns) = (shape.compute_ns, shape.io_ns);
            if skew != 0.0 {
                let (u, v) = now.draws.pair(iteration);
                (next.compute_ns, next.io_ns) = (skewed_ns(shape.compute_ns, skew, u), skewed_ns(shape.io_ns, skew, v));
            }
            (next.start_ns, next.ready_ns) = (start_ns, start_ns + next.compute_ns + next.io_ns);
            (next.send_free_ns, next.receive_free_ns) = (now.sent_ns, free_ns);
            step.compute_ns += now.compute_ns;
            step.drawn_ns += next.compute_ns;
            step.spin_ns += start_ns - now.ready_ns;
        }
        self.post(&mut lanes.next);
        let ordered = |(now, next): (&Lane, &Lane)| {
            let ([a, b], [c, d]) = (now.reaches_ns, next.reaches_ns);
            a.max(b) < c.min(d)
        };
        let is_certain = last_ns <= self.ahead_ns() && (tasks == 1 || lanes.now.iter().zip(&lanes.next).all(ordered));
        is_certain.then_some(step)
    }

    /// Up to this time jobs may be computed ahead.
    fn ahead_ns(&self) -> u64 {
        self.until_ns.min((self.limit - 1) >> 3)
    }

    /// How often the step can be repeated, at most `most` times.
    fn repeats(&self, lanes: &Lanes, most: u64) -> u64 {
        let period_ns = if self.params.skew == 0.0 { lanes.period_ns() } else { None };
        let Some(period_ns) = period_ns else { return 0 };
        let last_ns = lanes.next.iter().map(|lane| lane.start_ns).max().unwrap_or(NEVER);
        (self.ahead_ns().saturating_sub(last_ns) / period_ns).min(most)
    }

    fn count(&mut self, tasks: u64, step: Step, times: u64) {
        let messages = times * tasks * (tasks - 1).min(2);
        self.out.events += 1;
        self.out.task_iterations += times * tasks;
        self.out.messages += messages;
        self.sent += messages;
        self.out.cpu.compute_ns += times * step.compute_ns;
        self.out.cpu.spin_ns += times * step.spin_ns;
        self.drawn_ns += times * step.drawn_ns;
    }
}
