//! Jobs come and go: the arrival queue, places on nodes, ends (D7, D17, D25).

use super::engine::Sim;
use super::process::{Pid, Process, State};
use crate::draw::Draws;
use crate::observe::{JobChange, Observer};
use crate::params::Placement;

impl<O: Observer> Sim<'_, O> {
    pub(super) fn arrive(&mut self, job: u32) {
        self.account_waiting();
        self.queue.push_back(job);
        self.tell_job(job, JobChange::Arrived);
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
            while let Some(job) = self.queue.front().copied()
                && let Some(places) = self.find_places(job)
            {
                self.queue.pop_front();
                self.start(job, places);
            }
        }
        self.admitting.0 = false;
    }

    /// The places for a job's tasks, ascending, if there are enough now: nodes, or columns of the matrix.
    fn find_places(&mut self, job: u32) -> Option<Vec<u32>> {
        let tasks = self.jobs[job as usize].spec.tasks;
        if let Some(gang) = &mut self.gang {
            return gang.insert(self.params.mpl as usize, job, tasks);
        }
        let used = |node: &usize| self.nodes[*node].places_used;
        let mut free: Vec<usize> = (0..self.nodes.len()).filter(|node| used(node) < self.params.level_max()).collect();
        if free.len() < tasks as usize {
            return None;
        }
        if self.params.readings.placement == Placement::LeastLoaded {
            free.sort_by_key(used);
        }
        free.truncate(tasks as usize);
        free.sort_unstable();
        Some(free.into_iter().map(|node| node as u32).collect())
    }

    fn start(&mut self, job: u32, places: Vec<u32>) {
        self.account_waiting();
        let run = &mut self.jobs[job as usize];
        run.times.start_ns = Some(self.now_ns);
        let node_of = |task: usize| places[task];
        run.processes = (0..places.len())
            .map(|task| {
                let draws = Draws::new(self.params.seed, job.into(), task as u64);
                Process::new(node_of(task), run.code(&self.params, task as u32), draws)
            })
            .collect();
        run.places = places;
        for place in self.jobs[job as usize].places.clone() {
            self.nodes[place as usize].places_used += 1;
        }
        self.tell_job(job, JobChange::Started);
        self.begin_if_first();
        for task in 0..self.jobs[job as usize].spec.tasks {
            let pid = Pid { job, task };
            let node = self.process(pid).node as usize;
            self.ready_new(pid);
            self.kick(node);
        }
    }

    /// The current process has come to its end (D25).
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
            self.nodes[place as usize].places_used -= 1;
        }
        if let Some(gang) = &mut self.gang {
            gang.remove(job);
        }
        self.admit();
    }

    /// Books free places since the last change of queue or places.
    pub(super) fn account_waiting(&mut self) {
        let elapsed_ns = self.now_ns - std::mem::replace(&mut self.waiting_since_ns, self.now_ns);
        if elapsed_ns == 0 || self.queue.is_empty() {
            return;
        }
        let used: u64 = self.nodes.iter().map(|node| u64::from(node.places_used)).sum();
        let free = u64::from(self.params.level_max()) * self.nodes.len() as u64 - used;
        self.out.free_while_waiting_ns += u128::from(free) * u128::from(elapsed_ns);
    }
}
