//! What came of what users asked for.

use super::super::{Driver, Reply, job_reply};
use super::ask::{ANSWER_TIME_MAX, Pending};
use super::here::Launcher;
use crate::refuse::{Answer, refuse};
use cosched_api::{ErrorBody, ErrorCode};
use cosched_cluster::AskId;
use cosched_cluster::wire::Answer as Told;
use cosched_core::JobId;
use tokio::sync::oneshot;
use tokio::time::Instant;

impl Driver {
    /// The answer to a request.
    pub(super) fn replied(&mut self, ask: AskId, told: Told) {
        let Some((_, pending)) = self.cluster.pending.remove(&ask) else { return };
        match (pending, told) {
            (Pending::Submit { launcher }, Told::Submitted { job }) => self.submitted(job, launcher),
            (Pending::Submit { launcher }, told) => {
                if let Some(reply) = launcher.reply {
                    let _ = reply.send(Err(error(told)));
                }
            }
            (Pending::File { ask }, Told::Refused { what, why, .. }) => self.file_refused(&ask, &what, &why),
            (Pending::File { .. }, _) => (),
            // What is shown of one that is to end has to be what has come of that.
            (Pending::Job { id, reply, kill: Some(_) }, Told::Done) => self.cluster.askers.push((id, reply)),
            (Pending::Job { id, reply, kill: None }, Told::Done) => {
                let _ = reply.send(self.view_job(id).map(job_reply));
            }
            (Pending::Status { reply }, Told::Done) => {
                // What is shown has to be what was set.
                self.settle(false);
                let _ = reply.send(Ok(Reply::Status(Box::new(self.view_status()))));
            }
            (Pending::Job { reply, .. } | Pending::Status { reply }, told) => {
                let _ = reply.send(Err(error(told)));
            }
        }
    }

    /// Those who wait for the end of this turn.
    pub(in super::super) fn answer_askers(&mut self) {
        for (id, reply) in std::mem::take(&mut self.cluster.askers) {
            let _ = reply.send(self.view_job(id).map(job_reply));
        }
    }

    /// The job has its number. It may have begun already: news come in no order.
    fn submitted(&mut self, job: u64, launcher: Launcher) {
        let begun = self.live.contains_key(&job);
        let cluster = &mut self.cluster;
        if begun && let Some(held) = &launcher.held {
            let request = cosched_api::ProcessRequest { pid: held.pid(), start_ticks: Some(held.start_ticks()) };
            let entered = self.enter_late(job, request);
            if entered.is_err() {
                let now = self.cluster.moment();
                self.cluster.node.give_up(now, JobId(job));
            }
            if let Some(reply) = launcher.reply {
                let _ = reply.send(entered.map(job_reply));
            }
            return;
        }
        if cluster.launchers.contains_key(&job) {
            // Two of this node's have asked for the same job.
            if let Some(reply) = launcher.reply {
                let _ = reply.send(self.view_job(job).map(job_reply));
            }
            return;
        }
        cluster.launchers.insert(job, launcher);
        if begun {
            self.answer_launcher(job, None);
        }
    }

    /// Those who wait for the end of a job that is over.
    pub(super) fn answer_cluster_waiters(&mut self) {
        let cluster = &self.cluster;
        let over = |id: &u64| cluster.member().job(JobId(*id)).is_none() || self.is_over(*id);
        let ids: Vec<u64> = cluster.waiters.keys().copied().filter(over).collect();
        for id in ids {
            let waiters = self.cluster.waiters.remove(&id).unwrap_or_default();
            for waiter in waiters {
                let _ = waiter.send(self.view_job(id).map(job_reply));
            }
        }
        self.answer_launchers_of_ended();
        // A job that has found its place on other nodes alone has nothing here that would tell its launcher.
        self.answer_launchers_elsewhere();
    }

    fn answer_launchers_of_ended(&mut self) {
        let cluster = &self.cluster;
        let over = |id: &&u64| cluster.member().job(JobId(**id)).is_some_and(|job| job.end.is_some());
        let ids: Vec<u64> = cluster.launchers.keys().filter(over).copied().collect();
        ids.into_iter().for_each(|id| self.answer_launcher(id, None));
    }

    fn answer_launchers_elsewhere(&mut self) {
        let cluster = &self.cluster;
        let own = cluster.member().id();
        let elsewhere = |id: &&u64| {
            let parts = cluster.parts(**id);
            !parts.is_empty() && !parts.iter().any(|part| Some(part.node) == own)
        };
        let ids: Vec<u64> = cluster.launchers.keys().filter(elsewhere).copied().collect();
        ids.into_iter().for_each(|id| self.answer_launcher(id, None));
    }

    /// Users do not wait for ever for a store that is away.
    pub(super) fn overdue_in_cluster(&mut self) {
        self.look_at_launchers();
        self.overdue_loads();
        self.overdue_unmet();
        let cluster = &mut self.cluster;
        let late = |(since, pending): &(Instant, Pending)| pending.waits() && since.elapsed() >= ANSWER_TIME_MAX;
        let ids: Vec<AskId> = cluster.pending.iter().filter(|(_, asked)| late(asked)).map(|(id, _)| *id).collect();
        for id in ids {
            let Some((since, mut pending)) = cluster.pending.remove(&id) else { continue };
            let why = cluster.problem.clone().unwrap_or_else(|| "it is slow".to_owned());
            let what = "the cluster's store does not answer";
            let hint = match pending.has_process() {
                true => "Nothing is run. Ask again when `cosched status` shows the store in touch.",
                false => {
                    "The request is kept, and carried out when the store is back. `cosched status` shows the store's state."
                }
            };
            if let Some(reply) = pending.reply() {
                let _ = reply.send(Err(refuse(ErrorCode::Internal, what, why, hint)));
            }
            // A job whose process gives up now may get its number later, and ends then.
            if pending.has_process() {
                cluster.pending.insert(id, (since, pending));
            }
        }
    }
}

impl Pending {
    /// Who is to be answered, once.
    fn reply(&mut self) -> Option<oneshot::Sender<Answer<Reply>>> {
        match self {
            Pending::Submit { launcher } => launcher.reply.take(),
            Pending::Job { reply, .. } | Pending::Status { reply } => {
                let (nobody, _) = oneshot::channel();
                Some(std::mem::replace(reply, nobody))
            }
            Pending::File { .. } => None,
        }
    }

    /// Whether somebody waits for the answer.
    pub(super) fn is_awaited(&self) -> bool {
        match self {
            Pending::Submit { launcher } => launcher.reply.is_some(),
            Pending::Job { reply, .. } | Pending::Status { reply } => !reply.is_closed(),
            Pending::File { .. } => false,
        }
    }

    /// Whether a process waits for the job that was asked for.
    fn has_process(&self) -> bool {
        matches!(self, Pending::Submit { launcher } if launcher.held.is_some())
    }

    /// Whether it is given up after a while.
    pub(super) fn waits(&self) -> bool {
        !matches!(self, Pending::Submit { launcher } if launcher.reply.is_none())
    }
}

/// A refusal of the planner, in the daemon's form.
fn error(told: Told) -> ErrorBody {
    match told {
        Told::Refused { what, why, hint } => refuse(ErrorCode::Conflict, what, why, hint),
        Told::Submitted { .. } | Told::Done | Told::Unknown => refuse(
            ErrorCode::Internal,
            "what came of the request is not known",
            "its answer was lost with the connection to the store",
            "`cosched ps` shows what there is now.",
        ),
    }
}
