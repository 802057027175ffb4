//! Running processes become a job without a restart, and are released again (decision 0052).
//!
//! Which cgroup or process may become a job: an administrator may adopt any user's; a user may adopt what belongs to this user alone. Nothing may be
//! adopted that would stop this daemon, the machine's first process or another job.

use super::Driver;
use crate::clock::unix_ms;
use crate::record::{Adopted, Record};
use crate::refuse::{Answer, internal, refuse};
use crate::rights::Peer;
use crate::users::user_name;
use cosched_api::{Adopt, ErrorBody, ErrorCode, Job, JobRequest, OnNodeLoss};
use cosched_core::{Disposition, JobId, SlotShare, Standing};
use cosched_linux::adopt::Adoptee;
use cosched_linux::family::{family, too_many};
use cosched_linux::process::{self, Held};
use cosched_linux::{Entry, JobCgroup, Origin, Problem, Quota, TreeError};
use cosched_node::Input;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// How often the driver checks whether a late slot thread has released its old table.
const LET_GO_PERIOD: Duration = Duration::from_millis(20);
/// How often the driver checks whether adopted cgroups still exist.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// The time that moves of one user's processes may take in `MOVE_PERIOD`: the driver does nothing else meanwhile. In a cluster it is a fifth of a node's
/// lease, if that is less: a node that is silent for longer loses its slots.
const MOVE_TIME_MAX: Duration = Duration::from_secs(2);
const MOVE_PERIOD: Duration = Duration::from_secs(60);
/// With less than that no move is begun.
const MOVE_TIME_MIN: Duration = Duration::from_millis(50);

/// How long users' processes were examined and moved since when.
#[derive(Debug, Default)]
pub(super) struct MoveTimes(RefCell<BTreeMap<u32, (Instant, Duration)>>);

impl MoveTimes {
    fn left(&self, uid: u32, most: Duration, now: Instant) -> Duration {
        let mut times = self.0.borrow_mut();
        times.retain(|_, (since, _)| now.duration_since(*since) < MOVE_PERIOD);
        times.get(&uid).map_or(most, |(_, time)| most.saturating_sub(*time))
    }

    /// Does something of this user's, and counts its time.
    fn count<T>(&self, uid: u32, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = work();
        self.add(uid, begun);
        done
    }

    /// Counts the time since then.
    pub(super) fn add(&self, uid: u32, begun: Instant) {
        self.0.borrow_mut().entry(uid).or_insert((begun, Duration::ZERO)).1 += begun.elapsed();
    }
}

/// Existing processes that are to become a job.
#[derive(Debug)]
pub(super) struct Adoption {
    /// A cgroup that stays where it is; without one the launcher's process is moved, with its descendants.
    pub(super) cgroup: Option<Adoptee>,
    adopted: Adopted,
    /// Its first process.
    pub(super) pid: i32,
    /// Its owner's quota, which is to be a share.
    quota: Option<Quota>,
}

impl Adoption {
    /// Adds the adoption to the job's record. The exit status of an adopted job is unknown: it has no main process.
    pub(super) fn note(&self, record: &mut Record) {
        (record.pid, record.by_api) = (self.pid, true);
        record.adopted = Some(self.adopted.clone());
        // Events are public; the job's origin may be private.
        record.event(unix_ms(), "adopted", "");
    }

    pub(super) fn set_quota(&mut self, quota: Quota, share: SlotShare) {
        (self.quota, self.adopted.quota_permille) = (Some(quota), Some(share.permille()));
    }

    /// Before the quota is lifted for the first time.
    pub(super) fn note_quota(&self, cgroup: &JobCgroup) -> Answer<()> {
        let Some(quota) = &self.quota else { return Ok(()) };
        let what = || "the quota of what is adopted cannot be turned into a share".to_owned();
        cgroup.note_quota(quota).map_err(|e| internal(what(), e))
    }
}

/// An adopted gang never runs in the background of another gang's slot: it has no mark of ours that would keep it there.
pub(super) fn fills_nothing(entry: &mut Entry) {
    if entry.switch.is_adopted() && entry.otherwise == Disposition::Background {
        entry.otherwise = Disposition::Stop;
    }
}

/// Whether a job has no turn until further notice: its user has suspended it, or it waits for memory.
fn stands_still(planned: Option<Standing>, suspended: bool) -> bool {
    planned.map_or(suspended, |standing| standing == Standing::Suspended)
}

