//! The resources of a new job on this node: a process that may become one, cgroups, a place in the plan.

use super::adopt::Adoption;
use super::places::Place;
use super::{Driver, Live, adopt};
use crate::record::{ALONE, Record};
use crate::refuse::{Answer, conflict, forbidden, internal, invalid, not_found};
use crate::rights::Peer;
use crate::users::user_name;
use crate::words;
use cosched_api::{ErrorBody, JobRequest};
use cosched_core::SlotShare;
use cosched_core::cluster::LocalJob;
use cosched_linux::process::{self, Held};
use cosched_linux::{Blocks, JobCgroup};
use cosched_node::ENTER_GRACE_NS;
use std::io;
use tokio::time::Instant;

/// The limit on a user's jobs without a process.
const EMPTY_JOBS_MAX: usize = 16;

impl Driver {
    /// Limits jobs without a process, which cost their user nothing.
    pub(super) fn check_empty_jobs(&self, peer: Peer) -> Answer<()> {
        let empty =
            self.live.keys().filter_map(|id| self.state.jobs.get(id)).filter(|r| r.pid == 0 && r.uid == peer.uid);
        if empty.count() + self.cluster.node.empty_jobs_of(peer.uid) < EMPTY_JOBS_MAX {
            return Ok(());
        }
        Err(conflict(
            "another job without a process is refused",
            format!("you have {EMPTY_JOBS_MAX} of them"),
            format!(
                "Add processes to them, or wait: after {} s without one a job ends.",
                ENTER_GRACE_NS / 1_000_000_000
            ),
        ))
    }

    /// Opens a process that may become the peer's job; the checks apply to the open process, whatever happens to its number. It must be in no job: it
    /// would leave that job, and administrators' decisions about it.
    pub(super) fn hold_own(&self, peer: Peer, pid: i32, requeues: bool) -> Answer<Held> {
        let gone = || {
            let (what, why) = (format!("there is no process {pid}"), "it has ended");
            not_found(what, why, "Nothing was changed.")
        };
        let held = Held::open(pid);
        check_process(peer, pid)?;
        if let Some(other) = self.job_of(pid) {
            return Err(conflict(
                format!("process {pid} cannot become a job"),
                format!("it is in job {other}, and a process is in one job at a time"),
                format!(
                    "Run the command without `cosched run`: it is part of job {other}. Or run it from outside of that job."
                ),
            ));
        }
        let held = held.ok().filter(Held::alive).ok_or_else(gone)?;
        self.check_caps(&held, requeues)?;
        Ok(held)
    }

    /// Makes the cgroups and moves the first process into them; leaves nothing behind when it fails.
    pub(super) fn enter(
        &mut self,
        record: &Record,
        held: Option<&Held>,
        adoption: Option<&Adoption>,
        memory_bytes_max: Option<u64>,
    ) -> Answer<()> {
        let what = || format!("job {} got no cgroup", record.id);
        let tree = &self.machinery.tree;
        let cgroup = match adoption.and_then(|adoption| adoption.cgroup.as_ref()) {
            Some(adoptee) => {
                self.check_adoptee(Peer { uid: record.uid, pid: None }, adoptee)?;
                tree.adopt(record.id, adoptee).map_err(|e| adopt::failed(what(), e))
            }
            None => tree.create_job(record.id).map_err(|e| internal(what(), e)),
        }?;
        let limit = |bytes| cgroup.limit_memory(bytes).map_err(|e| internal(what(), e));
        let attach = |held| match adoption {
            Some(_) => self.attach_family(record, &cgroup, held),
            None => self.attach(&cgroup, held).map_err(|e| internal(what(), e)),
        };
        let entered = held
            .map_or(Ok(()), |held| self.keep_caps(&cgroup, held))
            .and_then(|()| adoption.map_or(Ok(()), |adoption| adoption.note_quota(&cgroup)))
            .and_then(|()| memory_bytes_max.map_or(Ok(()), limit))
            .and_then(|()| held.map_or(Ok(()), attach))
            .and_then(|()| self.watch.add(record.id, &cgroup.events_path()).map_err(|e| internal(what(), e)));
        if let Err(e) = entered {
            match (adoption, &record.origin) {
                // What was to become a job continues as before.
                (Some(_), Some(origin)) => {
                    let limit = self.move_time_max();
                    if let Err(e) = self.send_all_back(record.uid, &cgroup, &origin.into(), limit) {
                        tracing::warn!(id = record.id, "what was not adopted could not be moved back: {e}");
                    }
                }
                (Some(_), None) => (),
                (None, _) => drop(cgroup.kill()),
            }
            if let Err(e) = cgroup.remove() {
                tracing::warn!("the cgroup of a job that failed to start could not be removed: {e}");
                // `cosched status` warns of it as long as there are processes in it.
                self.orphans.push((record.id, cgroup));
            }
            return Err(e);
        }
        let place = Place::new(&self.identity.cpus);
        self.live.insert(record.id, Live::of_record(cgroup, record, place));
        Ok(())
    }

