//! Flexible coscheduling (Frachtenberg, Feitelson, Petrini and Fernandez 2003, 2005): gangs only for processes that need them.
//!
//! The problem: a gang whose processes wait for each other because their work is uneven wastes its slots, and one that hardly
//! communicates needs none. The rule: each process is measured in its own row's turns, where its partners run too, by the computation and the
//! wait of a receive, and belongs to one of three classes.
//! - *Coscheduled* (CS): fine-grained, and served soon. Its CPU belongs to it for the whole turn, and it waits busy.
//! - *Frustrated* (F): fine-grained, but it waits for long although its partners run. It comes first in its turn, and lends the CPU while it is
//!   blocked.
//! - *Loose*: coarse-grained; the papers' DC and RE, which differ in their balance and are scheduled alike. It has no claim to its turn.
//!
//! What CS and F leave over goes to the F or loose process of the same column that has had the least CPU time, whatever its row. F and loose ones wait by spin
//! block. A turn that passes between rows without CS needs no switch of all CPUs at once.
//!
//! The thresholds are in `grain.rs`.

use super::engine::Sim;
use super::gang::Gang;
use super::grain::Needs;
use super::process::{Pid, State, Step};
use crate::observe::Observer;
use crate::strategy::Strategy;

impl<O: Observer> Sim<'_, O> {
    pub(super) fn is_flexible(&self) -> bool {
        self.params.strategy == Strategy::Fcs
    }

    pub(super) fn needs(&self, pid: Pid) -> Needs {
        self.jobs[pid.job as usize].processes[pid.task as usize].grain.needs
    }

    fn in_own_turn(&self, pid: Pid) -> bool {
        self.gang.as_ref().is_some_and(|gang| gang.has_turn(self.jobs[pid.job as usize].watched.row))
    }

    /// A process has used a CPU.
    pub(super) fn grain_cpu(&mut self, pid: Pid, ns: u64) {
        let in_turn = self.in_own_turn(pid);
        let process = self.process(pid);
        let computes = !matches!(process.step, Step::Receive { .. });
        process.grain.used_cpu(ns, in_turn && computes);
    }

    /// A process has received a message after a wait; what lies before its turn does not count.
    pub(super) fn grain_received(&mut self, pid: Pid, waited_ns: u64) {
        if !self.is_flexible() || !self.in_own_turn(pid) {
            return;
        }
        let turn_ns = self.gang.as_ref().map_or(0, |gang| self.now_ns - gang.began_ns());
        self.process(pid).grain.received(waited_ns.min(turn_ns));
    }

    /// The process that a CPU should run in the quantum of the current row.
    pub(super) fn pick_flexible(&self, gang: &Gang, cpu: usize) -> Option<Pid> {
        if let Some(host) = self.host(gang, cpu) {
            let ready = self.ready_in_cell(gang, gang.current(), cpu);
            match self.needs(host) {
                Needs::Coscheduled => return ready,
                Needs::Frustrated if ready.is_some() => return ready,
                Needs::Frustrated | Needs::Loose => {}
            }
        }
        let rows = std::iter::once(gang.current()).chain(gang.other_rows());
        let ready = rows.filter_map(|row| self.ready_in_cell(gang, row, cpu));
        let others = ready.filter(|pid| self.needs(*pid) != Needs::Coscheduled);
        others.min_by_key(|pid| self.jobs[pid.job as usize].processes[pid.task as usize].grain.cpu_ns())
    }

    /// The process in a CPU's cell of the current row, unless it has ended.
    fn host(&self, gang: &Gang, cpu: usize) -> Option<Pid> {
        let pid = self.in_cell(gang, gang.current(), cpu)?;
        let process = self.jobs[pid.job as usize].processes.get(pid.task as usize)?;
        (process.state != State::Ended).then_some(pid)
    }

    /// A turn of the current row ends: its processes are judged.
    pub(super) fn judge_row(&mut self) {
        for cpu in 0..self.cpus.len() {
            self.book(cpu);
        }
        let spin_ns = self.params.spin_ns;
        let Some(gang) = self.gang.as_ref() else { return };
        for job in gang.jobs_of(gang.current()).collect::<Vec<u32>>() {
            self.jobs[job as usize].processes.iter_mut().for_each(|process| process.grain.judge(spin_ns));
        }
    }

    /// Whether the CPUs must change together when a row follows the current one: one of the two has a process that needs it.
    pub(super) fn switch_together(&self, row: usize) -> bool {
        let Some(gang) = self.gang.as_ref() else { return true };
        let needs_it = |job: u32| {
            let mut processes = self.jobs[job as usize].processes.iter();
            processes.any(|process| process.state != State::Ended && process.grain.needs == Needs::Coscheduled)
        };
        [gang.current(), row].into_iter().any(|row| gang.jobs_of(row).any(needs_it))
    }

    /// The next row has its turn, and each CPU decides for itself.
    pub(super) fn pass_turn(&mut self, row: usize) {
        if let Some(gang) = self.gang.as_mut() {
            gang.set_turn(row);
        }
        self.begin_quantum();
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].doing.gives_way() {
                self.stop(cpu);
                self.take_current(cpu, State::Ready);
                self.resume(cpu);
            }
        }
    }
}