/// Checks whether the rest of the request contradicts an adoption.
pub(super) fn check_request(request: &JobRequest, owner: u32, peer: Peer) -> Answer<()> {
    let why = match request {
        JobRequest { share_from_quota: true, share_max: Some(_), .. } => {
            "a share is given twice: `share_max` and `share_from_quota`"
        }
        _ if owner != peer.uid => "`owner_uid` names another user; the user who adopts a job is its owner",
        JobRequest { pid: 1.., .. } | JobRequest { pid: ..=-1, .. } => "`pid` names a process beside it",
        JobRequest { once: true, .. } => "`once` is for jobs that launchers start",
        JobRequest { nodes, .. } if !nodes.is_empty() => "`nodes` are given, and an adopted job is on this node alone",
        JobRequest { on_node_loss: Some(OnNodeLoss::Requeue), .. } => {
            "it cannot be started again: how it was started is unknown"
        }
        JobRequest { mem_bytes_max: Some(_), .. } => {
            "`mem_bytes_max` is a limit, and the owner of an adopted cgroup sets its limits"
        }
        JobRequest { exclusive_cores: true, .. } => {
            "the CPUs of what is adopted are its owner's matter, and it would use the siblings itself"
        }
        JobRequest { waiting: Some(_), .. } => "`waiting` needs a library that is loaded when a program starts",
        _ => return Ok(()),
    };
    let hint = "Leave that out; `cosched adopt --help` lists the options.";
    Err(refuse(ErrorCode::Invalid, "nothing was adopted", why, hint))
}

/// Refusal: only the owner of an adopted cgroup decides which processes are in it.
pub(super) fn stays_as_it_is(pid: i32, id: u64) -> ErrorBody {
    refuse(
        ErrorCode::Conflict,
        format!("process {pid} cannot be moved into job {id} or out of it"),
        "the job is an adopted cgroup, whose processes are managed by its owner (systemd, a container engine)",
        format!("Put it into that cgroup yourself, or release the whole job: `cosched release {id}`."),
    )
}

fn forbidden(what: &str, why: String) -> ErrorBody {
    let hint = "Adopt what is yours alone, or ask an administrator to adopt it.";
    refuse(ErrorCode::Forbidden, format!("{what} cannot become your job"), why, hint)
}

fn forbidden_by(problem: Problem) -> ErrorBody {
    refuse(ErrorCode::Forbidden, problem.what, problem.why, problem.hint)
}

/// The kernel enforces `tasks_per_job` on a job's own cgroup, but not on an adopted one.
fn check_tasks(what: &str, has: u64, most: u64) -> Answer<()> {
    if has <= most {
        return Ok(());
    }
    let hint = "End some of them, or ask an administrator to set more in [limits].";
    let why = format!("it has {has} processes and threads, and a job may have at most {most} (tasks_per_job)");
    Err(refuse(ErrorCode::Limit, format!("{what} cannot become a job"), why, hint))
}

/// A problem is reported in its own words, any other error as a failure of the machine.
pub(super) fn failed(what: String, error: TreeError) -> ErrorBody {
    match error {
        TreeError::Problem(problem) => conflict(problem),
        error => internal(what, error),
    }
}

pub(super) fn conflict(problem: Problem) -> ErrorBody {
    refuse(ErrorCode::Conflict, problem.what, problem.why, problem.hint)
}

impl Driver {
    /// The signs of life of adopted services that stand still come from here.
    pub(super) fn heed_watchdogs(&mut self) {
        let records = self.live.keys().filter_map(|id| self.state.jobs.get(id));
        let planned = |id| self.plan.jobs.get(&JobId(id)).map(|job| job.standing);
        let stopped = records.filter(|record| stands_still(planned(record.id), record.suspended));
        let cgroups = stopped.filter_map(|record| record.adopted.as_ref()?.cgroup.as_ref());
        self.machinery.watchdogs.set(cgroups.map(PathBuf::from).collect());
    }

    /// Opens what is to become the peer's job, and checks whether the peer has the right to adopt it.
    pub(super) fn adoption(&self, peer: Peer, adopt: &Adopt) -> Answer<(Option<Held>, Adoption)> {
        self.check_safety()?;
        self.move_time(peer)?;
        self.move_times.count(peer.uid, || self.examined(peer, adopt))
    }