    /// Moves a process that may have ended since it was checked: a process that has its number now stays where it is, or is moved back.
    fn attach(&self, cgroup: &JobCgroup, held: &Held) -> io::Result<()> {
        let ended = || io::Error::other(format!("process {} has ended", held.pid()));
        // The job may have waited, and its process may have been put into another job meanwhile.
        if let Some(other) = self.job_of(held.pid()) {
            return Err(io::Error::other(format!("process {} is in job {other}", held.pid())));
        }
        if !held.alive() {
            return Err(ended());
        }
        let moved = cgroup.attach(held.pid());
        if !held.alive() {
            self.put_back_successor(held);
            return Err(ended());
        }
        moved.map_err(io::Error::other)
    }
}

/// A job's part on this node, in the form that the node plans with.
pub(super) fn part_of(record: &Record) -> (cosched_node::PartOf, LocalJob) {
    let part = record.part.unwrap_or(ALONE);
    let of = cosched_node::PartOf {
        attempt: part.attempt,
        tree: part.tree,
        lead: part.lead,
        alike: part.alike,
        closing: part.closing,
        grace_ms: part.grace_ms,
        planned_ms: part.planned_ms,
        decided: record.decided,
    };
    let job = LocalJob {
        owner: record.uid,
        class: words::core_class(record.class),
        policy: record.own_policy.map(words::core_policy),
        slot_share: record.share_permille.and_then(SlotShare::new),
        cpus: record.cpus,
        memory_bytes: record.mem_bytes.unwrap_or(0),
        suspended: record.suspended,
        spans: part.spans,
        exclusive_cores: record.exclusive_cores,
    };
    (of, job)
}

impl Live {
    pub(super) fn of_record(cgroup: cosched_linux::JobCgroup, record: &Record, place: Place) -> Live {
        Live {
            quota: cgroup.quota(),
            // What was adopted, or found again, has used CPU time before.
            sampled: (Instant::now(), cgroup.cpu_time_ns().unwrap_or(0)),
            cgroup,
            place,
            cpu_percent: None,
            dropped: false,
            ledger: super::shares::Ledger::default(),
            page: None,
            blocks: Blocks::default(),
            unseen: false,
            registered: u32::from(record.pid != 0),
        }
    }
}

/// A job registered `once` needs a name, and no process, because a second request with the name has none to begin it with.
pub(super) fn check_once(request: &JobRequest) -> Answer<()> {
    if !request.once || request.pid == 0 && request.name.is_some() {
        return Ok(());
    }
    Err(invalid(
        "the job cannot be registered `once`",
        "it has a process, or no name",
        "Give it a name and pid 0, then add processes.",
    ))
}

/// A job of another user begins empty: processes that are added later are checked against the owner.
pub(super) fn process_for_another(owner_uid: u32) -> ErrorBody {
    invalid(
        format!("a job of {} cannot be registered with a process", user_name(owner_uid)),
        "`owner_uid` names another user, and `pid` a process",
        "Register it with pid 0, then add processes that run as its owner.",
    )
}

/// The process must be the peer itself or its child, and run as the peer's user: no user registers another's processes.
fn check_process(peer: Peer, pid: i32) -> Answer<()> {
    let not_yours = |why: String| {
        let hint = "Register the calling process or a child of it, as `cosched run` does.";
        forbidden(format!("process {pid} cannot become a job"), why, hint)
    };
    let facts = process::facts(pid).ok_or_else(|| not_yours("there is no such process".to_owned()))?;
    let related = peer.pid == Some(pid) || peer.pid == Some(facts.ppid);
    if !related {
        return Err(not_yours("it is neither the calling process nor a child of it".to_owned()));
    }
    if facts.uid != peer.uid && peer.uid != 0 {
        return Err(not_yours(format!("it runs as uid {}, you are uid {}", facts.uid, peer.uid)));
    }
    Ok(())
}
