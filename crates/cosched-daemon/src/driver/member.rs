//! Processes enter and leave an existing job: the paper's process registration (LLNL, "Gang Scheduler Design").
//!
//! Which process may enter which job: the caller must be allowed to change the job, and the process must run as the job's owner, or the owner could
//! stop and kill processes of another user. A process is held by a pidfd from the check to the end of the move, so that its number cannot be reused
//! in between; a caller that saw the process earlier also gives its start time.

use super::signals::needs_cgroups;
use super::{Driver, adopt};
use crate::clock::unix_ms;
use crate::record::{self, Record};
use crate::refuse::{Answer, conflict, forbidden, internal, invalid, not_found};
use crate::rights::Peer;
use crate::users::user_name;
use cosched_api::{ErrorBody, Job, ProcessRequest};
use cosched_core::JobId;
use cosched_linux::Origin;
use cosched_linux::process::{self, Held};
use cosched_node::Input;
use std::io;

impl Driver {
    /// `POST /v1/jobs/{id}/processes`: the process is in the job's cgroups when this returns. One that is already in them stays.
    pub(super) fn add_process(&mut self, peer: Peer, id: u64, request: ProcessRequest) -> Answer<Job> {
        let mut record = self.changeable(peer, id)?;
        let held = hold(&request)?;
        match self.job_of(held.pid()) {
            Some(own) if own == id => return self.view_job(id),
            Some(other) => return Err(in_another_job(held.pid(), other)),
            None if self.machinery.tree.has_keepers() => return Err(needs_cgroups("a process that enters a job")),
            None => self.check_owner(peer, &record, held.pid())?,
        }
        let origin = Origin::of(held.pid());
        let what = || format!("process {} could not enter job {id}", held.pid());
        let live = self.live.get(&id).ok_or_else(|| internal(what(), "the job has no cgroup"))?;
        let cgroup = live.cgroup.clone();
        if cgroup.is_adopted() {
            return Err(adopt::stays_as_it_is(held.pid(), id));
        }
        match record.pid {
            0 => self.keep_caps(&cgroup, &held)?,
            _ => self.compare_caps(&cgroup, &held)?,
        }
        let moved = cgroup.attach(held.pid());
        if !held.alive() {
            self.put_back_successor(&held);
            return Err(gone(held.pid()));
        }
        if let Err(e) = moved {
            // It may already be in some of the job's cgroups.
            let _ = origin.as_ref().map(|origin| self.machinery.tree.send_back(held.pid(), origin));
            return Err(internal(what(), e));
        }
        cgroup.confine_process(held.pid(), &live.place.entered(&self.identity.cpus));
        self.cluster.handle(Input::Populated(JobId(id), true));
        if record.pid == 0 {
            record.pid = held.pid();
            record.origin = origin.as_ref().map(record::Origin::from);
            record.event(unix_ms(), "process", format!("its first process is {}", held.pid()));
            // It has entered, whether or not the disk takes the record.
            self.keep(record);
        }
        tracing::debug!(id, pid = held.pid(), uid = peer.uid, "a process entered a job");
        self.view_job(id)
    }

    /// Why a process or a cgroup cannot enter a job that is not on this node.
    pub(super) fn cannot_enter(&self, id: u64, what: &str) -> ErrorBody {
        let node = &self.cluster.node;
        if let Err(why) = node.whose(JobId(id)) {
            return self.refusal(why);
        }
        let (why, hint) = match node.is_over(JobId(id)) {
            true => (
                format!("job {id} has ended"),
                format!("`cosched show {id}` says how; `cosched ps` lists the running jobs."),
            ),
            false => (
                "the job has no CPUs on this node, or not yet".to_owned(),
                format!("`cosched show {id}` lists its nodes, and what it waits for."),
            ),
        };
        conflict(format!("{what} cannot enter job {id}"), why, hint)
    }

    /// `DELETE /v1/jobs/{id}/processes`: moves a process back to the origin of the job's first process.
    pub(super) fn remove_process(&mut self, peer: Peer, id: u64, request: ProcessRequest) -> Answer<Job> {
        let record = self.changeable(peer, id)?;
        let held = hold(&request)?;
        if self.job_of(held.pid()) != Some(id) {
            return Err(not_found(
                format!("process {} is not in job {id}", held.pid()),
                "It was never added, or was removed",
                format!("`cosched show {id}` lists the job's processes."),
            ));
        }
        if self.machinery.tree.has_keepers() {
            return Err(needs_cgroups("a process that leaves its job"));
        }
        let what = || format!("process {} could not leave job {id}", held.pid());
        if self.live.get(&id).is_some_and(|live| live.cgroup.is_adopted()) {
            return Err(adopt::stays_as_it_is(held.pid(), id));
        }
        let leave = record.whose().decide(self.caller(peer), |decided, asker| decided.leave(asker));
        leave.map_err(|why| self.refusal(why))?;
        let origin = self.way_back(peer, &record).ok_or_else(|| {
            let why = "The cgroup that the job came from no longer exists, and the caller is in a job itself";
            conflict(what(), why, "Call from a process that is not in a job.")
        })?;
        if let Some(live) = self.live.get(&id) {
            live.cgroup.confine_process(held.pid(), &live.place.left(&self.identity.cpus));
        }
        let moved = self.machinery.tree.send_back(held.pid(), &origin);
        if !held.alive() {
            self.put_back_successor(&held);
            return Err(gone(held.pid()));
        }
        moved.map_err(|e| internal(what(), e))?;
        tracing::debug!(id, pid = held.pid(), uid = peer.uid, "a process left a job");
        self.view_job(id)
    }

