//! The parts of jobs on this node: they begin, they are to end, they have ended.

use super::super::change::SIGKILL;
use super::super::{Driver, job_reply, machine};
use super::ask::Pending;
use super::{part_end, view, words};
use crate::clock::unix_ms;
use crate::record::PartOf;
use crate::refuse::{Answer, refuse};
use crate::users::user_name;
use cosched_api::ErrorCode;
use cosched_cluster::wire::{Attempt, Exit, Job};
use cosched_core::JobId;
use cosched_core::cluster::Part;
use cosched_linux::Origin;
use cosched_linux::process::Held;
use cosched_node::{Began, Input, Why};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// So long a launcher waits for its job's start before it hears that the job waits.
const START_WAIT: Duration = Duration::from_secs(2);
/// How often launchers are looked at.
const LAUNCHER_PERIOD: Duration = Duration::from_secs(1);

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

impl Driver {
    /// A job has a place here: it gets what it needs, and its main process, if that waits here.
    pub(super) fn start_here(&mut self, job: Job, part: Part) {
        let cluster = &mut self.cluster;
        let id = job.id;
        let Some((of, scheduled)) = cluster.node.part(JobId(id)) else { return };
        let (spans, lead) = (scheduled.spans, of.lead);
        let kept = PartOf { attempt: job.attempt, spans, lead, closing: of.closing, tree: of.tree, alike: of.alike };
        let launcher = cluster.launchers.get_mut(&id).filter(|_| lead && job.attempt == 0);
        let mut record = view::record_of(&job, &self.boot_id);
        (record.cpus, record.mem_bytes) = (part.cpus, Some(part.memory_bytes).filter(|bytes| *bytes > 0));
        record.part = Some(kept);
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
            self.cluster.handle(Input::Failed(JobId(id)));
            self.report(id, job.attempt);
            return self.answer_launcher(id, Some(e));
        }
        self.make_page(&record);
        // It may be there already, when the last daemon could not write that down.
        let populated = self.live.get(&id).is_some_and(|live| live.cgroup.populated().unwrap_or(false));
        let comes = job.ask.main.is_none_or(super::mains::lives);
        self.cluster.handle(Input::Began(JobId(id), Began { populated, comes }));
        self.cluster.followed = None;
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

    /// The processes of a job here get a signal.
    pub(super) fn signal_here(&mut self, id: u64, signal: i32, why: Why) {
        let why = match why {
            Why::User(uid) => format!("signal {signal} by {}", user_name(uid)),
            Why::Reason(reason) => format!("signal {signal}: {reason}"),
        };
        let Some(live) = self.live.get_mut(&id) else { return };
        tracing::info!(id, why, "a job is to end here");
        let sent = match signal {
            SIGKILL => live.cgroup.kill(),
            signal => live.cgroup.signal_all(signal).map(drop),
        };
        if let Err(e) = sent {
            tracing::error!(id, "the job could not be signalled: {e}");
        }
        self.remember(id, |record| record.event(unix_ms(), "signal", why));
    }

    /// What the next daemon has to find of a job has changed.
    pub(super) fn keep_part(&mut self, id: u64) {
        let (Some((of, job)), Some(record)) = (self.cluster.node.part(JobId(id)), self.state.jobs.get(&id)) else {
            return;
        };
        let mut record = record.clone();
        let mem_bytes = Some(job.memory_bytes).filter(|bytes| *bytes > 0);
        if (record.cpus, record.mem_bytes) != (job.cpus, mem_bytes) {
            record.event(unix_ms(), "resources", format!("{} CPUs here", job.cpus));
        }
        (record.cpus, record.mem_bytes) = (job.cpus, mem_bytes);
        record.class = words::api_class(job.class.into());
        record.own_policy = job.policy.map(machine::wire_policy);
        record.suspended = job.suspended;
        record.part = record.part.map(|part| PartOf { closing: of.closing, spans: job.spans, ..part });
        self.keep_soon(record);
    }

    /// What has been decided about a job, and by whom, is kept, too.
    pub(super) fn keep_decisions(&mut self) {
        let decided = |id: &u64| Some((*id, self.cluster.member().job(JobId(*id))?.decided));
        let known = self.live.keys().filter_map(decided);
        let news = known.filter(|(id, decided)| self.state.jobs.get(id).is_some_and(|r| r.decided != *decided));
        for (id, decided) in news.collect::<Vec<_>>() {
            self.remember(id, |record| record.decided = decided);
        }
    }

    /// A job of a cluster that is no more lives here, with this number. Whatever came into its cgroup would be part of it.
    pub(super) fn number_is_taken(&mut self, id: u64) {
        let why = format!("another job {id}, of a cluster whose store was lost, lives here");
        let e = refuse(ErrorCode::Conflict, format!("job {id} cannot begin"), why, "End that one, and ask again.");
        tracing::error!(id, "{}: {}", e.what, e.why);
        self.answer_launcher(id, Some(e));
    }

    /// The cluster does not know this job.
    pub(super) fn forgotten(&mut self, id: u64) {
        tracing::error!(
            id,
            "the cluster does not know this job; its processes go on, and Linux schedules them; `cosched kill {id}` on \
             this node ends those that are here"
        );
        self.remember(id, |record| record.event(unix_ms(), "forgotten", "the cluster does not know it any more"));
    }

    /// Whether a job runs here that the cluster does not know.
    pub(in super::super) fn is_forgotten(&self, id: u64) -> bool {
        self.cluster.node.is_forgotten(JobId(id))
    }

    /// How a job has ended here, as the record says.
    pub(in super::super) fn report(&mut self, id: u64, attempt: Attempt) {
        let end = self.state.jobs.get(&id).map(part_end).unwrap_or_default();
        self.cluster.followed = None;
        self.cluster.handle(Input::Over { job: JobId(id), attempt, end });
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
        self.cluster.tell(|member, now| member.main_ended(now, JobId(id), 0, exit));
    }
}
