//! After a restart: the jobs that an earlier daemon left are found and continue.

use super::finish::UNSEEN;
use super::places::Place;
use super::register::part_of;
use super::{Driver, Live};
use crate::clock::unix_ms;
use crate::record::Record;
use crate::waitpage;
use cosched_api::Warning;
use cosched_core::JobId;
use cosched_node::FoundPart;

impl Driver {
    /// Takes back control of every recorded job that still has processes, and ends the others.
    pub(super) fn recover(&mut self) -> anyhow::Result<()> {
        let left = self.machinery.tree.jobs()?;
        self.state.last_id = left.iter().copied().fold(self.state.last_id, u64::max);
        let open: Vec<Record> = self.state.jobs.values().filter(|r| !r.ended()).cloned().collect();
        for record in &open {
            if let Err(e) = self.take_back(record) {
                tracing::warn!(id = record.id, "a job of the last run no longer exists: {e:#}");
                self.end_unseen(record);
            }
        }
        for id in left {
            if !self.live.contains_key(&id) {
                if let Err(e) = self.machinery.tree.remove_torn(id) {
                    tracing::warn!(id, "a part of a cgroup could not be removed: {e}");
                }
                self.clear_orphan(id);
            }
        }
        let has_page = |id| self.live.get(&id).is_some_and(|live| live.page.is_some());
        waitpage::sweep(&self.identity.wait_dir, self.state.last_id, has_page);
        self.store.pay_all(&self.state);
        Ok(())
    }

    /// As `remember`, but written together with all the others: a sync for each of a thousand jobs takes long, and nothing was acknowledged to a user
    /// yet.
    fn note(&mut self, id: u64, change: impl FnOnce(&mut Record)) {
        if let Some(record) = self.state.jobs.get_mut(&id) {
            change(record);
            self.store.owe(id);
            self.touch_status();
        }
    }

    fn take_back(&mut self, record: &Record) -> anyhow::Result<()> {
        anyhow::ensure!(record.boot_id == self.boot_id, "the machine was restarted");
        let cgroup = self.machinery.tree.open_job(record.id)?;
        let may_be_empty = record.pid == 0 || record.part.is_some_and(|part| !part.lead);
        let populated = cgroup.populated()?;
        let unseen = !may_be_empty && !populated;
        let is_known = record.exit.is_some() || record.part.is_some_and(|part| part.closing);
        anyhow::ensure!(!unseen || !is_known, "it has no process left");
        self.watch.add(record.id, &cgroup.events_path())?;
        self.watch_parts(record.id, &cgroup.annexes());
        let place = Place::found(record, &self.identity.cpus);
        self.live.insert(record.id, Live::of_record(cgroup, record, place));
        self.remember_place(record);
        self.reopen_page(record);
        if let Some(live) = self.live.get_mut(&record.id) {
            // Its launcher may be about to report how the main process ended, and expects that the report is saved.
            live.unseen = unseen;
        }
        let (of, job) = part_of(record);
        self.cluster.node.find(JobId(record.id), &FoundPart { of, job, has_begun: record.pid != 0, populated });
        self.note(record.id, |r| r.event(unix_ms(), "found", "the daemon was restarted"));
        tracing::info!(id = record.id, "found a job of the last run");
        Ok(())
    }

    /// Records that a job ended while no daemon ran.
    fn end_unseen(&mut self, record: &Record) {
        self.live.remove(&record.id);
        self.note(record.id, |r| {
            r.ended_unix_ms = Some(unix_ms());
            r.lost = r.exit.is_none();
            r.event(unix_ms(), "lost", UNSEEN);
        });
        self.account(record.id);
        if let Some(part) = record.part {
            self.report(record.id, part.attempt);
        }
    }

    /// A cgroup without a record: it was made just before a crash, or the record is lost. Its processes, if any, run without slots.
    fn clear_orphan(&mut self, id: u64) {
        let Ok(cgroup) = self.machinery.tree.open_job(id) else { return };
        // What was adopted is released: it existed before.
        for annex in cgroup.part(|_| true) {
            if let Err(e) = annex.remove() {
                tracing::warn!(id, "the marker of an adopted cgroup could not be removed: {e}");
            }
        }
        if !cgroup.is_adopted() && cgroup.populated().unwrap_or(true) {
            tracing::warn!(id, "a cgroup holds processes of a job that is not in the state; they run unscheduled");
            self.orphans.push((id, cgroup));
        } else if let Err(e) = cgroup.remove() {
            tracing::warn!(id, "an empty cgroup could not be removed: {e}");
        }
    }

    /// The warning about processes that are in no record, while they live.
    pub(super) fn orphan_warning(&mut self) -> Option<Warning> {
        // An empty one is removed; if that fails, it is tried again the next time.
        self.orphans.retain(|(_, cgroup)| cgroup.populated().unwrap_or(true) || cgroup.remove().is_err());
        self.orphans.first()?;
        let numbers: Vec<String> = self.orphans.iter().take(10).map(|(id, _)| id.to_string()).collect();
        let tree = self.machinery.tree.v2_dir().display();
        Some(Warning {
            what: format!("{} cgroups have processes and no job: {}", self.orphans.len(), numbers.join(", ")),
            why: "the state does not list them: it is damaged, an older copy of it was restored, or they were to be adopted and could not be moved back"
                .to_owned(),
            hint: format!(
                "They run without slots and without cosched's limits. End them (`echo 1 > {tree}/job-N/cgroup.kill`), \
                 or stop the daemon, put the newer state back and start it: then they are jobs again."
            ),
        })
    }
}