    /// The process must run as the job's owner. An administrator's job may contain any user's process, if an administrator adds it: no other user can
    /// change that job.
    fn check_owner(&self, peer: Peer, record: &Record, pid: i32) -> Answer<()> {
        let facts = process::facts(pid).ok_or_else(|| gone(pid))?;
        let owner = Peer { uid: record.uid, pid: None };
        let all_admins = self.rights.is_admin(peer) && self.rights.is_admin(owner);
        if facts.uid == record.uid || all_admins {
            return Ok(());
        }
        Err(forbidden(
            format!("process {pid} cannot enter job {}", record.id),
            format!("it runs as {}, and the job belongs to {}", user_name(facts.uid), user_name(record.uid)),
            "Add processes of the job's owner only.",
        ))
    }

    /// The cgroups for a process that leaves a job: the origin of the job's first process, otherwise the caller's own cgroups.
    fn way_back(&self, peer: Peer, record: &Record) -> Option<Origin> {
        // The caller may have ended since it connected, and its number may be another's.
        let callers = || {
            let held = Held::open(peer.pid?).ok()?;
            process::facts(held.pid()).filter(|facts| facts.uid == peer.uid)?;
            Origin::of(held.pid()).filter(|_| held.alive())
        };
        self.came_from(record).or_else(|| callers().filter(|origin| self.is_usable(origin)))
    }

    /// The origin of a job's first process, if it still exists.
    pub(super) fn came_from(&self, record: &Record) -> Option<Origin> {
        record.origin.as_ref().map(Origin::from).filter(|origin| self.is_usable(origin))
    }

    fn is_usable(&self, origin: &Origin) -> bool {
        let tree = &self.machinery.tree;
        origin.exists(tree.layout()) && tree.job_of_path(&origin.v2).is_none()
    }

    /// The process ended while it was moved.
    pub(super) fn put_back_successor(&self, held: &Held) {
        if let Some(result) = self.machinery.tree.put_back_successor(held) {
            tracing::warn!(pid = held.pid(), ?result, "a process ended while it was moved, and its pid was reused");
        }
    }
}

/// Opens exactly the process that the request names.
fn hold(request: &ProcessRequest) -> Answer<Held> {
    let pid = request.pid;
    if pid <= 0 {
        let hint = "Give the pid of a process as the daemon sees it: 1 or more.";
        return Err(invalid(format!("{pid} is not a process"), "process ids are positive", hint));
    }
    let held = Held::open(pid).map_err(|error| not_held(pid, &error))?;
    if request.start_ticks.is_some_and(|ticks| ticks != held.start_ticks()) {
        return Err(not_found(
            format!("process {pid} has ended"),
            "its pid was reused by another process",
            "Nothing was changed.",
        ));
    }
    Ok(held)
}

fn not_held(pid: i32, error: &io::Error) -> ErrorBody {
    match error.raw_os_error() {
        // ENOENT and EINVAL: pidfd_open of a thread that does not lead its process, by kernel version.
        Some(22 | 2) => invalid(
            format!("{pid} is a thread, not a process"),
            "a process enters a job with all its threads",
            "Give the pid of its process (getpid).",
        ),
        Some(3) => gone(pid),
        _ => internal(format!("process {pid} cannot be held"), error),
    }
}

fn gone(pid: i32) -> ErrorBody {
    not_found(format!("there is no process {pid}"), "It has ended, or never existed", "Nothing was changed.")
}

fn in_another_job(pid: i32, other: u64) -> ErrorBody {
    conflict(
        format!("process {pid} is in job {other}"),
        "a process is in one job at a time",
        format!("Take it out of job {other} first."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_api::ErrorCode;
    use cosched_linux::process::start_ticks;

    fn held(pid: i32, start_ticks: Option<u64>) -> Answer<Held> {
        hold(&ProcessRequest { pid, start_ticks })
    }

    #[test]
    fn the_process_that_is_meant_is_held_and_no_other() {
        let own = std::process::id() as i32;
        let ticks = start_ticks(own).unwrap();
        assert_eq!(held(own, None).unwrap().pid(), own);
        assert_eq!(held(own, Some(ticks)).unwrap().pid(), own);
        let other = held(own, Some(ticks + 1)).unwrap_err();
        assert!(other.code == ErrorCode::NotFound && other.why.contains("reused by another process"), "{other:?}");
        assert_eq!(held(i32::MAX, None).unwrap_err().code, ErrorCode::NotFound);
        for pid in [0, -1, i32::MIN] {
            assert_eq!(held(pid, None).unwrap_err().code, ErrorCode::Invalid, "{pid}");
        }
    }

    #[test]
    fn a_thread_is_not_a_process() {
        let tid = std::thread::spawn(|| rustix::thread::gettid().as_raw_nonzero().get()).join();
        // The number is that of an ended process or a thread: never of a process of ours.
        assert!(held(tid.unwrap(), None).is_err());
        for number in [22, 2] {
            let told = not_held(7, &io::Error::from_raw_os_error(number));
            assert!(told.what.contains("7 is a thread"), "{told:?}");
        }
        assert_eq!(not_held(7, &io::Error::from_raw_os_error(3)).code, ErrorCode::NotFound);
        assert_eq!(not_held(7, &io::Error::from_raw_os_error(1)).code, ErrorCode::Internal);
    }
}
