//! Main processes that are outside of their job's nodes: no cgroup tells of their end, and the launcher that would may be gone,
//! or this daemon may have been away when it said so. A job without its main process must not seem to run for ever.

use super::super::Driver;
use cosched_cluster::wire::{Exit, MainProcess};
use cosched_core::JobId;
use cosched_linux::process::Held;
use std::collections::BTreeSet;

/// Whether it has not ended; a number that was given again is another process.
pub(super) fn lives(main: MainProcess) -> bool {
    match Held::open(main.pid) {
        Ok(held) => held.start_ticks() == main.start_ticks,
        // That it cannot be looked at now says nothing.
        Err(e) => e.raw_os_error() != Some(rustix::io::Errno::SRCH.raw_os_error()),
    }
}

impl Driver {
    /// Tells of those that have ended. At the second look only: a launcher that lives says so itself, and with which exit code.
    pub(super) fn look_at_mains(&mut self) {
        let cluster = &mut self.cluster;
        let gone: BTreeSet<u64> =
            cluster.member().mains().filter(|(_, main)| !lives(*main)).map(|(JobId(id), _)| id).collect();
        let before = std::mem::replace(&mut cluster.mains_gone, gone.clone());
        for id in gone.intersection(&before) {
            tracing::warn!(id, "the job's main process is gone, and nobody has said so: the job ends when it is empty");
            self.cluster.tell(|member, now| member.main_ended(now, JobId(*id), 0, Exit::default()));
        }
    }
}
