//! Jobs start and end: the arrival queue, places on nodes, ends (D7, D17, D25).

use super::engine::{JobRun, Sim};
use super::process::{Pid, Process, State};
use crate::draw::Draws;
use crate::observe::{JobChange, Observer};
use crate::params::Placement;
use crate::program::Code;
use crate::strategy::{BatchQueue, Strategy};
use cosched_core::backfill::Hole;

impl<O: Observer> Sim<'_, O> {
    pub(super) fn arrive(&mut self, job: u32) {
        self.account_waiting();
        self.queue.push_back(job);
        self.tell_job(job, JobChange::Arrived);
        if self.is_live() {
            return self.submit(job);
        }
        self.admit();
    }

    /// Starts jobs from the head of the arrival queue as long as they fit; the first that does not blocks the others.
    pub(super) fn admit(&mut self) {
        self.admitting.1 = true;
        if self.admitting.0 {
            return;
        }
        self.admitting.0 = true;
        self.account_waiting();
        while std::mem::take(&mut self.admitting.1) {
            while let Some((job, places)) = self.next_start() {
                self.queue.retain(|other| *other != job);
                self.start(job, places);
            }
            if self.params.strategy == Strategy::Batch(BatchQueue::Easy) {
                self.backfill();
            }
        }
        self.admitting.0 = false;
    }

    /// The job that starts now, with its places: the first of the queue if it fits, or what a custom strategy says.
    fn next_start(&mut self) -> Option<(u32, Vec<u32>)> {
        let first = self.queue.front().copied()?;
        match self.ask_arrival() {
            Some(decided) => decided,
            None => self.find_places(first).map(|places| (first, places)),
        }
    }

    /// The places for a job's tasks, ascending, if there are enough now: nodes, or columns of the matrix.
    fn find_places(&mut self, job: u32) -> Option<Vec<u32>> {
        let tasks = self.jobs[job as usize].tasks;
        if let Some(gang) = &mut self.gang {
            return gang.insert(self.params.mpl as usize, job, tasks);
        }
        let cpus = self.config.cpus_per_node;
        let node_max = self.params.level_max() * cpus;
        // For each free place, how many processes its node has before it; a job has at most one process for each CPU of
        // a node.
        let of_node = |(node, state): (usize, &super::engine::Node)| {
            let free = (node_max - state.places_used).min(cpus);
            (0..free).map(move |more| (state.places_used + more, node as u32)).collect::<Vec<_>>()
        };
        let mut free: Vec<(u32, u32)> = self.nodes.iter().enumerate().flat_map(of_node).collect();
        if free.len() < tasks as usize {
            return None;
        }
        if self.params.readings.placement == Placement::LeastLoaded {
            free.sort_unstable();
        }
        free.truncate(tasks as usize);
        let mut nodes: Vec<u32> = free.into_iter().map(|(_, node)| node).collect();
        nodes.sort_unstable();
        Some(nodes)
    }

    /// EASY (Lifka 1995): the first job gets the earliest time at which enough CPUs will be free if all jobs run as
    /// long as estimated; others may start now if they end before that time or take CPUs that it does not need.
    fn backfill(&mut self) {
        let Some(first) = self.queue.front().map(|job| &self.jobs[*job as usize]) else { return };
        let needed = first.tasks;
        let free: u32 = self.nodes.iter().map(|node| self.config.cpus_per_node - node.places_used).sum();
        let running = self.jobs.iter().filter(|job| !job.processes.is_empty());
        let end = |job: &JobRun| job.times.start_ns.unwrap_or(0).saturating_add(job.estimate_ns).max(self.now_ns);
        let mut ends: Vec<(u64, u64)> = running.map(|job| (end(job), job.tasks.into())).collect();
        ends.sort_unstable();
        let mut hole = Hole::beside(needed.into(), free.into(), self.now_ns, ends.into_iter());
        for job in self.queue.iter().skip(1).copied().collect::<Vec<u32>>() {
            let (tasks, estimate_ns) = (self.jobs[job as usize].tasks.into(), self.jobs[job as usize].estimate_ns);
            if !hole.takes(tasks, Some(estimate_ns)) {
                continue;
            }
            let Some(places) = self.find_places(job) else { continue };
            hole.start(tasks, Some(estimate_ns));
            self.queue.retain(|other| *other != job);
            self.start(job, places);
        }
    }

    pub(super) fn start(&mut self, job: u32, places: Vec<u32>) {
        self.account_waiting();
        let nodes: Vec<u32> = places.iter().map(|place| self.node_of_place(*place)).collect();
        nodes.iter().for_each(|node| self.nodes[*node as usize].places_used += 1);
        let run = &mut self.jobs[job as usize];
        run.times.start_ns = Some(self.now_ns);
        run.places = places;
        // Cannot fail: it was expanded once when the job list was read.
        let codes = run.work.codes(&self.params).unwrap_or_default();
        let process = |(task, (code, node)): (usize, (Code, u32))| {
            let draws = Draws::new(self.params.seed, job.into(), task as u64);
            Process::new(node, code, draws, self.config.spin_rule())
        };
        run.processes = codes.into_iter().zip(nodes).enumerate().map(process).collect();
        self.tell_job(job, JobChange::Started);
        self.watch(job);
        self.begin_if_first();
        if self.is_live() {
            self.settles(job);
        }
        for task in 0..self.jobs[job as usize].tasks {
            let pid = Pid { job, task };
            let node = self.process(pid).node as usize;
            self.ready_new(pid);
            self.kick(node);
        }
    }

    /// The current process has ended (D25).
    pub(super) fn exit(&mut self, cpu: usize) {
        let Some(pid) = self.take_current(cpu, State::Ended) else { return };
        let node = self.cpus[cpu].node;
        self.nodes[node].table.retain(|other| *other != pid);
        if self.params.readings.free_switch_from_idle {
            self.cpus[cpu].last_owner = None;
        }
        let run = &mut self.jobs[pid.job as usize];
        run.left -= 1;
        if run.left == 0 {
            if self.config.finer.dispatch_before_admission {
                self.resume(cpu);
            }
            self.job_ended(pid.job);
        }
    }

    fn job_ended(&mut self, job: u32) {
        self.account_waiting();
        self.jobs_ended += 1;
        self.check_job(job);
        self.tell_job(job, JobChange::Finished);
        let run = &mut self.jobs[job as usize];
        run.times.finish_ns = Some(self.now_ns);
        run.processes = Vec::new();
        for place in std::mem::take(&mut run.places) {
            let node = self.node_of_place(place);
            self.nodes[node as usize].places_used -= 1;
        }
        if let Some(gang) = &mut self.gang {
            gang.remove(job);
        }
        if self.is_live() {
            return self.leaves(job);
        }
        self.admit();
    }

    /// Accounts for the free places since the last change of queue or places.
    pub(super) fn account_waiting(&mut self) {
        let elapsed_ns = self.now_ns - std::mem::replace(&mut self.waiting_since_ns, self.now_ns);
        if elapsed_ns == 0 || self.queue.is_empty() {
            return;
        }
        let used: u64 = self.nodes.iter().map(|node| u64::from(node.places_used)).sum();
        let free = u64::from(self.params.level_max()) * u64::from(self.config.cpus()) - used;
        self.out.free_while_waiting_ns += u128::from(free) * u128::from(elapsed_ns);
    }
}
