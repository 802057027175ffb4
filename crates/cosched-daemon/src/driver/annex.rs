//! Adopted cgroups as parts of a job beside its own: the pods of a gang (decision 0077).
//!
//! Which cgroup may become a part of which job: the caller must be allowed to change the job, and the job's owner must be allowed to adopt the cgroup:
//! he may stop and kill what is in it from then on. It runs on, whatever becomes of the job; what its owner ends in it is over.

use super::finish::LET_GO;
use super::{Driver, adopt};
use crate::clock::unix_ms;
use crate::record::{Adopted, Record};
use crate::refuse::{Answer, conflict, internal, not_found, refuse};
use crate::rights::Peer;
use crate::sizes;
use crate::users::user_name;
use cosched_api::{CgroupRequest, ErrorCode, Job};
use cosched_cluster::wire::OnNodeLoss;
use cosched_core::JobId;
use cosched_linux::JobCgroup;
use cosched_linux::adopt::{Adoptee, Size};
use cosched_linux::annex::ANNEXES_MAX;
use cosched_node::Input;
use std::path::{Path, PathBuf};
use tokio::time::Instant;

/// The limit on the bytes of the paths of a job's annexes.
const PATHS_BYTES_MAX: u64 = 64 << 10;

/// The path of an adopted cgroup, as users know it.
pub(super) fn shown(cgroup: &JobCgroup) -> String {
    cgroup.v2_path_relative().display().to_string()
}

impl Driver {
    /// `POST /v1/jobs/{id}/cgroups`: the cgroup is a part of the job when this returns. One that is a part of another job leaves that.
    pub(super) fn add_cgroup(&mut self, peer: Peer, id: u64, request: &CgroupRequest) -> Answer<Job> {
        self.move_time(peer)?;
        let begun = Instant::now();
        let added = self.annex(peer, id, request);
        self.move_times.add(peer.uid, begun);
        added
    }

    fn annex(&mut self, peer: Peer, id: u64, request: &CgroupRequest) -> Answer<Job> {
        let path = self.machinery.tree.path_of(Path::new(&request.cgroup));
        if !self.live.contains_key(&id) {
            return Err(self.cannot_enter(id, &format!("cgroup {}", path.display())));
        }
        let record = self.changeable(peer, id)?;
        self.check_safety()?;
        self.may_have_annexes(id)?;
        match self.annexed_to(&path) {
            Some(own) if own == id => return self.view_job(id),
            Some(other) => self.take_out(peer, other, &path)?,
            None => (),
        }
        let adoptee = self.machinery.tree.adoptee(&path).map_err(adopt::conflict)?;
        self.may_grow(id, &adoptee)?;
        let pids = self.check_adoptee(Peer { uid: record.uid, pid: None }, &adoptee)?;
        let what = || format!("{} could not enter job {id}", path.display());
        let live = self.live.get(&id).ok_or_else(|| internal(what(), "the job has no cgroup"))?;
        let annex = self.machinery.tree.annex(&live.cgroup, &adoptee).map_err(|e| adopt::failed(what(), e))?;
        if let Err(e) = self.watch.add(id, &annex.events_path()) {
            self.part(&[id], |of| of.v2_path_relative() == path);
            return Err(internal(what(), e));
        }
        self.switch_is_new(id);
        self.cluster.handle(Input::Populated(JobId(id), true));
        let is_back = record.adopted.is_some_and(|of| of.released);
        if record.pid == 0 || is_back {
            self.remember(id, |record| {
                (record.pid, record.adopted) = (pids.first().copied().unwrap_or(0), None);
                record.event(unix_ms(), "adopted", "");
            });
        }
        self.view_job(id)
    }

