//! The end of a job: its main process reports, its last process ends, its cgroups are removed.

use super::usage::out_of_memory;
use super::{Driver, Live, waiting};
use crate::clock::unix_ms;
use crate::record::Record;
use cosched_api::{self as api, ExitStatus};
use cosched_cluster::wire::{Attempt, Exit};
use cosched_core::JobId;
use cosched_node::Input;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// The reason recorded for a job whose end was not observed.
pub(super) const UNSEEN: &str = "it ended while no daemon was running";

/// How long the slot thread may take to release an ended job's files.
pub(super) const LET_GO: Duration = Duration::from_millis(200);

impl Driver {
    /// The launcher saw the main process end. If no other processes are left, the job is over.
    pub(super) fn main_exited(&mut self, id: u64, exit: Exit) {
        let exit = ExitStatus { code: exit.code, signal: exit.signal };
        let news = self.state.jobs.get(&id).is_some_and(|record| record.exit.is_none());
        let over = self.live.contains_key(&id) && !self.is_populated(id);
        let note = |record: &mut Record| {
            record.exit = Some(exit);
            record.event(unix_ms(), "main-exited", describe(exit));
        };
        match self.state.jobs.get_mut(&id) {
            // The end is written right below, including this.
            Some(record) if news && over => note(record),
            _ if news => self.remember(id, note),
            _ => (),
        }
        self.cluster.handle(Input::Populated(JobId(id), !over));
    }

    /// These jobs' cgroups have changed; some have no process left.
    pub(super) fn emptied(&mut self, ids: &[u64]) {
        for &id in ids {
            if self.live.contains_key(&id) {
                let populated = self.is_populated(id);
                self.cluster.handle(Input::Populated(JobId(id), populated));
            }
        }
    }

    /// Whether a job has a process. What cannot be read at the moment (no descriptor, no memory) is not over, and read again later.
    fn is_populated(&mut self, id: u64) -> bool {
        let populated = self.live.get(&id).map_or(Ok(false), |live| live.cgroup.populated());
        populated.unwrap_or_else(|e| {
            tracing::warn!(id, "whether the job has a process cannot be read, and is read again: {e}");
            self.unread.insert(id);
            true
        })
    }

    /// Kills the processes that are left after a first signal.
    pub(super) fn kill_rest(&mut self, id: u64) {
        let Some(live) = self.live.get_mut(&id) else { return };
        if let Err(e) = live.cgroup.kill() {
            tracing::error!(id, "a job could not be killed: {e}");
        }
        self.remember(id, |r| r.event(unix_ms(), "signal", "killed the processes that survived the first signal"));
    }

    /// Releases the resources of jobs that are over on this node.
    pub(super) fn finish_over(&mut self) {
        let over = std::mem::take(&mut self.over);
        let over: Vec<(u64, Attempt, Option<Live>)> =
            over.into_iter().map(|(id, attempt)| (id, attempt, self.live.remove(&id))).collect();
        // The slot thread releases the cgroups' files before the cgroups are removed.
        self.install();
        let is_late = !self.machinery.slots.wait_installed(LET_GO);
        if is_late {
            tracing::warn!("the slot thread is late");
        }
        for (id, attempt, live) in over {
            live.into_iter().for_each(|live| self.finish(id, live, is_late));
            self.report(id, attempt);
        }
        self.forget_old();
    }

    fn finish(&mut self, id: u64, live: Live, is_late: bool) {
        let cpu_time_ms = live.cgroup.cpu_time_ns().unwrap_or(0) / 1_000_000;
        let peak = live.cgroup.memory_peak();
        let out_of_memory = self.state.jobs.get(&id).and_then(|record| out_of_memory(record, Some(&live)));
        self.watch.remove(id);
        if is_late && !live.cgroup.outside().is_empty() {
            self.letting_go.push(live.cgroup.clone());
        } else if let Err(e) = live.cgroup.remove() {
            tracing::warn!(id, "an ended job's cgroup could not be removed: {e}");
        }
        let how = match self.state.jobs.get(&id).and_then(|r| r.exit) {
            Some(exit) => describe(exit),
            None if self
                .state
                .jobs
                .get(&id)
                .and_then(|r| r.adopted.as_ref())
                .is_some_and(|adopted| adopted.released) =>
            {
                "released: its processes keep running and are no longer a job".to_owned()
            }
            None if live.unseen => UNSEEN.to_owned(),
            None if self.state.jobs.get(&id).is_some_and(|r| r.part.is_some_and(|part| !part.lead)) => {
                "nothing of it is left here".to_owned()
            }
            None if self.state.jobs.get(&id).is_some_and(|r| r.by_api) => "it has no process (any more)".to_owned(),
            None => {
                "the exit of its main process was not observed: its launcher died, or it was moved out of its cgroup"
                    .to_owned()
            }
        };
        let killed = out_of_memory.map(|killed| killed.to_string());
        tracing::info!(id, how, killed, "job ended");
        self.remember_end(id, |record| {
            record.ended_unix_ms = Some(unix_ms());
            record.lost = live.unseen && record.exit.is_none();
            record.cpu_time_ms = cpu_time_ms;
            record.memory_peak_bytes = peak;
            record.out_of_memory = out_of_memory;
            record.boosts = live.cgroup.switch_handle().boosts();
            waiting::close_page(&live, &mut record.waiting);
            if let Some(killed) = out_of_memory {
                record.event(unix_ms(), "out-of-memory", killed.to_string());
            }
            record.event(unix_ms(), "ended", how);
        });
        self.account(id);
        self.empty_since = Instant::now();
    }

