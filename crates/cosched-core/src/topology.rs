//! How the CPUs of a node hang together: which share a core, a cache, a NUMA node, a socket.

use alloc::vec::Vec;

/// One CPU. The numbers name what it is part of, and mean nothing but equal or not; a core, cache and NUMA node has a number of its own on
/// the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Cpu {
    /// Its socket.
    pub socket: u32,
    /// Its NUMA node.
    pub numa_node: u32,
    /// Its last level of cache, usually L3.
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
    /// Of these CPUs.
    pub fn new(cpus: Vec<Cpu>) -> Topology {
        Topology { cpus }
    }

    /// Of so many CPUs that are all alike: a core each, one cache.
    pub fn flat(cpus: u32) -> Topology {
        Topology { cpus: (0..cpus).map(|core| Cpu { core, ..Cpu::default() }).collect() }
    }

    /// The CPUs.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }
}
