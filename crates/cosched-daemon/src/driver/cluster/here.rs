//! The parts of jobs on this node: they begin, they are to end, they have ended.

use super::super::{Driver, job_reply};
use super::{Cluster, part_end, view};
use crate::clock::unix_ms;
use crate::record::{PartOf, Record};
use crate::refuse::{Answer, refuse};
use cosched_api::{ErrorCode, Waiting};
use cosched_cluster::wire::{Attempt, Exit, Job, KillHow};
use cosched_core::cluster::Part;
use cosched_core::{JobId, Reason};
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
    /// The process; none where processes are to be added later.
    pub(super) held: Option<Held>,
    /// How the job's processes wait.
    pub(super) waiting: Option<Waiting>,
    /// Who waits for an answer.
    pub(super) reply: Option<oneshot::Sender<Answer<super::super::Reply>>>,
    /// Since when.
    since: Instant,
    looked: Instant,
}

impl Launcher {
    pub(super) fn new(
        held: Option<Held>,
        waiting: Option<Waiting>,
        reply: oneshot::Sender<Answer<super::super::Reply>>,
    ) -> Launcher {
        let now = Instant::now();
        Launcher { held, waiting, reply: Some(reply), since: now, looked: now }
    }

    /// When to look at it again.
    pub(super) fn due(&self) -> Option<Instant> {
        Some(self.looked + if self.reply.is_some() { START_WAIT } else { LAUNCHER_PERIOD })
    }
}

impl Cluster {
    /// Whether the main process of a job is this node's: where it was submitted, and in later lives, if that node has no part, where its
    /// first part is.
    fn leads(&self, job: &Job, parts: &[Part]) -> bool {
        let lead = job.ask.lead.as_deref();
        let has_part = |name: &str| parts.iter().any(|part| self.member.name_of(part.node) == Some(name));
        let first = parts.first().is_some_and(|part| Some(part.node) == self.member.id());
        lead == Some(self.node.as_str()) || job.attempt > 0 && first && !lead.is_some_and(has_part)
    }
}

impl Driver {
    /// A job has a place here: it gets what it needs, and its main process, if that waits here.
    pub(super) fn start_here(&mut self, job: Job, part: Part) {
        let Some(cluster) = &mut self.cluster else { return };
        let id = job.id;
        let planned = cluster.member.state().and_then(|state| state.jobs.get(&JobId(id)));
        let parts = planned.and_then(|job| job.place.as_ref()).map_or(&[][..], |place| &place.parts);
        let (spans, lead) = (parts.len() > 1, cluster.leads(&job, parts));
        let launcher = cluster.launchers.get(&id).filter(|_| lead && job.attempt == 0);
        let mut record = view::record_of(&job, &self.boot_id);
        (record.cpus, record.mem_bytes) = (part.cpus, Some(part.memory_bytes).filter(|bytes| *bytes > 0));
        record.part = Some(PartOf { attempt: job.attempt, spans, lead, closing: false });
        if let Some(launcher) = launcher {
            record.pid = launcher.held.as_ref().map_or(0, Held::pid);
            record.by_api = launcher.held.is_none();
            record.waiting = launcher.waiting.map(|asked| cosched_api::JobWaiting { asked, ..Default::default() });
        }
        record.origin = Some(record.pid).filter(|pid| *pid != 0).and_then(|pid| self.origin_of(pid));
        record.event(unix_ms(), "registered", format!("{} CPUs here, attempt {}", part.cpus, job.attempt));
        self.remember_new(&record);
        if let Err(e) = self.enter(&record) {
            tracing::error!(id, "the job cannot begin here: {} ({})", e.what, e.why);
            self.remember(id, |record| {
                record.event(unix_ms(), "lost", e.why.clone());
                (record.lost, record.ended_unix_ms) = (true, Some(unix_ms()));
            });
            self.tell_part_end(id, job.attempt);
            return self.answer_launcher(id, Some(e));
        }
        if let Some(live) = self.live.get_mut(&id) {
            // Ranks come when they come; the main process soon.
            live.end_at = (lead && record.pid == 0).then(|| Instant::now() + ENTER_GRACE);
        }
        self.make_page(&record);
        if !spans && let Err(e) = self.plan_job(&record) {
            tracing::error!(id, "{}: {}", e.what, e.why);
        }
        self.plan_is_stale = true;
        tracing::info!(id, spans, lead, cpus = part.cpus, "a job begins here");
        self.answer_launcher(id, None);
        if lead && job.attempt > 0 {
            self.launch_anew(&job);
        }
    }