    /// Writes the job and its use of this node to the accounting log, and tells the collector.
    pub(super) fn account(&self, id: u64) {
        let Some(record) = self.state.jobs.get(&id) else { return };
        let job = self.ended_here(record);
        self.spans.send(&job, &record.events);
        self.accounting.write(job);
    }

    /// The cluster knows the queue and the reason of the end; this node knows when the job ended here, and what it used.
    fn ended_here(&self, record: &Record) -> api::Job {
        let here = self.job(record);
        let Ok(known) = self.view_job(record.id) else { return here };
        api::Job {
            state: here.state,
            ended_unix_ms: here.ended_unix_ms,
            started_unix_ms: here.started_unix_ms,
            cpu_time_ms: here.cpu_time_ms,
            memory_peak_bytes: here.memory_peak_bytes,
            use_of_nodes: record.part.filter(|part| part.spans).map(|_| vec![self.node_name()]),
            ..known
        }
    }

    fn forget_old(&mut self) {
        for id in old(&self.state.jobs, self.config.keep_ended, self.config.limits.record_bytes) {
            if let Err(e) = self.store.forget(&mut self.state, id) {
                tracing::error!("an old job's record could not be removed: {e}");
            }
        }
    }
}

/// For each user, the oldest ended jobs beyond the limits: one user's jobs do not displace another's.
fn old(jobs: &BTreeMap<u64, Record>, keep_max: usize, bytes_max: u64) -> Vec<u64> {
    let mut kept: BTreeMap<u32, (usize, u64)> = BTreeMap::new();
    let newest_first = jobs.values().rev().filter(|record| record.ended());
    let is_old = |record: &&Record| {
        let (count, bytes) = kept.entry(record.uid).or_default();
        (*count, *bytes) = (*count + 1, *bytes + record.bytes());
        *count > keep_max || *bytes > bytes_max
    };
    newest_first.filter(is_old).map(|record| record.id).collect()
}

/// An exit status in words.
pub(super) fn describe(exit: ExitStatus) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    #[test]
    fn nobody_pushes_out_the_ended_jobs_of_another() {
        let mut jobs = BTreeMap::new();
        for id in 1..=20 {
            let mut record = example(id);
            record.uid = if id == 2 { 1 } else { 1000 };
            record.ended_unix_ms = (id != 20).then_some(id);
            jobs.insert(id, record);
        }
        let mut gone = old(&jobs, 15, u64::MAX);
        gone.sort_unstable();
        assert_eq!(gone, [1, 3, 4], "of 18 ended ones of user 1000 the oldest three, and none of user 1's");
        let two = jobs[&5].bytes() * 2;
        assert_eq!(old(&jobs, 1000, two).len(), 16, "the newest two of user 1000 have room, and user 1's only one");
    }

    #[test]
    fn an_end_is_told_in_words() {
        let exit = |code, signal| describe(ExitStatus { code, signal });
        assert_eq!(exit(Some(0), None), "exit code 0");
        assert_eq!(exit(None, Some(9)), "ended by signal 9");
        assert_eq!(exit(None, None), "ended");
    }

    #[test]
    fn jobs_that_run_are_never_forgotten() {
        let mut jobs = BTreeMap::new();
        for id in 1..=5 {
            jobs.insert(id, example(id));
        }
        assert_eq!(old(&jobs, 0, 0), [0; 0]);
        jobs.get_mut(&3).unwrap().ended_unix_ms = Some(1);
        assert_eq!(old(&jobs, 0, u64::MAX), [3]);
        assert_eq!(old(&jobs, 9, 0), [3]);
    }
}
