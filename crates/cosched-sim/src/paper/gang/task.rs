//! A task in its cell: its activities while its row is current, and its messages.

use super::super::books::{DELIVERED, IO_ENDS, key};
use super::super::queue::Queue;
use super::super::tree::NEVER;
use super::{Gangs, Live, NONE};
use crate::draw::{Draws, skewed_ns};
use crate::observe::{Activity, Message, Observer, Slice};

/// The progress of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It computes for another `ns` while its row is current; in the present window from `began_ns` on.
    Compute { ns: u64, began_ns: u64 },
    /// Its I/O lasts until then, whether its row is current or not.
    Io { end_ns: u64 },
    /// It has sent its messages and spins for those of its neighbours from then on, while its row is current.
    Wait { from_ns: u64 },
    /// It could have computed since then, but waits for its job's other tasks to be computed ahead with them.
    Held { ns: u64, since_ns: u64 },
    /// It has ended, or does not exist.
    Ended,
}

/// A cell.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) stage: Stage,
    pub(super) job: u32,
    task: u32,
    /// Nodes of the neighbours to the right and to the left, if any.
    pub(super) out: [u32; 2],
    pub(super) receives: u8,
    /// Messages in the endpoint, by side: left, right.
    got: [u32; 2],
    pub(super) io_ns: u64,
    pub(super) iteration: u64,
    pub(super) iterations: u64,
    pub(super) draws: Draws,
}

impl Task {
    pub(super) fn none() -> Task {
        Task {
            stage: Stage::Ended,
            job: NONE,
            task: 0,
            out: [NONE; 2],
            receives: 0,
            got: [0; 2],
            io_ns: 0,
            iteration: 0,
            iterations: 0,
            draws: Draws::new(0, 0, 0),
        }
    }
}

impl Task {
    /// Shifts its times.
    pub(super) fn later(&mut self, delta_ns: u64) {
        match &mut self.stage {
            Stage::Compute { began_ns: ns, .. }
            | Stage::Io { end_ns: ns }
            | Stage::Wait { from_ns: ns }
            | Stage::Held { since_ns: ns, .. } => *ns += delta_ns,
            Stage::Ended => {}
        }
    }
}

/// A message in transit, and its receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    delivered_ns: u64,
    pub(super) reaches_ns: u64,
    sent_ns: u64,
    row: u32,
    side: u8,
}

/// A node's network interface.
#[derive(Clone, Debug)]
pub(super) struct Inbox {
    pub(super) send_free_ns: u64,
    pub(super) receive_free_ns: u64,
    pub(super) incoming: Queue<Incoming>,
    /// When the first message of a held task would reach it: no other message may arrive after that.
    pub(super) barrier_ns: u64,
}

impl Inbox {
    pub(super) fn new() -> Inbox {
        Inbox { send_free_ns: 0, receive_free_ns: 0, incoming: Queue::default(), barrier_ns: NEVER }
    }

    /// Shifts its times.
    pub(super) fn later(&mut self, delta_ns: u64) {
        self.send_free_ns += delta_ns;
        self.receive_free_ns += delta_ns;
        for message in self.incoming.iter_mut() {
            message.delivered_ns += delta_ns;
            message.reaches_ns += delta_ns;
        }
    }
}

