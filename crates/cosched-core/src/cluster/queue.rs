//! Queues, as SCore had them.
//!
//! "The scheduling in SCore is done through the use of priority queues. Each queue can have memory, disk and time limits
//! and can be scheduled in either a time-shared … or exclusive fashion." (Strazdins & Uhlmann 2004, section 3.)
//! A job of an exclusive queue has its nodes for itself: it starts when they are empty, and nobody joins it there.

use super::state::Want;
use alloc::string::String;

/// A queue. A limit of `None` is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Its name, for people.
    pub name: String,
    /// Whether its jobs have their nodes for themselves.
    pub exclusive: bool,
    /// The most memory that a job may ask for, on all its nodes together.
    pub memory_bytes_max: Option<u64>,
    /// The most disk space on one node that a job may ask for.
    pub disk_bytes_max: Option<u64>,
    /// The longest time from when a job is made ready until it has ended.
    pub time_ns_max: Option<u64>,
}

/// Which limit of its queue a job exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Memory on all its nodes together.
    Memory {
        /// What the job asks for.
        wanted: u64,
        /// What the queue permits.
        most: u64,
    },
    /// Disk space on one node.
    Disk {
        /// What the job asks for.
        wanted: u64,
        /// What the queue permits.
        most: u64,
    },
}

impl Queue {
    /// The first limit that a job exceeds which wants this.
    pub fn exceeded(&self, want: &Want) -> Option<Limit> {
        let (memory, disk) = match want {
            Want::PerNode(wants) => (
                wants.iter().fold(0, |sum: u64, want| sum.saturating_add(want.memory_bytes)),
                wants.iter().map(|want| want.disk_bytes).max().unwrap_or(0),
            ),
            Want::Total { cpus, memory_per_cpu_bytes, disk_bytes } => {
                (memory_per_cpu_bytes.saturating_mul(u64::from(*cpus)), *disk_bytes)
            }
        };
        let over = |wanted: u64, most: Option<u64>| most.filter(|most| wanted > *most);
        over(memory, self.memory_bytes_max)
            .map(|most| Limit::Memory { wanted: memory, most })
            .or_else(|| over(disk, self.disk_bytes_max).map(|most| Limit::Disk { wanted: disk, most }))
    }
}
