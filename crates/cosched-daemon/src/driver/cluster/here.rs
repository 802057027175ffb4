//! The parts of jobs on this node: they begin, they are to end, they have ended.

use super::super::{Driver, job_reply};
use super::ask::Pending;
use super::{Cluster, part_end, view};
use crate::clock::unix_ms;
use crate::record::PartOf;
use crate::refuse::{Answer, refuse};
use crate::users::user_name;
use cosched_api::ErrorCode;
use cosched_cluster::wire::{Attempt, Exit, Job, KillHow, PartEnd};
use cosched_core::cluster::Part;
use cosched_core::{JobId, Reason, Standing};
use cosched_linux::Origin;
use cosched_linux::process::Held;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// So long a launcher waits for its job's start before it hears that the job waits.
const START_WAIT: Duration = Duration::from_secs(2);
/// How often launchers are looked at.
const LAUNCHER_PERIOD: Duration = Duration::from_secs(1);
/// How long the main process of a job that has a place here may take to enter it.
const ENTER_GRACE: Duration = Duration::from_secs(60);

/// A process that becomes the main process of a job as soon as that has its place.
#[derive(Debug)]
pub(super) struct Launcher {
    /// Whose job it is.
    owner: u32,
    /// Who has asked for it.
    by: u32,
    /// The process; none where processes are to be added later.
    pub(super) held: Option<Held>,
    /// Who waits for an answer.
    pub(super) reply: Option<oneshot::Sender<Answer<super::super::Reply>>>,
    /// Since when.
    since: Instant,
    looked: Instant,
}

impl Launcher {
    pub(super) fn new(
        (owner, by): (u32, u32),
        held: Option<Held>,
        reply: oneshot::Sender<Answer<super::super::Reply>>,
    ) -> Launcher {
        let now = Instant::now();
        Launcher { owner, by, held, reply: Some(reply), since: now, looked: now }
    }

    /// Who has asked for it, where that was not its owner.
    pub(super) fn by_another(&self) -> String {
        if self.by == self.owner { String::new() } else { format!(", by {}", user_name(self.by)) }
    }

    /// When to look at it again.
    pub(super) fn due(&self) -> Instant {
        self.looked + if self.reply.is_some() { START_WAIT } else { LAUNCHER_PERIOD }
    }
}

impl Cluster {
    /// Whether the main process of a job is this node's.
    fn leads(&self, job: &Job, parts: &[Part]) -> bool {
        job.leader(parts.iter().filter_map(|part| self.member.name_of(part.node))) == Some(self.node.as_str())
    }
}

impl Driver {
    /// A job has a place here: it gets what it needs, and its main process, if that waits here.
    pub(super) fn start_here(&mut self, job: Job, part: Part) {
        let cluster = &mut self.cluster;
        let id = job.id;
        let (parts, tree) = (cluster.parts(id), cluster.member.tree());
        let (spans, lead) = (parts.len() > 1, cluster.leads(&job, parts));
        let alike = job.ask.lead.is_none();
        if self.live.contains_key(&id) {
            return self.number_is_taken(id, job.attempt);
        }
        let cluster = &mut self.cluster;
        let launcher = cluster.launchers.get_mut(&id).filter(|_| lead && job.attempt == 0);
        let mut record = view::record_of(&job, &self.boot_id);
        (record.cpus, record.mem_bytes) = (part.cpus, Some(part.memory_bytes).filter(|bytes| *bytes > 0));
        record.part = Some(PartOf { attempt: job.attempt, spans, lead, closing: false, tree, alike });
        let (mut held, mut by) = (None, String::new());
        if let Some(launcher) = launcher {
            held = launcher.held.take();
            record.pid = held.as_ref().map_or(0, Held::pid);
            record.by_api = held.is_none();
            by = launcher.by_another();
        }
        record.origin = held.as_ref().and_then(|held| Origin::of(held.pid())).as_ref().map(Into::into);
        record.event(unix_ms(), "registered", format!("{} CPUs here, attempt {}{by}", part.cpus, job.attempt));
        self.keep_soon(record.clone());
        if let Err(e) = self.enter(&record, held.as_ref()) {
            tracing::error!(id, "the job cannot begin here: {} ({})", e.what, e.why);
            self.remember(id, |record| {
                record.event(unix_ms(), "lost", e.why.clone());
                (record.lost, record.ended_unix_ms) = (true, Some(unix_ms()));
            });
            self.tell_part_end(id, job.attempt);
            return self.answer_launcher(id, Some(e));
        }
        if let Some(live) = self.live.get_mut(&id) {
            // Ranks come when they come; the main process soon. It may be there already, when the last daemon could not write
            // that down.
            let awaited = lead && record.pid == 0 && !live.cgroup.populated().unwrap_or(false);
            // One that has ended already will not come.
            let comes = job.ask.main.is_none_or(super::mains::lives);
            let grace = if comes { ENTER_GRACE } else { Duration::ZERO };
            live.end_at = (alike || awaited).then(|| Instant::now() + grace);
        }
        self.make_page(&record);
        if !spans && let Err(e) = self.plan_job(&record) {
            tracing::error!(id, "{}: {}", e.what, e.why);
        }
        (self.plan_is_stale, self.cluster.followed) = (true, None);
        tracing::info!(id, spans, lead, cpus = part.cpus, "a job begins here");
        self.answer_launcher(id, None);
        if lead && job.attempt > 0 {
            self.launch_anew(&job);
        }
    }

