//! The topology of a node's CPUs: which of them share a core, a cache, a NUMA node, a socket.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// One CPU. The numbers identify what it is part of, and can only be compared for equality; cores, caches and NUMA nodes are numbered over
/// the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Cpu {
    /// Its socket.
    pub socket: u32,
    /// Its NUMA node.
    pub numa_node: u32,
    /// Its last-level cache, usually L3.
    pub cache: u32,
    /// Its core; CPUs of one core are siblings.
    pub core: u32,
}

/// The CPUs of a node, in the order of its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    cpus: Vec<Cpu>,
}

impl Topology {
    /// The topology of these CPUs, in the order of the columns.
    pub fn new(cpus: Vec<Cpu>) -> Topology {
        Topology { cpus }
    }

    /// A number of equal CPUs: one core each, one cache for all.
    pub fn flat(cpus: u32) -> Topology {
        Topology { cpus: (0..cpus).map(|core| Cpu { core, ..Cpu::default() }).collect() }
    }

    /// How many cores it has.
    pub fn cores(&self) -> u32 {
        self.cpus.iter().map(|cpu| cpu.core).collect::<BTreeSet<u32>>().len() as u32
    }

    /// The CPUs.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }
}
