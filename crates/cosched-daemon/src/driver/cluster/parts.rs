//! The parts of jobs on this node: their start, their signals, their end.

use super::super::adopt::{Adoption, failed};
use super::super::{Driver, job_reply};
use super::ask::{Asker, Launcher};
use super::refusal::number_taken;
use super::{part_end, view};
use crate::clock::unix_ms;
use crate::record::PartOf;
use crate::refuse::Answer;
use crate::rights::Peer;
use crate::users::user_name;
use crate::words;
use cosched_api::ProcessRequest;
use cosched_cluster::wire::{Attempt, Job};
use cosched_core::cluster::Part;
use cosched_core::{JobId, SlotShare};
use cosched_linux::Origin;
use cosched_linux::process::Held;
use cosched_node::{Began, Input, RequestId, SIGKILL, Why, asks_to_end};

impl Driver {
    /// Starts a job that has a place here: makes its resources, and moves its main process, if that waits here.
    pub(super) fn start_part(&mut self, job: Job, part: Part, launcher: Option<RequestId>) {
        let cluster = &mut self.cluster;
        let id = job.id;
        let Some((of, scheduled)) = cluster.node.part(JobId(id)) else { return };
        let (spans, lead) = (scheduled.spans, of.lead);
        let launcher = launcher.and_then(|request| cluster.launchers.remove(&request));
        let mut record = view::record_of(&job, &self.boot_id);
        (record.cpus, record.mem_bytes) = (part.cpus, Some(part.memory_bytes).filter(|bytes| *bytes > 0));
        record.part = Some(PartOf::kept(of, spans));
        let (mut held, mut adoption, mut by) = (None, None, String::new());
        if let Some(launcher) = launcher {
            (held, adoption) = (launcher.held, launcher.adoption);
            record.pid = held.as_ref().map_or(0, Held::pid);
            record.by_api = held.is_none();
            adoption.iter().for_each(|adoption: &Adoption| adoption.note(&mut record));
            by = launcher.by.map_or(by, |uid| format!(", by {}", user_name(uid)));
        }
        record.origin = held.as_ref().and_then(|held| Origin::of(held.pid())).as_ref().map(Into::into);
        record.event(unix_ms(), "registered", format!("{} CPUs here, attempt {}{by}", part.cpus, job.attempt));
        self.keep_soon(record.clone());
        let memory_bytes_max = job.ask.terms.memory_bytes_max;
        if let Err(e) = self.enter(&record, held.as_ref(), adoption.as_ref(), memory_bytes_max) {
            tracing::error!(id, "the job cannot start here: {} ({})", e.what, e.why);
            self.remember(id, |record| {
                record.event(unix_ms(), "lost", e.why.clone());
                (record.lost, record.ended_unix_ms) = (true, Some(unix_ms()));
            });
            self.cluster.failures.insert(id, e);
            self.cluster.handle(Input::Failed(JobId(id)));
            return self.report(id, job.attempt);
        }
        self.make_page(&record);
        // It may exist already, if the last daemon could not write that down.
        let populated = self.live.get(&id).is_some_and(|live| live.cgroup.populated().unwrap_or(false));
        let comes = job.ask.main.is_none_or(super::mains::lives);
        self.cluster.handle(Input::Began(JobId(id), Began { populated, comes }));
        tracing::info!(id, spans, lead, cpus = part.cpus, "a job starts here");
        if lead && job.attempt > 0 {
            self.relaunch(&job);
        }
    }

    /// Moves the main process of a job that had begun before its number was known here.
    pub(super) fn enter_late(&mut self, id: u64, request: RequestId) {
        let Some(launcher) = self.cluster.launchers.remove(&request) else { return };
        let entered = match (&launcher.adoption, &launcher.held) {
            (Some(adoption), held) => self.enter_adopted(id, held.as_ref(), adoption),
            (None, Some(held)) => self.enter_main(id, held),
            (None, None) => Ok(()),
        };
        if entered.is_err() {
            self.cluster.handle(Input::NotEntered(JobId(id)));
        }
        if let Some(Asker::User(reply)) = self.cluster.asked.remove(&request) {
            let _ = reply.send(entered.and_then(|()| self.view_job(id)).map(job_reply));
        }
    }