    /// Jobs of a user's without a process that have no place here, or none yet.
    pub(in super::super) fn empty_jobs_in_cluster(&self, uid: u32) -> usize {
        let cluster = &self.cluster;
        let pending = cluster.pending.values().filter_map(|(_, pending)| match pending {
            Pending::Submit { launcher } => Some(launcher),
            _ => None,
        });
        let is_empty = |launcher: &&Launcher| launcher.held.is_none() && launcher.owner == uid;
        cluster.launchers.values().chain(pending).filter(is_empty).count()
    }

    /// Jobs that a user has asked for and that have no number yet.
    pub(in super::super) fn asked_by(&self, uid: u32) -> usize {
        let pending = self.cluster.pending.values();
        let own =
            |(_, pending): &&(_, Pending)| matches!(pending, Pending::Submit { launcher } if launcher.owner == uid);
        pending.filter(own).count()
    }

    /// Whoever registered the job hears how it went.
    pub(super) fn answer_launcher(&mut self, id: u64, error: Option<cosched_api::ErrorBody>) {
        let Some(mut launcher) = self.cluster.launchers.remove(&id) else { return };
        if let Some(reply) = launcher.reply.take() {
            let answer = error.map_or_else(|| self.view_job(id).map(job_reply), Err);
            let _ = reply.send(answer);
        }
    }

    /// The processes of a job here are to end.
    pub(super) fn kill_here(&mut self, job: JobId, attempt: Attempt, reason: Reason) {
        let (id, asked) = (job.0, reason == Reason::UserRequest);
        // That the store does not know it is no reason to end it.
        if reason == Reason::Departure && self.is_forgotten(id) {
            return self.forgotten(job);
        }
        let known = self.cluster.member.job(job).filter(|_| asked);
        let KillHow { signal, grace_ms } = known.and_then(|known| known.kill_how).unwrap_or(KillHow::FORCE);
        let why = match known.and_then(|known| known.killed_by) {
            Some(uid) => format!("signal {signal} by {}", user_name(uid)),
            None => format!("signal {signal}: {reason}"),
        };
        let Some(live) = self.live.get_mut(&id) else { return self.tell_part_end(id, attempt) };
        if !live.cgroup.populated().unwrap_or(true) {
            return self.finish(id);
        }
        tracing::info!(id, signal, %reason, "a job is to end here");
        let sent = match signal {
            9 => live.cgroup.kill(),
            signal => live.cgroup.signal_all(signal).map(drop),
        };
        if let Err(e) = sent {
            tracing::error!(id, "the job could not be signalled: {e}");
        }
        let grace_ms = grace_ms.filter(|_| signal != 9);
        live.kill_at = grace_ms.and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
        self.remember(id, |record| {
            record.part = record.part.map(|part| PartOf { closing: true, ..part });
            record.event(unix_ms(), "signal", why);
        });
        // What is held cannot end by itself. A plan by which it runs, or takes its turns, stays what it is.
        let runs = self.plan.jobs.get(&job).is_some_and(|planned| planned.standing != Standing::Suspended);
        self.plan_is_stale |= !(runs && self.is_own(id));
    }

