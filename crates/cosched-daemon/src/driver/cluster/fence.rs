//! Jobs that other nodes start again when this node is silent: the guard is told until when these jobs may live.

use super::super::Driver;
use crate::record::Record;
use cosched_cluster::{Fenced, Moment};
use cosched_core::Time;
use cosched_linux::fence::{Fence, Fences, boottime_ns};

/// Until when a job may live, as an earlier daemon wrote it. Entries of an earlier boot no longer exist.
pub(super) fn found(fences: &Fences, record: &Record, moment: Moment) -> Option<Time> {
    let name = format!("job-{}", record.id);
    let known = fences.jobs.iter().find(|fence| fence.cgroup.file_name().is_some_and(|of| *of == *name))?;
    // The two clocks begin at different times, and the deadline may have passed.
    Some(Time((moment.steady.0 + known.until_ns).saturating_sub(boottime_ns())))
}

impl Driver {
    /// Writes changed deadlines, before anything else is done.
    pub(super) fn keep_fences(&mut self) {
        let cluster = &mut self.cluster;
        if !cluster.fences {
            return;
        }
        let fenced: Vec<Fenced> = cluster.member().fences().collect();
        if cluster.fenced.as_ref() == Some(&fenced) {
            return;
        }
        let (now, now_ns) = (cluster.moment().steady, boottime_ns());
        let fence = |fenced: &Fenced| {
            let live = self.live.get(&fenced.job.0)?;
            let until_ns = (now_ns + fenced.at.0).saturating_sub(now.0);
            Some(Fence { cgroup: live.cgroup.v2_dir().to_owned(), until_ns })
        };
        let fences = Fences { daemon: std::process::id() as i32, jobs: fenced.iter().filter_map(fence).collect() };
        match fences.write(&self.machinery.guard.fences) {
            Ok(()) => cluster.fenced = Some(fenced),
            // The earlier deadlines stay in force: a node that cannot write ends too many jobs, never too few.
            Err(e) => tracing::error!("the guard cannot be told how long jobs may run: {e}"),
        }
    }
}