    fn enter_main(&mut self, id: u64, held: &Held) -> Answer<()> {
        let owner = Peer { uid: self.record(id)?.uid, pid: None };
        let request = ProcessRequest { pid: held.pid(), start_ticks: Some(held.start_ticks()) };
        self.add_process(owner, id, request)?;
        self.remember(id, |record| record.by_api = false);
        Ok(())
    }

    /// Sends a signal to the processes of a job on this node.
    pub(super) fn signal_part(&mut self, id: u64, signal: i32, why: Why, asked: Option<RequestId>) {
        let (by, why) = match why {
            Why::User(uid) => (Some(uid), format!("signal {signal} by {}", user_name(uid))),
            Why::Reason(reason) => (None, format!("signal {signal}: {reason}")),
        };
        let Some(live) = self.live.get_mut(&id) else { return };
        tracing::info!(id, why, "a signal was sent to a job here");
        let sent = match signal {
            SIGKILL => live.cgroup.kill(),
            signal => live.cgroup.signal_all(signal).map(drop),
        };
        if let Err(e) = sent {
            tracing::error!(id, "the job could not be signalled: {e}");
            if let Some(Asker::User(reply)) = asked.and_then(|asked| self.cluster.asked.remove(&asked)) {
                let _ = reply.send(Err(failed(format!("job {id} could not be signalled"), e)));
            }
            return;
        }
        self.remember(id, |record| {
            let now = unix_ms();
            if let Some(uid) = by.filter(|_| record.suspended && asked.is_some() && asks_to_end(signal)) {
                record.event(now, "resumed", format!("by {}", user_name(uid)));
            }
            record.event(now, "signal", why);
        });
    }

    /// Saves a changed part of a job, for the next daemon.
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
        record.own_policy = job.policy.map(words::wire_policy);
        record.share_permille = job.slot_share.map(SlotShare::permille);
        (record.suspended, record.decided) = (job.suspended, of.decided);
        record.part = record.part.map(|_| PartOf::kept(of, job.spans));
        self.keep_soon(record);
    }

    /// A job of a cluster that no longer exists runs here with this number. A process that entered its cgroup would become a part of it.
    pub(super) fn number_is_taken(&mut self, id: u64) {
        let e = number_taken(id);
        tracing::error!(id, "{}: {}", e.what, e.why);
    }

    /// The cluster does not know this job.
    pub(super) fn forgotten(&mut self, id: u64) {
        tracing::error!(
            id,
            "the cluster does not know this job; its processes keep running, scheduled by Linux; `cosched kill {id}` \
             on this node ends them"
        );
        self.remember(id, |record| record.event(unix_ms(), "forgotten", "the cluster no longer knows it"));
    }

    /// Reports how a job has ended here, from its record.
    pub(in super::super) fn report(&mut self, id: u64, attempt: Attempt) {
        let end = self.state.jobs.get(&id).map(part_end).unwrap_or_default();
        self.cluster.handle(Input::Over { job: JobId(id), attempt, end });
    }

    /// Removes jobs that wait for a place and whose process has ended.
    pub(super) fn look_at_launchers(&mut self) {
        let gone = |launcher: &Launcher| {
            let adoptee = launcher.adoption.as_ref().and_then(|adoption| adoption.cgroup.as_ref());
            launcher.held.as_ref().is_some_and(|held| !held.alive())
                || adoptee.is_some_and(|cgroup| !cgroup.populated())
        };
        let launchers = self.cluster.launchers.iter();
        let gone: Vec<RequestId> = launchers.filter(|(_, one)| gone(one)).map(|(request, _)| *request).collect();
        gone.into_iter().for_each(|request| self.cluster.handle(Input::LauncherGone(request)));
    }
}
