//! The arrival queue, placement, and the end of tasks and jobs (D7, D23, D25).

use super::engine::Engine;
use super::node::{Cpu, Incoming, LEVEL_MAX, NEAR_ALONE, NO_PROCESS, NONE, Phase, Process, State, Task};
use super::site::{Live, Shared};
use super::tree::NEVER;
use crate::draw::Draws;
use crate::observe::{JobChange, Observer};

impl<O: Observer, const W: u8, const A: u8> Engine<'_, O, W, A> {
    /// Starts jobs from the head of the queue as long as they fit. The account of free places must be up to date.
    pub(super) fn admit(&mut self, t: u64) {
        while let Some(job) = self.queue.front().copied() {
            let Some(chosen) = self.choose(self.all.jobs[job as usize].tasks as usize) else { return };
            self.queue.pop_front();
            self.start(job, &chosen, t);
        }
    }

    /// The nodes with the fewest processes, among equals those with the lowest numbers; in the order of their numbers.
    fn choose(&self, tasks: usize) -> Option<Vec<u32>> {
        let room = |(_, node): &(usize, &super::node::Node)| (node.count as usize) < self.places;
        let mut nodes: Vec<(u8, u32)> =
            self.nodes.iter().enumerate().filter(room).map(|(n, node)| (node.count, n as u32)).collect();
        if nodes.len() < tasks {
            return None;
        }
        if tasks < nodes.len() {
            nodes.select_nth_unstable(tasks);
            nodes.truncate(tasks);
        }
        let mut chosen: Vec<u32> = nodes.into_iter().map(|(_, n)| n).collect();
        chosen.sort_unstable();
        Some(chosen)
    }

    fn start(&mut self, job: u32, chosen: &[u32], t: u64) {
        let tasks = chosen.len();
        self.free_places -= tasks as u64;
        self.all.out.jobs[job as usize].start_ns = Some(t);
        if O::TELL {
            self.all.observer.job(t, job, JobChange::Started, chosen, None);
        }
        let place = |n: &u32| {
            let base = *n as usize * self.places;
            let free = (0..self.places).find(|p| self.processes[base + p].state == State::Free);
            (*n, free.map_or(NO_PROCESS, |p| p as u8))
        };
        let at: Vec<(u32, u8)> = chosen.iter().map(place).collect();
        for (task, (n, place)) in at.iter().copied().enumerate() {
            let right = at[(task + 1) % tasks];
            let left = at[(task + tasks - 1) % tasks];
            let none = (NONE, NO_PROCESS);
            let (out, receives) = match tasks {
                1 => ([none; 2], 0),
                2 => ([right, none], 1),
                _ => ([right, left], 2),
            };
            let shape = self.shapes[job as usize];
            let mut site = self.site(n as usize);
            site.processes[place as usize] =
                Process { job, receives, level: LEVEL_MAX, state: State::Ready, ..Process::free() };
            site.tasks[place as usize] = Task {
                task: task as u32,
                out,
                iteration: 0,
                iterations: shape.iterations,
                draws: Draws::new(site.all.params.seed, job.into(), task as u64),
                compute_ns: shape.compute_ns,
                io_ns: shape.io_ns,
            };
            site.begin_iteration(place);
        }
        let near = if tasks == 1 { NEAR_ALONE } else { 1 };
        let far = if self.shapes[job as usize].iterations > near { tasks as u32 } else { 0 };
        if far == 0 {
            self.all.ending.push(job);
        }
        self.all.live[job as usize] = Live { at: at.clone(), alive: tasks as u32, far, late: 0 };
        for (n, place) in &at {
            self.enter(*n as usize, *place, t);
        }
    }

    /// The earliest time, at most `limit_ns`, at which a job may end. A job cannot end before all its tasks can, and most often
    /// it is the same task as before that cannot.
    pub(super) fn may_end(&mut self, from_ns: u64, limit_ns: u64) -> Option<u64> {
        let mut first_ns = NEVER;
        for i in 0..self.all.ending.len() {
            let job = self.all.ending[i] as usize;
            let live = &self.all.live[job];
            let (mut end_ns, mut task) = (0, live.late);
            for _ in 0..live.at.len() {
                end_ns = end_ns.max(self.ends_ns(live.at[task], from_ns));
                if end_ns > limit_ns {
                    break;
                }
                task = if task + 1 < live.at.len() { task + 1 } else { 0 };
            }
            if end_ns > limit_ns {
                self.all.live[job].late = task;
            } else {
                first_ns = first_ns.min(end_ns);
            }
        }
        (first_ns != NEVER).then_some(first_ns)
    }

    /// A task that is near its end does not end before this time, as of `from_ns`.
    fn ends_ns(&self, (n, place): (u32, u8), from_ns: u64) -> u64 {
        let (n, node) = (n as usize, &self.nodes[n as usize]);
        let p = &self.processes[n * self.places + place as usize];
        let begins_ns = match (p.state, node.cpu) {
            (State::Exited, _) => return 0,
            (State::Current, Cpu::Run) => node.run_start_ns,
            (State::Current, Cpu::Switch | Cpu::Kernel) => node.cpu_end_ns,
            (State::Io, _) => p.io_ns,
            (State::Current, _) => from_ns,
            (_, _) if node.last_job == p.job => from_ns,
            (_, _) => from_ns + self.all.params.switch_ns,
        };
        match p.awaits() {
            _ if p.phase == Phase::Compute => begins_ns + p.left_ns + p.io_ns,
            Some(side) => {
                let awaited = |m: &&Incoming| m.to == place && m.side as usize == side;
                begins_ns.max(node.incoming.iter().find(awaited).map_or(NEVER, |m| m.delivered_ns))
            }
            None => begins_ns,
        }
    }

    /// A new process, at the tail of the highest level (D23).
    fn enter(&mut self, n: usize, place: u8, t: u64) {
        let mut site = self.site(n);
        site.drain();
        site.node.table.push(place);
        site.node.count += 1;
        site.append(place);
        if site.node.cpu == Cpu::Idle {
            site.start_cpu(t);
        }
        self.update(n, t);
    }

    /// The last task of a job has ended: its places become free.
    pub(super) fn end(&mut self, job: u32, t: u64) {
        // See `Engine::window`.
        self.out_of_order |= self.in_window;
        self.count_free(t);
        let at = std::mem::take(&mut self.all.live[job as usize].at);
        for (n, place) in &at {
            let (n, place) = (*n as usize, *place);
            self.processes[n * self.places + place as usize].state = State::Free;
            let node = &mut self.nodes[n];
            if let Some(at) = node.table.position(place) {
                node.table.remove(at);
            }
            node.count -= 1;
        }
        self.free_places += at.len() as u64;
        self.finished += 1;
        self.changes += 1;
        self.all.ending.retain(|other| *other != job);
        self.all.out.jobs[job as usize].finish_ns = Some(t);
        if O::TELL {
            let nodes: Vec<u32> = at.iter().map(|(n, _)| *n).collect();
            self.all.observer.job(t, job, JobChange::Finished, &nodes, None);
        }
        self.admit(t);
    }
}

impl<O> Shared<'_, O> {
    /// A task of this job has come near its end; after the last of them, the job may end at any time.
    pub(super) fn comes_near(&mut self, job: u32) {
        let live = &mut self.live[job as usize];
        live.far -= 1;
        if live.far == 0 {
            self.ending.push(job);
        }
    }

    /// The task from which a task receives on this side.
    pub(super) fn sender(&self, job: u32, task: u32, side: u8) -> u32 {
        let tasks = self.jobs[job as usize].tasks;
        if side == 0 { (task + tasks - 1) % tasks } else { (task + 1) % tasks }
    }
}