    /// `DELETE /v1/jobs/{id}/cgroups`: the cgroup is no part of the job any more, and runs.
    pub(super) fn remove_cgroup(&mut self, peer: Peer, id: u64, request: &CgroupRequest) -> Answer<Job> {
        let path = self.machinery.tree.path_of(Path::new(&request.cgroup));
        if self.annexed_to(&path) != Some(id) {
            let (what, why) =
                (format!("{} is no part of job {id}", path.display()), "It was never added, or was removed");
            return Err(not_found(what, why, format!("`cosched show --json {id}` lists its parts (`cgroups`).")));
        }
        let begun = Instant::now();
        let taken = self.take_out(peer, id, &path);
        self.move_times.add(peer.uid, begun);
        taken?;
        self.view_job(id)
    }

    /// `POST /v1/jobs/{id}/release` of a job with annexes: all of them.
    pub(super) fn release_annexes(&mut self, peer: Peer, record: &Record) -> Answer<()> {
        self.may_leave(peer, record)?;
        let first = self.live.get(&record.id).and_then(|live| live.cgroup.annexes().first().map(shown));
        self.part(&[record.id], |_| true);
        let is_empty = self.live.get(&record.id).is_some_and(|live| !live.cgroup.populated().unwrap_or(true));
        self.remember(record.id, |record| {
            if is_empty {
                record.adopted = Some(Adopted { cgroup: first, released: true, ..Adopted::default() });
            }
            record.event(unix_ms(), "released", format!("by {}", user_name(peer.uid)));
        });
        Ok(())
    }

    pub(super) fn may_leave(&self, peer: Peer, record: &Record) -> Answer<()> {
        let leave = record.whose().decide(self.caller(peer), |decided, asker| decided.leave(asker));
        leave.map_err(|why| self.refusal(why))
    }

    /// Takes out those without a process, and those that have grown too large.
    pub(super) fn look_at_annexes(&mut self) {
        let tasks_max = self.config.limits.tasks_per_job;
        let too_large: Vec<PathBuf> =
            self.live.values().flat_map(|live| excess(live.cgroup.annexes(), tasks_max)).collect();
        let ids: Vec<u64> = self.live.keys().copied().collect();
        self.part(&ids, |annex| {
            too_large.iter().any(|path| path == annex.v2_path_relative()) || !annex.populated().unwrap_or(true)
        });
    }

    /// The job of which this cgroup is a part.
    fn annexed_to(&self, path: &Path) -> Option<u64> {
        let has = |cgroup: &JobCgroup| cgroup.annexes().iter().any(|annex| annex.v2_path_relative() == path);
        self.live.iter().find(|(_, live)| has(&live.cgroup)).map(|(id, _)| *id)
    }

    fn may_have_annexes(&self, id: u64) -> Answer<()> {
        let what = || format!("job {id} takes no cgroup");
        let live = self.live.get(&id).map_or(0, |live| live.cgroup.annexes().len());
        if live >= ANNEXES_MAX {
            let why = format!("it has {live} beside its own, which is the limit");
            return Err(refuse(ErrorCode::Limit, what(), why, "Make another job of the rest."));
        }
        let ask = self.cluster.node.member().job(JobId(id)).map(|job| &job.ask);
        let has = |is: fn(&cosched_cluster::wire::JobAsk) -> bool| ask.is_some_and(is);
        let is_closing = self.cluster.node.part(JobId(id)).is_some_and(|(part, _)| part.closing);
        let why = match () {
            () if is_closing => "it is about to end",
            () if self.live.get(&id).is_some_and(|live| live.cgroup.is_adopted()) => "it is an adopted cgroup itself",
            () if has(|ask| ask.terms.exclusive_cores) => {
                "it has its cores to itself, and the CPUs of what is adopted are its owner's matter"
            }
            () if has(|ask| ask.terms.memory_bytes_max.is_some()) => {
                "it has a memory limit, and the owner of an adopted cgroup sets its limits"
            }
            () if has(|ask| ask.on_node_loss == OnNodeLoss::Requeue) => "it may be started again on another node",
            () => return Ok(()),
        };
        Err(conflict(what(), why, "Register a job for it: `once`, with a name and without a process."))
    }

