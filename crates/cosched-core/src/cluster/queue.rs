//! Queues, like those of SCore.
//!
//! "The scheduling in SCore is done through the use of priority queues. Each queue can have memory, disk and time limits
//! and can be scheduled in either a time-shared … or exclusive fashion." (Strazdins & Uhlmann 2004, section 3.)
//! A job of an exclusive queue has its nodes for itself: it starts when they are empty, and no other job starts there while it runs.

use super::state::Want;
use alloc::string::String;
use alloc::vec::Vec;

/// A queue. `None` means no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Its name, for display.
    pub name: String,
    /// Whether its jobs have their nodes for themselves.
    pub exclusive: bool,
    /// The most memory that a job may request, on all its nodes together.
    pub memory_bytes_max: Option<u64>,
    /// The most disk space on one node that a job may request.
    pub disk_bytes_max: Option<u64>,
    /// The longest time from when a job becomes ready until it has ended.
    pub time_ns_max: Option<u64>,
    /// Its users, and their limits.
    pub rights: Rights,
}

/// Which users may use a queue, and how much of it each may have. `None` means no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// These users, by user ID; all users if neither users nor groups are given.
    pub users: Vec<u32>,
    /// The members of these groups.
    pub groups: Vec<u32>,
    /// The maximum memory of the jobs that one user has started in it, on all nodes together.
    pub memory_bytes_max: Option<u64>,
    /// The maximum number of jobs that one user has started in it.
    pub jobs_max: Option<u32>,
}

impl Rights {
    /// Whether a user of these groups may use the queue.
    pub fn permit(&self, user: u32, groups: &[u32]) -> bool {
        let is_open = self.users.is_empty() && self.groups.is_empty();
        is_open || self.users.contains(&user) || groups.iter().any(|group| self.groups.contains(group))
    }

    /// Whether a user who has started this number of jobs, with this amount of memory, may start another one with `more` bytes.
    pub(super) fn leave_room(&self, (jobs, memory): (u32, u64), more: u64) -> bool {
        self.jobs_max.is_none_or(|most| jobs < most)
            && self.memory_bytes_max.is_none_or(|most| memory.saturating_add(more) <= most)
    }
}

/// Which limit of its queue a job exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Memory on all its nodes together.
    Memory {
        /// What the job requests.
        wanted: u64,
        /// What the queue permits.
        most: u64,
    },
    /// Memory of all jobs of one user.
    UserMemory {
        /// What the job requests.
        wanted: u64,
        /// What the queue permits to each user.
        most: u64,
    },
    /// Disk space on one node.
    Disk {
        /// What the job requests.
        wanted: u64,
        /// What the queue permits.
        most: u64,
    },
}

impl Queue {
    /// The first limit that a request exceeds.
    pub fn exceeded(&self, want: &Want) -> Option<Limit> {
        let (memory, disk) = (want.memory_in_all(), want.disk());
        let over = |wanted: u64, most: Option<u64>| most.filter(|most| wanted > *most);
        over(memory, self.memory_bytes_max)
            .map(|most| Limit::Memory { wanted: memory, most })
            .or_else(|| {
                over(memory, self.rights.memory_bytes_max).map(|most| Limit::UserMemory { wanted: memory, most })
            })
            .or_else(|| over(disk, self.disk_bytes_max).map(|most| Limit::Disk { wanted: disk, most }))
    }
}

impl Want {
    /// The memory on all nodes together.
    pub(super) fn memory_in_all(&self) -> u64 {
        match self {
            Want::PerNode(wants) => wants.iter().fold(0, |sum: u64, want| sum.saturating_add(want.memory_bytes)),
            Want::Total { cpus, memory_per_cpu_bytes, .. } => memory_per_cpu_bytes.saturating_mul(u64::from(*cpus)),
        }
    }

    /// The largest disk space on one node.
    fn disk(&self) -> u64 {
        match self {
            Want::PerNode(wants) => wants.iter().map(|want| want.disk_bytes).max().unwrap_or(0),
            Want::Total { disk_bytes, .. } => *disk_bytes,
        }
    }
}
