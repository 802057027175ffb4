//! What memory costs the processes: a cache that is loaded after a switch, and a socket's bandwidth (`memory.rs` has the rules).

use super::engine::{Doing, Sim};
use super::memory::{Bandwidth, share};
use super::process::{Pid, Step};
use crate::job::Footprint;
use crate::observe::{Activity, Observer};
use std::collections::BTreeMap;

/// A CPU's cache, and its part of the socket's bandwidth.
#[derive(Debug, Default)]
pub(super) struct CpuMemory {
    /// The job that had the CPU last.
    job: Option<u32>,
    /// The data that jobs have brought so far: each its working set whenever it had the CPU.
    brought_bytes: u128,
    /// For jobs that had all their data when they left: `brought_bytes` then.
    left_at: BTreeMap<u32, u128>,
    /// How long it takes to load what is missing of them.
    missing_ns: u64,
    /// Of the process that computes here.
    pub(super) bandwidth: Bandwidth,
}

impl<O: Observer> Sim<'_, O> {
    fn footprint(&self, job: u32) -> Footprint {
        self.jobs[job as usize].work.own().footprint
    }

    /// A job gets a CPU: what others have evicted of its data is missing. The very first job finds them there, as its first switch is free (D6).
    pub(super) fn enter_cache(&mut self, cpu: usize, job: u32) {
        let Some(cache) = self.config.memory.cache else { return };
        let Some(last) = self.cpus[cpu].memory.job.replace(job).filter(|last| *last != job) else { return };
        let [brought, wanted] = [last, job].map(|job| self.footprint(job).working_set_bytes);
        let memory = &mut self.cpus[cpu].memory;
        memory.brought_bytes += u128::from(brought);
        if memory.missing_ns == 0 {
            memory.left_at.insert(last, memory.brought_bytes);
        }
        let since = memory.left_at.remove(&job).map(|at| memory.brought_bytes - at);
        memory.missing_ns = cache.load_ns(wanted, since);
    }

    /// The current process computes, once its data are in the cache.
    pub(super) fn compute(&mut self, cpu: usize, pid: Pid, left_ns: u64) {
        let missing_ns = self.cpus[cpu].memory.missing_ns;
        if missing_ns > 0 {
            return self.begin(cpu, Doing::Load, Some(missing_ns));
        }
        let demand = self.footprint(pid.job).bytes_per_s;
        if demand > 0 && self.config.memory.socket.is_some() {
            self.cpus[cpu].memory.bandwidth.demand = demand;
            self.share_socket(cpu);
        }
        let begun = self.process(pid).begun;
        let for_ns = self.cpus[cpu].memory.bandwidth.time_ns(left_ns, begun);
        self.begin(cpu, Doing::User, Some(for_ns));
    }

    /// Accounts for a load: CPU time of the process, and a cost of the switch.
    pub(super) fn book_load(&mut self, cpu: usize, elapsed_ns: u64) -> Activity {
        self.use_cpu(cpu, elapsed_ns);
        self.cpus[cpu].memory.missing_ns -= elapsed_ns;
        Activity::Switch
    }

    /// A process has stopped computing: its bandwidth is for the others.
    pub(super) fn leave_socket(&mut self, cpu: usize) {
        let bandwidth = std::mem::take(&mut self.cpus[cpu].memory.bandwidth);
        if bandwidth.demand > 0 {
            self.share_socket(cpu);
        }
    }

    /// The demands in a CPU's socket have changed: the processes of its other CPUs continue at their new speeds.
    fn share_socket(&mut self, cpu: usize) {
        let Some(socket) = self.config.memory.socket else { return };
        let first = cpu - cpu % socket.cpus as usize;
        let all = first..(first + socket.cpus as usize).min(self.cpus.len());
        let mut shared: Vec<Bandwidth> = self.cpus[all.clone()].iter().map(|cpu| cpu.memory.bandwidth).collect();
        share(socket.bytes_per_s, &mut shared.iter_mut().filter(|one| one.demand > 0).collect::<Vec<_>>());
        for (other, bandwidth) in all.zip(shared) {
            if other == cpu {
                self.cpus[other].memory.bandwidth = bandwidth;
            } else if self.cpus[other].memory.bandwidth != bandwidth {
                self.change_speed(other, bandwidth);
            }
        }
    }

    fn change_speed(&mut self, cpu: usize, bandwidth: Bandwidth) {
        self.book(cpu);
        let state = &mut self.cpus[cpu];
        state.memory.bandwidth = bandwidth;
        state.generation += 1;
        let Some(pid) = state.current else { return };
        let process = self.process(pid);
        if let Step::Compute { left_ns } = process.step {
            let for_ns = bandwidth.time_ns(left_ns, process.begun);
            self.end_after(cpu, for_ns);
        }
    }
}