    fn examined(&self, peer: Peer, adopt: &Adopt) -> Answer<(Option<Held>, Adoption)> {
        let from = adopt.from.clone();
        match (&adopt.cgroup, adopt.pid) {
            (Some(path), None) => Ok((None, self.adopt_cgroup(peer, Path::new(path), from)?)),
            (None, Some(pid)) => {
                let held = Held::open(pid).map_err(|_| no_process(pid))?;
                // Rights first: nothing is walked for a peer that may not adopt it.
                self.may_come(peer, pid).map_err(forbidden_by)?;
                match self.machinery.tree.own_cgroup_of(pid) {
                    Some(own) if self.may_have(peer, &own) => Ok((None, self.adopt_cgroup(peer, &own, from)?)),
                    _ => {
                        self.check_family(peer, &held)?;
                        let adopted = Adopted { from, ..Adopted::default() };
                        Ok((Some(held), Adoption { cgroup: None, adopted, pid, quota: None }))
                    }
                }
            }
            _ => {
                let hint = "Name a cgroup (`cgroup`) or a process (`pid`).";
                Err(refuse(ErrorCode::Invalid, "nothing was adopted", "`adopt` needs one of `cgroup` and `pid`", hint))
            }
        }
    }

    /// No parent process could thaw an adopted service, so its safety must not depend on one.
    pub(super) fn check_safety(&self) -> Answer<()> {
        let why = match self.machinery.guard.kernel_agent() {
            Some(why) => {
                format!("it would stay frozen if the daemon and its guard were killed at one instant: {why}")
            }
            None if self.mechanism == "signals" => {
                "gangs are stopped by signals here, and services see them".to_owned()
            }
            None => return Ok(()),
        };
        let hint = "Run coschedd as root, with a kernel that has the v2 freezer and v1 cgroups; `cosched status` says what is missing.";
        Err(refuse(ErrorCode::Unsupported, "this daemon adopts nothing", why, hint))
    }

    fn adopt_cgroup(&self, peer: Peer, path: &Path, from: Option<String>) -> Answer<Adoption> {
        let adoptee = self.machinery.tree.adoptee(path).map_err(conflict)?;
        let pids = self.check_adoptee(peer, &adoptee)?;
        let pid = pids.first().copied().unwrap_or(0);
        let caps = self.machinery.tree.caps_left_by(pid).unwrap_or_default();
        let cpus = caps.cpus.iter().map(|cpus| format!("CPUs {cpus} (cpuset.cpus)"));
        let limits = caps.caps.iter().map(ToString::to_string).chain(cpus).collect();
        let cgroup = Some(adoptee.relative().to_string_lossy().into_owned());
        let adopted = Adopted { cgroup, from, limits, ..Adopted::default() };
        Ok(Adoption { cgroup: Some(adoptee), adopted, pid, quota: None })
    }

    fn may_have(&self, peer: Peer, path: &Path) -> bool {
        let owner = self.machinery.tree.adoptee(path).map(|adoptee| adoptee.owner());
        self.rights.is_admin(peer) || owner.is_ok_and(|owner| owner == peer.uid)
    }

    /// Whether this cgroup may become the peer's job now; returns its processes.
    pub(super) fn check_adoptee(&self, peer: Peer, adoptee: &Adoptee) -> Answer<Vec<i32>> {
        let what = adoptee.relative().display().to_string();
        // What is started again at once has the path of a job that is over, although that is noticed later.
        let is_same = |cgroup: &JobCgroup| adoptee.overlaps(cgroup.v2_path_relative()) && !cgroup.is_removed();
        let live = self.live.values().flat_map(|live| live.cgroup.outside());
        // A late slot thread may still freeze those that are let go.
        if let Some(id) =
            live.chain(self.letting_go.iter().flat_map(JobCgroup::outside)).find(is_same).map(|of| of.id())
        {
            let hint = format!("`cosched release {id}` releases that job.");
            let why = format!("job {id} is that cgroup, is in it, or contains it");
            return Err(refuse(ErrorCode::Conflict, format!("{what} cannot become a job"), why, hint));
        }
        let is_admin = self.rights.is_admin(peer);
        if !is_admin && adoptee.owner() != peer.uid {
            return Err(forbidden(&what, format!("it belongs to {}", user_name(adoptee.owner()))));
        }
        check_tasks(&what, adoptee.size().tasks, self.config.limits.tasks_per_job)?;
        let pids = adoptee.procs().map_err(|e| {
            let hint = "Adopt the cgroups below it, one by one.";
            refuse(ErrorCode::Conflict, format!("{what} cannot become a job"), e.to_string(), hint)
        })?;
        let other = |pid: &i32| process::facts(*pid).filter(|facts| !is_admin && facts.uid != peer.uid);
        match pids.iter().find_map(|pid| Some((pid, other(pid)?))) {
            Some((pid, facts)) => {
                Err(forbidden(&what, format!("process {pid} in it runs as {}", user_name(facts.uid))))
            }
            // Without a pids controller the kernel does not count them.
            None => check_tasks(&what, pids.len() as u64, self.config.limits.tasks_per_job).map(|()| pids),
        }
    }

