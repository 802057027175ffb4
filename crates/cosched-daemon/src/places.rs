//! Places: the topology from which the planner chooses them, and a thread that moves jobs to theirs.
//!
//! The work to confine a job grows with its threads, and a user can create many: neither the driver nor the slot thread waits for it.

use cosched_core::{Cpu, Topology};
use cosched_linux::JobCgroup;
use cosched_linux::confine::Move;
use cosched_linux::topology::{self, CpuParts};
use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// The topology of these CPUs. If the kernel does not report it, all CPUs count as alike.
pub(crate) fn topology(cpus: &[u32]) -> Topology {
    match topology::read(cpus) {
        Ok(parts) => Topology::new(parts.into_iter().map(core_cpu).collect()),
        Err(e) => {
            tracing::warn!(
                "the topology of the CPUs cannot be read: {e}. Jobs get places, but sockets, caches and siblings do not count"
            );
            Topology::flat(cpus.len() as u32)
        }
    }
}

fn core_cpu(parts: CpuParts) -> Cpu {
    let CpuParts { socket, numa_node, cache, core } = parts;
    Cpu { socket, numa_node, cache, core }
}

/// The handle of the thread that moves jobs; the thread ends with it.
pub(crate) struct Mover {
    orders: mpsc::Sender<(JobCgroup, Move)>,
    thread: JoinHandle<()>,
}

impl Mover {
    /// Starts the thread.
    pub(crate) fn start() -> std::io::Result<Mover> {
        let (orders, ordered) = mpsc::channel();
        let thread = std::thread::Builder::new().name("places".into()).spawn(move || move_all(&ordered))?;
        Ok(Mover { orders, thread })
    }

    /// Queues a move of the job.
    pub(crate) fn order(&self, cgroup: JobCgroup, place: Move) {
        // The receiver lives as long as this sender.
        let _ = self.orders.send((cgroup, place));
    }

    /// Finishes the queued moves, and ends.
    pub(crate) fn end(self) {
        drop(self.orders);
        // A thread that panicked has already reported it.
        let _ = self.thread.join();
    }
}

/// Moves of one job that were queued while another job was moved are merged.
fn move_all(ordered: &mpsc::Receiver<(JobCgroup, Move)>) {
    while let Ok(first) = ordered.recv() {
        let mut moves: BTreeMap<u64, (JobCgroup, Move)> = BTreeMap::new();
        for (cgroup, place) in std::iter::once(first).chain(ordered.try_iter()) {
            let from = moves.remove(&cgroup.id()).map_or(place.from, |(_, earlier)| earlier.from);
            moves.insert(cgroup.id(), (cgroup, Move { from, ..place }));
        }
        moves.into_values().for_each(|(cgroup, place)| confine(&cgroup, &place));
    }
}

/// Moves a job to its place now.
pub(crate) fn confine(cgroup: &JobCgroup, place: &Move) {
    // If the cgroup no longer exists, the job has ended.
    if let Err(e) = cgroup.confine(place)
        && cgroup.v2_dir().is_dir()
    {
        tracing::warn!(id = cgroup.id(), "the job keeps the CPUs that it has: {e}");
    }
}

/// The topology where the planner's columns are the CPUs of this machine; `None` where places are switched off.
pub(crate) fn for_planner(places: bool, cpus: &[u32]) -> Option<Arc<Topology>> {
    places.then(|| Arc::new(topology(cpus)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_topology_cannot_be_read_all_cpus_are_alike() {
        // The kernel has no file of a CPU of this number.
        assert_eq!(topology(&[0, 1_000_000]), Topology::flat(2));
        assert_eq!(
            (for_planner(true, &[1_000_000]), for_planner(false, &[0])),
            (Some(Arc::new(Topology::flat(1))), None)
        );
    }
}