impl<O: Observer> Gangs<'_, O> {
    /// Creates the tasks of a new job; they do nothing yet.
    pub(super) fn settle(&mut self, job: u32, live: &Live) {
        let tasks = live.columns.len();
        for (task, n) in live.columns.iter().enumerate() {
            let (right, left) = (live.columns[(task + 1) % tasks], live.columns[(task + tasks - 1) % tasks]);
            let (out, receives) = match tasks {
                1 => ([NONE; 2], 0),
                2 => ([right, NONE], 1),
                _ => ([right, left], 2),
            };
            let cell = *n as usize * self.rows_max + live.row;
            self.tasks[cell] = Task {
                job,
                task: task as u32,
                out,
                receives,
                iterations: self.shapes[job as usize].iterations,
                draws: Draws::new(self.params.seed, job.into(), task as u64),
                ..Task::none()
            };
            self.begin_iteration(cell);
        }
    }

    fn begin_iteration(&mut self, cell: usize) {
        let skew = self.params.skew;
        let task = &mut self.tasks[cell];
        let shape = &self.shapes[task.job as usize];
        let (mut ns, mut io_ns) = (shape.compute_ns, shape.io_ns);
        if skew != 0.0 {
            let (u, v) = task.draws.pair(task.iteration);
            (ns, io_ns) = (skewed_ns(ns, skew, u), skewed_ns(io_ns, skew, v));
        }
        (task.stage, task.io_ns) = (Stage::Compute { ns, began_ns: 0 }, io_ns);
        self.drawn_ns += ns;
    }

    /// The task of the current row on node `n` continues at `t`: as far as is certain in this window.
    pub(super) fn go_on(&mut self, n: usize, t: u64) {
        let cell = n * self.rows_max + self.row;
        let task = &mut self.tasks[cell];
        if let Stage::Compute { ns, .. } = task.stage {
            let end = t + ns;
            if end > self.until_ns {
                // How much was done is known at the window's end.
                task.stage = Stage::Compute { ns, began_ns: t };
                self.tree.set(n, NEVER);
                return;
            }
            self.out.cpu.compute_ns += ns;
            task.stage = Stage::Io { end_ns: end + task.io_ns };
            if O::TELL {
                let io_ns = task.io_ns;
                self.tell(cell, t, end, Activity::Compute);
                self.tell(cell, end, end + io_ns, Activity::Io);
            }
        }
        let task = &mut self.tasks[cell];
        if let Stage::Io { end_ns } = task.stage {
            let from_ns = end_ns.max(t);
            if from_ns > self.until_ns {
                self.tree.set(n, NEVER);
                return;
            }
            task.stage = Stage::Wait { from_ns };
            let out = task.out;
            for (direction, to) in out.into_iter().enumerate().filter(|(_, to)| *to != NONE) {
                self.send(n, to as usize, direction as u8, from_ns);
            }
        } else if let Stage::Wait { from_ns } = &mut task.stage {
            *from_ns = (*from_ns).max(t);
        }
        self.expect(n);
    }

    /// The row of the task on node `n` is no longer current.
    pub(super) fn stop(&mut self, n: usize, t: u64) {
        let cell = n * self.rows_max + self.row;
        match &mut self.tasks[cell].stage {
            Stage::Compute { ns, began_ns } => {
                let began_ns = *began_ns;
                let ran = t - began_ns;
                *ns -= ran;
                self.out.cpu.compute_ns += ran;
                self.tell(cell, began_ns, t, Activity::Compute);
            }
            Stage::Wait { from_ns } => {
                let began_ns = *from_ns;
                let ran = t.saturating_sub(began_ns);
                *from_ns = t;
                self.out.cpu.spin_ns += ran;
                self.tell(cell, began_ns, t, Activity::Spin);
            }
            Stage::Io { .. } | Stage::Held { .. } | Stage::Ended => {}
        }
    }

    fn send(&mut self, n: usize, to: usize, direction: u8, sent_ns: u64) {
        let node = &mut self.inboxes[n];
        node.send_free_ns = node.send_free_ns.max(sent_ns) + self.params.send_ns;
        let reaches_ns = node.send_free_ns + self.params.wire_ns;
        self.sent += 1;
        if reaches_ns >= self.inboxes[to].barrier_ns {
            self.release(self.tasks[to * self.rows_max + self.row].job);
        }
        // A message sent to the right arrives from the left.
        let message = Incoming { delivered_ns: 0, reaches_ns, sent_ns, row: self.row as u32, side: direction };
        self.insert(to, message);
        if to != n {
            self.expect(to);
        }
    }

    fn insert(&mut self, n: usize, message: Incoming) {
        let receive_ns = self.params.receive_ns;
        let order = |m: &Incoming| {
            let task = &self.tasks[n * self.rows_max + m.row as usize];
            (task.job, task.task, self.sender(task, m.side))
        };
        let behind = |m: &Incoming| {
            m.reaches_ns > message.reaches_ns || (m.reaches_ns == message.reaches_ns && order(m) > order(&message))
        };
        let at = self.inboxes[n].incoming.iter().rposition(|m| !behind(m)).map_or(0, |i| i + 1);
        let inbox = &mut self.inboxes[n];
        inbox.incoming.insert(at, message);
        let mut free_ns = if at == 0 { inbox.receive_free_ns } else { inbox.incoming[at - 1].delivered_ns };
        for m in &mut inbox.incoming[at..] {
            free_ns = free_ns.max(m.reaches_ns) + receive_ns;
            m.delivered_ns = free_ns;
        }
    }

    fn sender(&self, task: &Task, side: u8) -> u32 {
        let tasks = self.jobs[task.job as usize].tasks;
        if side == 0 { (task.task + tasks - 1) % tasks } else { (task.task + 1) % tasks }
    }

    /// Computes when the task of the current row on node `n` has what it waits for.
    fn expect(&mut self, n: usize) {
        let task = &self.tasks[n * self.rows_max + self.row];
        let Stage::Wait { from_ns } = task.stage else {
            self.tree.set(n, NEVER);
            return;
        };
        let row = self.row as u32;
        let mut last_ns = 0;
        for side in 0..task.receives {
            if task.got[side as usize] > 0 {
                continue;
            }
            let Some(m) = self.inboxes[n].incoming.iter().find(|m| m.row == row && m.side == side) else {
                self.tree.set(n, NEVER);
                return;
            };
            last_ns = last_ns.max(m.delivered_ns);
        }
        let event = if last_ns >= from_ns { key(last_ns, DELIVERED) } else { key(from_ns, IO_ENDS) };
        self.tree.set(n, event);
    }

    /// The task of the current row on node `n` has its messages: its iteration is complete.
    pub(super) fn complete(&mut self, n: usize, t: u64) {
        self.drain(n, t);
        let cell = n * self.rows_max + self.row;
        let task = &mut self.tasks[cell];
        if let Stage::Wait { from_ns } = task.stage {
            self.out.cpu.spin_ns += t - from_ns;
            self.tell(cell, from_ns, t, Activity::Spin);
        }
        self.out.task_iterations += 1;
        let task = &mut self.tasks[cell];
        (0..task.receives as usize).for_each(|side| task.got[side] -= 1);
        task.iteration += 1;
        if task.iteration < task.iterations {
            let is_cut = !O::TELL && task.iteration == self.live[task.job as usize].cut;
            self.begin_iteration(cell);
            if is_cut {
                self.hold(n, t)
            } else {
                self.go_on(n, t)
            }
            return;
        }
        task.stage = Stage::Ended;
        let job = task.job;
        self.tree.set(n, NEVER);
        let live = &mut self.live[job as usize];
        live.alive -= 1;
        if live.alive == 0 {
            self.end(job, t);
        }
    }

    /// Deliveries up to `t`.
    pub(super) fn drain(&mut self, n: usize, t: u64) {
        while let Some(m) = self.inboxes[n].incoming.first().copied().filter(|m| m.delivered_ns <= t) {
            self.inboxes[n].incoming.pop();
            self.inboxes[n].receive_free_ns = m.delivered_ns;
            self.out.messages += 1;
            let cell = n * self.rows_max + m.row as usize;
            self.tasks[cell].got[m.side as usize] += 1;
            if O::TELL {
                let task = &self.tasks[cell];
                let from = self.sender(task, m.side);
                let from_node = self.live[task.job as usize].columns[from as usize];
                let to = (task.task, n as u32);
                let (job, sent_ns, delivered_ns) = (task.job, m.sent_ns, m.delivered_ns);
                self.observer.message(Message { job, from: (from, from_node), to, sent_ns, delivered_ns });
            }
        }
    }

    fn tell(&mut self, cell: usize, start_ns: u64, end_ns: u64, activity: Activity) {
        if O::TELL && start_ns < end_ns {
            let task = &self.tasks[cell];
            let node = (cell / self.rows_max) as u32;
            self.observer.slice(Slice { node, start_ns, end_ns, activity, process: Some((task.job, task.task)) });
        }
    }
}
