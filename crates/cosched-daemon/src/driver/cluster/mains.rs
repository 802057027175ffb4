//! Main processes outside their job's nodes: no cgroup reports their end. The launcher that would may have ended, or its report came while this
//! daemon did not run. A job without its main process must not seem to run for ever.

use super::super::Driver;
use cosched_cluster::wire::{Exit, MainProcess};
use cosched_core::JobId;
use cosched_linux::process::Held;
use std::collections::BTreeSet;

/// Whether it has not ended; a process with a reused number is a different one.
pub(super) fn lives(main: MainProcess) -> bool {
    match Held::open(main.pid) {
        Ok(held) => held.start_ticks() == main.start_ticks,
        // If it cannot be examined now, it counts as alive.
        Err(e) => e.raw_os_error() != Some(rustix::io::Errno::SRCH.raw_os_error()),
    }
}

impl Driver {
    /// Reports those that have ended. Only if seen twice: a live launcher reports the end itself, with the exit code.
    pub(super) fn look_at_mains(&mut self) {
        let cluster = &mut self.cluster;
        let gone: BTreeSet<u64> =
            cluster.member().mains().filter(|(_, main)| !lives(*main)).map(|(JobId(id), _)| id).collect();
        let before = std::mem::replace(&mut cluster.mains_gone, gone.clone());
        for id in gone.intersection(&before) {
            tracing::warn!(
                id,
                "the job's main process no longer exists, and its launcher did not report its end: \
                 the job ends when its cgroup is empty"
            );
            self.cluster.tell(|member, now| member.main_ended(now, JobId(*id), 0, Exit::default()));
        }
    }
}
