//! Observations of a pipeline in an interval of time.
//!
//! All times are within the interval, and sums over a stage's threads. A thread's time in a window is `busy` (it has
//! a buffer and works on it), `wait_in` (it waits for one) or `wait_out` (it waits for room behind it). `cpu` and `delay`
//! come from the kernel (`/proc/self/task/TID/schedstat`): delay is the time in which it was ready to run but did not. The
//! rest of `busy` without `cpu` and `delay` is time on a device, on the network, or asleep.

use super::Resource;
use alloc::vec::Vec;

/// What one stage did in a window. Units: ns, buffers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageView {
    /// Its main resource, as its author states it.
    pub resource: Resource,
    /// Threads that worked as this stage, at least 1; for a stage on shared workers, the number of workers that can do so at once.
    pub threads: u32,
    /// Buffers that it finished.
    pub rounds: u64,
    /// Time in which it had a buffer and worked on it.
    pub busy_ns: u64,
    /// CPU time.
    pub cpu_ns: u64,
    /// Time ready to run without a CPU.
    pub delay_ns: u64,
    /// Time that it waited for a buffer.
    pub wait_in_ns: u64,
    /// Time that it waited for room.
    pub wait_out_ns: u64,
    /// Mean number of buffers that waited before it.
    pub queue_in: f64,
    /// The capacity of that queue; 0: unknown.
    pub queue_in_max: u32,
    /// The number of incarnations that it may have; 0 or 1: only one.
    pub replicable_to: u32,
}

impl StageView {
    /// A stage with one thread, without any activity.
    pub const fn idle(resource: Resource) -> StageView {
        StageView {
            resource,
            threads: 1,
            rounds: 0,
            busy_ns: 0,
            cpu_ns: 0,
            delay_ns: 0,
            wait_in_ns: 0,
            wait_out_ns: 0,
            queue_in: 0.0,
            queue_in_max: 0,
            replicable_to: 1,
        }
    }

    /// CPU time within the busy time: the kernel counts it also outside of that.
    pub(crate) fn on_cpu_ns(&self) -> u64 {
        self.cpu_ns.min(self.busy_ns)
    }

    /// Time in which it had a buffer and was ready, without a CPU.
    pub(crate) fn delayed_ns(&self) -> u64 {
        self.delay_ns.min(self.busy_ns - self.on_cpu_ns())
    }

    /// Time in which it had a buffer and waited for something other than a CPU: a device, the network, a sleep.
    pub(crate) fn blocked_ns(&self) -> u64 {
        self.busy_ns - self.on_cpu_ns() - self.delayed_ns()
    }

    /// How full its input queue is, 0 to 1; 0 if that is unknown.
    pub(crate) fn fill(&self) -> f64 {
        if self.queue_in_max == 0 { 0.0 } else { (self.queue_in / f64::from(self.queue_in_max)).clamp(0.0, 1.0) }
    }
}

/// What a pipeline did in an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Its length, ns.
    pub length_ns: u64,
    /// CPUs that the pipeline may use, 1 at least.
    pub cpus: u32,
    /// Buffers that came out at the end, on all paths together.
    pub rounds: u64,
    /// The stages in the order of flow; where a pipeline has several paths, a stage comes after all stages that feed it.
    pub stages: Vec<StageView>,
    /// CPU time on these CPUs that was not the pipeline's: of other processes, of interrupts, stolen by a hypervisor
    /// (`/proc/stat`, all but idle and iowait, minus what the pipeline used). `None`: not measured.
    pub others_ns: Option<u64>,
}

impl Window {
    /// The part `ns` of the window's length; 0 for an empty window.
    pub(crate) fn share(&self, ns: u64) -> f64 {
        if self.length_ns == 0 { 0.0 } else { ns as f64 / self.length_ns as f64 }
    }

    /// The part of all CPU time of the window that the pipeline used, 0 to about 1.
    pub fn cpu_share(&self) -> f64 {
        let cpu_ns: u64 = self.stages.iter().map(|stage| stage.cpu_ns).sum();
        self.share(cpu_ns) / f64::from(self.cpus.max(1))
    }

    /// The part of all CPU time of the window that others used. If it was not measured, it is estimated: a thread that waits for a
    /// CPU for longer than the pipeline can have had all CPUs waits for another program.
    pub fn others_share(&self) -> f64 {
        if let Some(ns) = self.others_ns {
            return (self.share(ns) / f64::from(self.cpus.max(1))).min(1.0);
        }
        let per_thread = |stage: &StageView| self.share(stage.delay_ns) / f64::from(stage.threads.max(1));
        let longest = self.stages.iter().map(per_thread).fold(0.0, f64::max);
        (longest - self.cpu_share()).clamp(0.0, 1.0)
    }

    /// Buffers per second, as a mean over the stages: finer than the count of buffers at the end.
    pub fn rate(&self) -> f64 {
        let (count, rounds) = self.stages.iter().fold((0_u64, 0), |(n, sum), stage| (n + 1, sum + stage.rounds));
        let per_stage = if count == 0 { self.rounds as f64 } else { rounds as f64 / count as f64 };
        if self.length_ns == 0 { 0.0 } else { per_stage * 1e9 / self.length_ns as f64 }
    }
}