    /// A job of a cluster that is no more lives here, with this number. Whatever came into its cgroup would be part of it.
    fn number_is_taken(&mut self, id: u64, attempt: Attempt) {
        let why = format!("another job {id}, of a cluster whose store was lost, lives here");
        let e = refuse(ErrorCode::Conflict, format!("job {id} cannot begin"), why, "End that one, and ask again.");
        tracing::error!(id, "{}: {}", e.what, e.why);
        let cluster = &mut self.cluster;
        let moment = cluster.moment();
        cluster.member.part_ended(moment, JobId(id), attempt, PartEnd::default());
        self.answer_launcher(id, Some(e));
    }

    /// A store that has lost its data knows no job: that is no reason to end any. It runs on, unscheduled, and is over when it
    /// is empty.
    pub(super) fn forgotten(&mut self, job: JobId) {
        let id = job.0;
        let Some(live) = self.live.get(&id) else { return };
        let empty = !live.cgroup.populated().unwrap_or(true);
        tracing::error!(
            id,
            "the cluster does not know this job; its processes go on, and Linux schedules them; `cosched kill {id}` on \
             this node ends those that are here"
        );
        self.remember(id, |record| {
            record.part = record.part.map(|part| PartOf { closing: true, ..part });
            record.event(unix_ms(), "forgotten", "the cluster does not know it any more");
        });
        self.plan_is_stale = true;
        if empty {
            self.finish(id);
        }
    }

    /// Whether a job runs here that the cluster does not know.
    pub(in super::super) fn is_forgotten(&self, id: u64) -> bool {
        self.cluster.member.job(JobId(id)).is_none() && self.live.contains_key(&id)
    }

    /// The job's main process has ended elsewhere: what is empty here is over.
    pub(super) fn close_here(&mut self, job: JobId, attempt: Attempt) {
        let id = job.0;
        let Some(live) = self.live.get(&id) else { return self.tell_part_end(id, attempt) };
        let empty = !live.cgroup.populated().unwrap_or(false);
        self.remember(id, |record| record.part = record.part.map(|part| PartOf { closing: true, ..part }));
        if empty {
            self.finish(id);
        }
    }

    /// A job without a main process has a process here, or none: the cluster knows whether it has one elsewhere.
    pub(in super::super) fn tell_empty(&mut self, id: u64) {
        let (cluster, Some(live)) = (&mut self.cluster, self.live.get_mut(&id)) else { return };
        let empty = !live.cgroup.populated().unwrap_or(true);
        live.end_at = None;
        if live.told_empty.replace(empty) != Some(empty) {
            let moment = cluster.moment();
            cluster.member.empty(moment, JobId(id), empty);
        }
    }

    /// The last process of a job has ended here; the record says how.
    pub(in super::super) fn tell_part_end(&mut self, id: u64, attempt: Attempt) {
        let end = self.state.jobs.get(&id).map(part_end).unwrap_or_default();
        let cluster = &mut self.cluster;
        cluster.followed = None;
        cluster.mirrored.remove(&id);
        cluster.early.remove(&id);
        let moment = cluster.moment();
        cluster.member.part_ended(moment, JobId(id), attempt, end);
    }

    /// Launchers that wait too long hear so; those that are gone take their job along.
    pub(super) fn look_at_launchers(&mut self) {
        let cluster = &mut self.cluster;
        let (mut patient, mut gone) = (Vec::new(), Vec::new());
        for (id, launcher) in &mut cluster.launchers {
            if launcher.due() > Instant::now() {
                continue;
            }
            launcher.looked = Instant::now();
            if launcher.held.as_ref().is_some_and(|held| !held.alive()) {
                gone.push(*id);
            } else if launcher.since.elapsed() >= START_WAIT
                && let Some(reply) = launcher.reply.take()
            {
                patient.push((*id, reply));
            }
        }
        for id in gone {
            self.main_ended_elsewhere(id, Exit::default());
            self.answer_launcher(
                id,
                Some(refuse(
                    ErrorCode::Conflict,
                    format!("job {id} is not started"),
                    "the process that was to run it has ended",
                    "Nothing is left of it.",
                )),
            );
        }
        for (id, reply) in patient {
            let _ = reply.send(self.view_job(id).map(job_reply));
        }
    }

    /// The main process of a job has ended that has no part here, or none yet. Launchers begin the first life of a job; later ones
    /// begin where there is a part.
    pub(super) fn main_ended_elsewhere(&mut self, id: u64, exit: Exit) {
        let cluster = &mut self.cluster;
        let moment = cluster.moment();
        cluster.member.main_ended(moment, JobId(id), 0, exit);
    }
}