    /// All annexes of a job together may be as large as one adopted cgroup: they are switched at once. Their paths are in each answer about the job.
    fn may_grow(&self, id: u64, adoptee: &Adoptee) -> Answer<()> {
        let what = || format!("job {id} takes no such cgroup");
        let annexes = self.live.get(&id).map_or_else(Vec::new, |live| live.cgroup.annexes());
        let size = annexes.iter().map(JobCgroup::size).sum::<Size>() + adoptee.size();
        let bytes = paths_bytes(&annexes) + sizes::weight(&adoptee.relative().display().to_string()) as u64;
        let why = match size.excess(self.config.limits.tasks_per_job) {
            Some(why) => format!("with it, {why}"),
            None if bytes > PATHS_BYTES_MAX => {
                format!("the paths of its cgroups would have {bytes} bytes, more than {PATHS_BYTES_MAX}")
            }
            None => return Ok(()),
        };
        Err(refuse(ErrorCode::Limit, what(), why, "Make another job of the rest."))
    }

    fn take_out(&mut self, peer: Peer, id: u64, path: &Path) -> Answer<()> {
        let record = self.changeable(peer, id)?;
        self.may_leave(peer, &record)?;
        self.part(&[id], |annex| annex.v2_path_relative() == path);
        Ok(())
    }

    /// Takes annexes out of jobs: they run on, and are no job.
    fn part(&mut self, ids: &[u64], goes: impl Fn(&JobCgroup) -> bool) {
        let (mut gone, mut left) = (Vec::new(), Vec::new());
        for &id in ids {
            let Some(live) = self.live.get(&id) else { continue };
            let parted = live.cgroup.part(&goes);
            if parted.is_empty() {
                continue;
            }
            let cgroups = [live.cgroup.annexes(), vec![live.cgroup.clone()]].concat();
            left.push((id, live.cgroup.populated().unwrap_or(true)));
            gone.extend(parted);
            self.watch.remove(id);
            self.watch_parts(id, &cgroups);
            self.switch_is_new(id);
        }
        if gone.is_empty() {
            return;
        }
        // The markers stay until the slot thread has a table that does not freeze these cgroups.
        self.install();
        self.letting_go.extend(gone);
        self.machinery.slots.wait_installed(LET_GO);
        self.let_go();
        for (id, populated) in left {
            self.cluster.handle(Input::Populated(JobId(id), populated));
        }
    }

    /// One that cannot be watched may have ended already; `look_at_annexes` finds it.
    pub(super) fn watch_parts(&mut self, id: u64, cgroups: &[JobCgroup]) {
        for cgroup in cgroups {
            if let Err(e) = self.watch.add(id, &cgroup.events_path()) {
                tracing::warn!(id, "the end of a part is noticed late: {e}");
            }
        }
    }

    fn switch_is_new(&mut self, id: u64) {
        self.plan_is_new = true;
        self.boosts.forget_switch(id);
    }
}

/// The bytes that the paths of annexes take in an answer.
pub(super) fn paths_bytes(annexes: &[JobCgroup]) -> u64 {
    annexes.iter().map(|annex| sizes::weight(&shown(annex)) as u64).sum()
}

/// The annexes of one job that have to go, the largest first, until the rest is as large as a job may be.
fn excess(annexes: Vec<JobCgroup>, tasks_max: u64) -> Vec<PathBuf> {
    let mut sized: Vec<(Size, JobCgroup)> = annexes.into_iter().map(|annex| (annex.size(), annex)).collect();
    sized.sort_by_key(|(size, _)| *size);
    let mut go = Vec::new();
    while let Some(why) = sized.iter().map(|(size, _)| *size).sum::<Size>().excess(tasks_max) {
        let Some((_, annex)) = sized.pop() else { break };
        tracing::warn!(id = annex.id(), "{} is no part of the job any more: together, {why}", shown(&annex));
        go.push(annex.v2_path_relative().to_owned());
    }
    go
}
