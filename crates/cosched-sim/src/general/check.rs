//! Checks of laws: queues during the run, sums at its end.

use super::engine::Sim;
use super::levels::TOP;
use super::process::{Pid, Process, State};
use crate::error::SimError;
use crate::observe::Observer;
use cosched_core::Endpoint;
use std::collections::BTreeMap;

impl<O: Observer> Sim<'_, O> {
    /// Every process is in exactly one place. Checks one node, or all nodes if jobs started, ended or changed turns.
    pub(super) fn check_queues(&mut self, node: Option<usize>) {
        let nodes = node.map_or(0..self.nodes.len(), |node| node..node + 1);
        let cpus = self.cpus_of(nodes.start).start..self.cpus_of(nodes.end - 1).end;
        let found = nodes.into_iter().find_map(|node| self.node_breaks(node));
        let found = found.or_else(|| cpus.into_iter().find_map(|cpu| self.cpu_breaks(cpu)));
        if let Some(what) = found {
            self.broken.get_or_insert(format!("at {} ns {what}", self.now_ns));
        }
    }

    fn node_breaks(&self, node: usize) -> Option<String> {
        let state = &self.nodes[node];
        let process = |pid: &Pid| &self.jobs[pid.job as usize].processes[pid.task as usize];
        let mut queued: BTreeMap<Pid, u8> = BTreeMap::new();
        let waiting = state.fair.waiting().map(|pid| (process(&pid).level, pid));
        for (level, pid) in state.levels.iter().chain(waiting) {
            if queued.insert(pid, level).is_some() {
                return Some(format!("{pid:?} is queued twice"));
            }
        }
        for pid in &state.table {
            let process = process(pid);
            let level = queued.remove(pid);
            let right = match process.state {
                State::Ready => self.params.strategy.is_gang() || (level == Some(process.level)) != self.is_guest(*pid),
                State::Running(cpu) => level.is_none() && self.cpus[cpu].current == Some(*pid),
                State::Io | State::Blocked => level.is_none(),
                State::Ended => false,
            };
            if !right || process.level > TOP || process.node as usize != node {
                return Some(format!("{pid:?} is {:?}, level {}, queued at {level:?}", process.state, process.level));
            }
        }
        queued.keys().next().map(|pid| format!("{pid:?} is queued but not on node {node}"))
    }

    fn cpu_breaks(&self, cpu: usize) -> Option<String> {
        let pid = self.cpus[cpu].current?;
        let process = self.jobs[pid.job as usize].processes.get(pid.task as usize);
        let right = process.is_some_and(|process| process.state == State::Running(cpu));
        (!right).then(|| format!("CPU {cpu} runs {pid:?}, which is not running"))
    }

    /// A job has ended: its numbers of messages and iterations must be the expected ones.
    pub(super) fn check_job(&mut self, job: u32) {
        let run = &self.jobs[job as usize];
        let iterations: u64 = run.processes.iter().map(|process| process.iterations).sum();
        let unread: usize = run.processes.iter().map(|process| process.unread()).sum();
        let expected = run.expected;
        if iterations != expected.iterations || run.messages != expected.receives || unread != 0 {
            let text = format!(
                "job {job} did {iterations} iterations and got {} messages ({unread} unread), not {expected:?}",
                run.messages
            );
            self.broken.get_or_insert(text);
        }
    }

    /// Checks the sums of the run (D26). `complete`: all jobs have ended.
    pub(super) fn check_conservation(&self, complete: bool) -> Option<String> {
        let (out, cpu) = (&self.out, &self.out.cpu);
        let of_jobs = [cpu.compute_ns, cpu.message_ns, cpu.spin_ns];
        let others = [cpu.switch_ns, cpu.interrupt_ns, cpu.sched_ns, cpu.idle_ns];
        let spent: u128 = of_jobs.iter().chain(&others).map(|ns| u128::from(*ns)).sum();
        let had = self.cpus.len() as u128 * u128::from(out.sim_end_ns);
        if spent != had {
            return Some(format!("{spent} ns of CPU time were spent, and there were {had}"));
        }
        if !complete {
            return None;
        }
        let iterations: u64 = self.jobs.iter().map(|job| job.expected.iterations).sum();
        let sends: u64 = self.jobs.iter().map(|job| job.expected.sends).sum();
        if (out.task_iterations, self.sent, out.messages) != (iterations, sends, sends) {
            return Some(format!(
                "{} iterations of {iterations}, {} messages sent and {} delivered of {sends}",
                out.task_iterations, self.sent, out.messages
            ));
        }
        None
    }

    /// All processes of the started jobs wait for messages, and no message is in transit: that lasts for ever.
    pub(super) fn deadlock(&self) -> Option<SimError> {
        let started = || self.jobs.iter().filter(|job| !job.processes.is_empty());
        let waits = |process: &Process| {
            process.state == State::Ended || process.state != State::Io && process.endpoint_awake() == Endpoint::Waiting
        };
        let stuck = self.sent == self.out.messages
            && started().next().is_some()
            && started().all(|job| job.processes.iter().all(waits));
        stuck.then(|| self.stuck())
    }

    /// The error if no event is left, and some jobs have not ended.
    pub(super) fn stuck(&self) -> SimError {
        if self.custom.is_some() && !self.queue.is_empty() && self.jobs.iter().all(|job| job.processes.is_empty()) {
            return SimError::Strategy(format!(
                "starts none of {} waiting jobs, and no other job is left",
                self.queue.len()
            ));
        }
        let who = self.jobs.iter().enumerate().find_map(|(index, job)| {
            let (task, from) = job.processes.iter().enumerate().find_map(|(task, p)| Some((task, p.awaits()?)))?;
            Some((index, format!("task {task} waits for a message of task {from}")))
        });
        match who {
            Some((index, what)) => SimError::Deadlock { index, what },
            None => SimError::Broken("jobs have not ended, but nothing happens any more".to_owned()),
        }
    }
}