    fn remember_new(&mut self, record: &Record) {
        if let Err(e) = self.store.put(&mut self.state, record) {
            tracing::error!("the state could not be written: {e}");
            self.state.jobs.insert(record.id, record.clone());
        }
    }

    /// Whoever registered the job hears how it went.
    pub(super) fn answer_launcher(&mut self, id: u64, error: Option<cosched_api::ErrorBody>) {
        let Some(mut launcher) = self.cluster.as_mut().and_then(|cluster| cluster.launchers.remove(&id)) else {
            return;
        };
        if let Some(reply) = launcher.reply.take() {
            let answer = error.map_or_else(|| self.view_in_cluster(id).map(job_reply), Err);
            let _ = reply.send(answer);
        }
    }

    /// The processes of a job here are to end.
    pub(super) fn kill_here(&mut self, job: JobId, attempt: Attempt, reason: Reason) {
        let (id, asked) = (job.0, reason == Reason::UserRequest);
        let how = self.cluster.as_ref().and_then(|cluster| cluster.member.job(job)?.kill_how);
        let KillHow { signal, grace_ms } = how.filter(|_| asked).unwrap_or(KillHow::FORCE);
        if self.is_forgotten(job, reason) {
            return;
        }
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
        live.kill_at = (signal != 9).then(|| Instant::now() + Duration::from_millis(grace_ms));
        self.remember(id, |record| {
            record.part = record.part.map(|part| PartOf { closing: true, ..part });
            record.event(unix_ms(), "signal", format!("signal {signal}: {reason}"));
        });
        // What is frozen cannot end by itself.
        self.plan_is_stale = true;
    }

    /// A store that has lost its data knows no job: that is no reason to end any. They run on, unscheduled.
    fn is_forgotten(&mut self, job: JobId, reason: Reason) -> bool {
        let known = self.cluster.as_ref().is_some_and(|cluster| cluster.member.job(job).is_some());
        let forgotten = reason == Reason::Departure && !known && self.live.contains_key(&job.0);
        if forgotten {
            tracing::error!(
                id = job.0,
                "the cluster does not know this job; its processes go on, and Linux schedules them"
            );
            self.plan_is_stale = true;
        }
        forgotten
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

    /// The last process of a job has ended here; the record says how.
    pub(in super::super) fn tell_part_end(&mut self, id: u64, attempt: Attempt) {
        let end = self.state.jobs.get(&id).map(part_end).unwrap_or_default();
        let stands_in = self.state.jobs.get(&id).is_some_and(|record| record.part.is_some_and(|part| part.lead))
            && self.cluster.as_ref().is_some_and(|cluster| {
                let lead = cluster.member.job(JobId(id)).and_then(|job| job.ask.lead.as_deref());
                lead != Some(cluster.node.as_str())
            });
        if stands_in {
            self.tell_main_end(id, attempt, end.exit.unwrap_or_default());
        }
        if let Some(cluster) = &mut self.cluster {
            cluster.mirrored.remove(&id);
            cluster.early.remove(&id);
            let moment = cluster.moment();
            cluster.member.part_ended(moment, JobId(id), attempt, end);
        }
    }

    /// Launchers that wait too long hear so; those that are gone take their job along.
    pub(super) fn look_at_launchers(&mut self) {
        let Some(cluster) = &mut self.cluster else { return };
        let (mut patient, mut gone) = (Vec::new(), Vec::new());
        for (id, launcher) in &mut cluster.launchers {
            if launcher.due().is_none_or(|due| due > Instant::now()) {
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
            let _ = reply.send(self.view_in_cluster(id).map(job_reply));
        }
    }

    /// The main process of a job has ended that has no part here, or none yet.
    pub(super) fn main_ended_elsewhere(&mut self, id: u64, exit: Exit) {
        // Launchers begin the first life of a job; later ones begin where there is a part.
        self.tell_main_end(id, 0, exit);
    }

    fn tell_main_end(&mut self, id: u64, attempt: Attempt, exit: Exit) {
        if let Some(cluster) = &mut self.cluster {
            let moment = cluster.moment();
            cluster.member.main_ended(moment, JobId(id), attempt, exit);
        }
    }
}
