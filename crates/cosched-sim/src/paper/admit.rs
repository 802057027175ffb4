//! The arrival queue, placement, and the end of tasks and jobs (D7, D23, D25).

use super::engine::{Engine, Live};
use super::node::{Cpu, LEVEL_MAX, NO_PROCESS, NONE, Phase, Process, State};
use crate::draw::Draws;
use crate::observe::{JobChange, Observer};

impl<O: Observer, const W: u8, const A: u8> Engine<'_, O, W, A> {
    /// Starts jobs from the head of the queue as long as they fit. The account of free places must be up to date.
    pub(super) fn admit(&mut self, t: u64) {
        while let Some(job) = self.queue.front().copied() {
            let Some(chosen) = self.choose(self.jobs[job as usize].tasks as usize) else { return };
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
        self.out.jobs[job as usize].start_ns = Some(t);
        if O::TELL {
            self.observer.job(t, job, JobChange::Started, chosen, None);
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
            let nobody = (NONE, NO_PROCESS);
            let (out, receives) = match tasks {
                1 => ([nobody; 2], 0),
                2 => ([right, nobody], 1),
                _ => ([right, left], 2),
            };
            *self.process(n as usize, place) = Process {
                job,
                task: task as u32,
                out,
                receives,
                level: LEVEL_MAX,
                state: State::Ready,
                iterations: self.shapes[job as usize].iterations,
                draws: Draws::new(self.params.seed, job.into(), task as u64),
                ..Process::free()
            };
            self.begin_iteration(n as usize, place);
        }
        let (n, place) = at[0];
        let first = self.process(n as usize, place);
        let far = if first.iterations > first.near() { tasks as u32 } else { 0 };
        if far == 0 {
            self.ending.push(job);
        }
        self.live[job as usize] = Live { at: at.clone(), alive: tasks as u32, far, late: 0 };
        for (n, place) in &at {
            self.enter(*n as usize, *place, t);
        }
    }

    /// A task of this job has come near its end; after the last of them, the job may end at any time.
    pub(super) fn comes_near(&mut self, job: u32) {
        let live = &mut self.live[job as usize];
        live.far -= 1;
        if live.far == 0 {
            self.ending.push(job);
        }
    }

    /// Whether a job may end from `from_ns` to `limit_ns`: not if one of its tasks cannot, which is most often the same
    /// task as before.
    pub(super) fn may_end(&mut self, from_ns: u64, limit_ns: u64) -> bool {
        for job in &self.ending {
            let live = &self.live[*job as usize];
            let tasks = live.at.len();
            let late = (live.late..live.late + tasks).map(|i| if i < tasks { i } else { i - tasks });
            let Some(late) = late.into_iter().find(|i| self.is_late(live.at[*i], from_ns, limit_ns)) else {
                return true;
            };
            self.live[*job as usize].late = late;
        }
        false
    }

    /// Whether a task, near its end, cannot end before or at `limit_ns`, or needs the CPU for longer.
    fn is_late(&self, (n, place): (u32, u8), from_ns: u64, limit_ns: u64) -> bool {
        let (n, node) = (n as usize, &self.nodes[n as usize]);
        let p = &self.processes[n * self.places + place as usize];
        let begins_ns = match (p.state, node.cpu) {
            (State::Exited, _) => return false,
            (State::Current, Cpu::Run(_)) => node.run_start_ns,
            (State::Current, Cpu::Switch | Cpu::Kernel(_)) => node.cpu_end_ns,
            (State::Io, _) => p.io_ns,
            (State::Current, _) => from_ns,
            (_, _) if node.last_job == p.job => from_ns,
            (_, _) => from_ns + self.params.switch_ns,
        };
        let ends_ns = if p.phase == Phase::Compute { begins_ns + p.left_ns + p.io_ns } else { begins_ns };
        ends_ns > limit_ns
    }

    /// A new process, at the tail of the highest level (D23).
    fn enter(&mut self, n: usize, place: u8, t: u64) {
        self.drain(n);
        self.nodes[n].table.push(place);
        self.nodes[n].count += 1;
        self.append(n, place);
        if self.nodes[n].cpu == Cpu::Idle {
            self.start_cpu(n, t);
        }
        self.update(n, t);
    }

    /// The current process has ended; with the last process of its job, the job's places become free.
    pub(super) fn exit(&mut self, n: usize, place: u8, t: u64) {
        self.set_current(n, NO_PROCESS, t);
        let p = self.process(n, place);
        p.state = State::Exited;
        let job = p.job;
        let live = &mut self.live[job as usize];
        live.alive -= 1;
        if live.alive == 0 {
            // The caller gives the CPU to a process afterwards; a job that starts here finds it taken.
            self.nodes[n].cpu = Cpu::Stopped;
            self.end(job, t);
        }
    }

    fn end(&mut self, job: u32, t: u64) {
        // See `Engine::window`.
        self.out_of_order |= self.in_window;
        self.count_free(t);
        let at = std::mem::take(&mut self.live[job as usize].at);
        for (n, place) in &at {
            let (n, place) = (*n as usize, *place);
            self.process(n, place).state = State::Free;
            let node = &mut self.nodes[n];
            if let Some(at) = node.table.iter().position(|p| *p == place) {
                node.table.remove(at);
            }
            node.count -= 1;
        }
        self.free_places += at.len() as u64;
        self.finished += 1;
        self.changes += 1;
        self.ending.retain(|other| *other != job);
        self.out.jobs[job as usize].finish_ns = Some(t);
        if O::TELL {
            let nodes: Vec<u32> = at.iter().map(|(n, _)| *n).collect();
            self.observer.job(t, job, JobChange::Finished, &nodes, None);
        }
        self.admit(t);
    }
}