    /// Whether a process may be moved into the peer's job with its descendants.
    fn check_family(&self, peer: Peer, held: &Held) -> Answer<()> {
        let what = format!("process {}", held.pid());
        let refused =
            |why: String, hint: &str| refuse(ErrorCode::Conflict, format!("{what} cannot become a job"), why, hint);
        if let Some(other) = self.job_of(held.pid()) {
            return Err(refused(format!("it is in job {other} already"), "A process is in one job at a time."));
        }
        let hint = "Put it into a cgroup of its own, and adopt that (`--cgroup`).";
        let family = family(held.pid()).ok_or_else(|| refused(too_many(), hint))?;
        let tasks = family.iter().filter_map(|pid| Some(process::facts(*pid)?.threads)).sum();
        check_tasks(&what, tasks, self.config.limits.tasks_per_job)?;
        let origin = Origin::of(held.pid());
        for pid in family {
            self.may_come(peer, pid).map_err(forbidden_by)?;
            let own = Origin::of(pid);
            if own.is_some() && own != origin {
                let why = format!("its descendant {pid} is in another cgroup than it is");
                return Err(refused(why, "Adopt the cgroups themselves (`--cgroup`)."));
            }
        }
        self.check_caps(held, false).map(drop)
    }

    /// Whether this process may become a part of the peer's job.
    fn may_come(&self, peer: Peer, pid: i32) -> Result<(), Problem> {
        let refused = |why: String| {
            let hint = "Adopt what is yours alone, or ask an administrator to adopt it.";
            Err(Problem::new(format!("process {pid} cannot become a part of a job"), why, hint))
        };
        let ours = [Some(1), Some(std::process::id() as i32), self.machinery.guard.pid()];
        match process::facts(pid) {
            _ if ours.contains(&Some(pid)) => {
                refused("it is the machine's first process, this daemon or its guard".to_owned())
            }
            Some(facts) if facts.uid != peer.uid && !self.rights.is_admin(peer) => {
                refused(format!("it runs as {}", user_name(facts.uid)))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn attach_family(&self, record: &Record, cgroup: &JobCgroup, held: &Held) -> Answer<()> {
        let owner = Peer { uid: record.uid, pid: None };
        // The job may have waited, and its processes may have been put into another job meanwhile, with what was decided about that.
        let may = |pid: i32| match self.job_of(pid).filter(|job| *job != record.id) {
            Some(other) => {
                let what = format!("process {pid} cannot become a part of a job");
                Err(Problem::new(what, format!("it is in job {other} already"), "A process is in one job at a time."))
            }
            None => self.may_come(owner, pid),
        };
        let limit = self.move_time(owner)?;
        let attach = || self.machinery.tree.attach_family(cgroup, held, limit, may);
        let moved = self.move_times.count(record.uid, attach);
        moved.map_err(|e| failed(format!("job {} could not be adopted", record.id), e))
    }

    pub(super) fn move_time_max(&self) -> Duration {
        MOVE_TIME_MAX.min(self.config.cluster.node_lease / 5)
    }

    /// How long a move of this user's processes may take now.
    pub(super) fn move_time(&self, peer: Peer) -> Answer<Duration> {
        let most = self.move_time_max();
        match self.move_times.left(peer.uid, most, Instant::now()) {
            _ if self.rights.is_admin(peer) => Ok(most),
            left if left >= MOVE_TIME_MIN => Ok(left),
            _ => {
                let most_ms = most.as_millis();
                let why = format!(
                    "examining and moving yours has taken {most_ms} ms within a minute, and the daemon does nothing else meanwhile"
                );
                let hint = "Try again in a minute.";
                Err(refuse(ErrorCode::Limit, "no processes are moved now", why, hint))
            }
        }
    }

    pub(super) fn send_all_back(
        &self,
        uid: u32,
        cgroup: &JobCgroup,
        origin: &Origin,
        limit: Duration,
    ) -> Result<(), TreeError> {
        self.move_times.count(uid, || self.machinery.tree.send_all_back(cgroup, origin, limit))
    }

    /// The job's number was not known when it began on this node, with empty cgroups.
    pub(super) fn enter_adopted(&mut self, id: u64, held: Option<&Held>, adoption: &Adoption) -> Answer<()> {
        let mut record = self.record(id)?.clone();
        adoption.note(&mut record);
        record.origin = held.and_then(|held| Origin::of(held.pid())).as_ref().map(Into::into);
        if let Some(live) = self.live.remove(&id) {
            self.watch.remove(id);
            live.cgroup.remove().map_err(|e| internal(format!("job {id} could not be adopted"), e))?;
        }
        self.enter(&record, held, Some(adoption), None)?;
        self.keep(record);
        self.plan_is_new = true;
        self.cluster.handle(Input::Populated(JobId(id), true));
        Ok(())
    }

    /// The job of a process, in our subtree or adopted.
    pub(super) fn job_of(&self, pid: i32) -> Option<u64> {
        if self.machinery.tree.has_keepers() {
            return self.machinery.tree.job_of(pid);
        }
        let path = Origin::of(pid)?.v2;
        let is_in = |cgroup: &JobCgroup| path.starts_with(cgroup.v2_path_relative());
        let adopted = || self.live.iter().find(|(_, live)| live.cgroup.outside().iter().any(is_in)).map(|(id, _)| *id);
        self.machinery.tree.job_of_path(&path).or_else(adopted)
    }

    /// `POST /v1/jobs/{id}/release`: its processes continue, and are no longer a job.
    pub(super) fn release(&mut self, peer: Peer, id: u64) -> Answer<Job> {
        let what = || format!("job {id} cannot be released");
        if self.record(id).is_err() && self.cluster.node.whose(JobId(id)).is_ok() {
            let hint = format!("`cosched show {id}` lists its nodes: ask there. `cosched kill` cancels a waiting job.");
            return Err(refuse(
                ErrorCode::Conflict,
                what(),
                "it is not on this node, or has not been placed yet",
                hint,
            ));
        }
        let record = self.changeable(peer, id)?;
        if self.live.get(&id).is_some_and(|live| !live.cgroup.annexes().is_empty()) {
            self.release_annexes(peer, &record)?;
            // Processes that were moved into the job are released, too.
            let has_moved = record.adopted.as_ref().is_some_and(|of| !of.released);
            if !has_moved || self.live.get(&id).is_none_or(|live| !live.cgroup.populated().unwrap_or(true)) {
                self.settle(false);
                return self.view_job(id);
            }
        }
        let live =
            self.live.get(&id).filter(|_| record.adopted.as_ref().is_some_and(|of| !of.released)).ok_or_else(|| {
                let hint = format!(
                    "`cosched kill {id}` ends it; `cosched policy local --job {id}` lets it run without slots."
                );
                refuse(ErrorCode::Conflict, what(), "it was not adopted: its processes were started as a job", hint)
            })?;
        self.may_leave(peer, &record)?;
        if !live.cgroup.is_adopted() {
            // Not into the caller's cgroup instead: its process number may have been reused by now, and that cgroup's limits are not the job's.
            let origin = self.came_from(&record).ok_or_else(|| {
                let hint = format!(
                    "`cosched policy local --job {id}` lets it run without slots; `cosched kill {id}` ends it."
                );
                refuse(ErrorCode::Conflict, what(), "the cgroup that it came from no longer exists", hint)
            })?;
            let limit = self.move_time(peer)?;
            self.send_all_back(peer.uid, &live.cgroup, &origin, limit).map_err(|e| internal(what(), e))?;
        } else if let Err(e) = live.cgroup.note_released() {
            tracing::warn!(id, "a rule may adopt it again when the daemon is started again: {e}");
        }
        self.give_back(id, format!("by {}", user_name(peer.uid)));
        self.settle(false);
        self.view_job(id)
    }

    fn give_back(&mut self, id: u64, why: String) {
        self.remember(id, |record| {
            record.adopted = record.adopted.take().map(|adopted| Adopted { released: true, ..adopted });
            record.event(unix_ms(), "released", why);
        });
        self.cluster.node.release(JobId(id));
    }

    /// Removes the markers of adopted cgroups whose jobs are over, and thaws them, as soon as no slot table can freeze them again.
    pub(super) fn let_go(&mut self) {
        if self.letting_go.is_empty() || self.machinery.slots.tables_waiting() > 0 {
            return;
        }
        for cgroup in std::mem::take(&mut self.letting_go) {
            if let Err(e) = cgroup.remove() {
                tracing::warn!(id = cgroup.id(), "the marker of an adopted cgroup could not be removed: {e}");
            }
        }
    }

    /// Finds adopted cgroups that were removed. If the owner removes a cgroup at once after its last process, the kernel reports nothing in
    /// `cgroup.events`.
    pub(super) fn look_at_adopted(&mut self) {
        if self.adopted_look_at.elapsed() < LOOK_PERIOD {
            return;
        }
        self.adopted_look_at = Instant::now();
        let unread: Vec<u64> = std::mem::take(&mut self.unread).into_iter().collect();
        self.emptied(&unread);
        self.look_at_annexes();
        // The guard puts them back when the daemon hangs, and systemd writes its own again.
        self.heed_quotas();
        let is_over = |cgroup: &JobCgroup| cgroup.is_adopted() && !cgroup.populated().unwrap_or(true);
        let over: Vec<u64> = self.live.iter().filter(|(_, live)| is_over(&live.cgroup)).map(|(id, _)| *id).collect();
        over.into_iter().for_each(|id| self.cluster.handle(Input::Populated(JobId(id), false)));
        let tasks_max = self.config.limits.tasks_per_job;
        let outgrown = self.live.iter().filter_map(|(id, live)| Some((*id, live.cgroup.outgrown(tasks_max)?)));
        for (id, why) in outgrown.collect::<Vec<_>>() {
            tracing::warn!(id, "an adopted cgroup is released: {why}");
            self.give_back(id, why);
        }
    }

    /// When the next of these checks is due, while there are adopted cgroups.
    pub(super) fn adopted_due(&self) -> Option<Instant> {
        let has_outside = || self.live.values().any(|live| !live.cgroup.outside().is_empty());
        let looks = (!self.unread.is_empty() || has_outside()).then(|| self.adopted_look_at + LOOK_PERIOD);
        let lets_go = (!self.letting_go.is_empty()).then(|| Instant::now() + LET_GO_PERIOD);
        looks.into_iter().chain(lets_go).min()
    }
}

fn no_process(pid: i32) -> ErrorBody {
    refuse(ErrorCode::NotFound, format!("there is no process {pid}"), "it has ended", "Nothing was changed.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_more_tasks_than_a_job_may_have_is_not_adopted() {
        assert!(check_tasks("/a.service", 7, 7).is_ok());
        let refused = check_tasks("/a.service", 8, 7).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Limit);
        assert!(refused.why.contains("8 processes and threads, and a job may have at most 7"), "{refused:?}");
    }

    #[test]
    fn a_users_moves_have_a_time_in_a_minute_and_others_have_theirs() {
        let (times, most, begin) = (MoveTimes::default(), Duration::from_secs(1), Instant::now());
        assert_eq!(times.left(7, most, begin), most);
        times.0.borrow_mut().insert(7, (begin, Duration::from_millis(700)));
        times.count(7, || std::thread::sleep(Duration::from_millis(5)));
        let left = times.left(7, most, begin);
        assert!(left < Duration::from_millis(300) && times.left(8, most, begin) == most, "{left:?}");
        times.0.borrow_mut().insert(7, (begin, Duration::from_secs(9)));
        assert_eq!(times.left(7, most, begin), Duration::ZERO);
        assert_eq!(times.left(7, most, begin + MOVE_PERIOD), most);
    }

    #[test]
    fn what_waits_for_memory_stands_still_though_nobody_has_suspended_it() {
        assert!(stands_still(Some(Standing::Suspended), false));
        assert!(!stands_still(Some(Standing::Scheduled), true), "resumed");
        assert!(stands_still(None, true), "not planned yet");
    }
}
