//! A daemon that has begun and has not met the store yet: what only the store can know is asked there, for a while.
//!
//! "There is no such job" would be wrong: the job may wait, or run on other nodes. Of a job that lives here enough is
//! known to take orders, which wait for the store as they do whenever it is away.

use super::super::Driver;
use super::ask::ANSWER_TIME_MAX;
use crate::call::Call;
use crate::refuse::refuse;
use cosched_api::ErrorCode;
use cosched_core::JobId;
use tokio::time::Instant;

impl Driver {
    /// Keeps what cannot be answered before the store is met; gives the rest back. Who takes no part will not meet it.
    pub(in super::super) fn hold_unmet(&mut self, call: Call) -> Option<Call> {
        if !call.op.job().is_some_and(|id| self.cluster.node.is_unknown_yet(JobId(id))) {
            return Some(call);
        }
        self.cluster.unmet.push((Instant::now(), call));
        None
    }

    /// The store was met, or will not be: everybody who still waits gets an answer.
    pub(super) fn answer_unmet(&mut self) {
        let cluster = &mut self.cluster;
        if cluster.unmet.is_empty() || !cluster.node.is_met() && cluster.member().out().is_none() {
            return;
        }
        for (_, call) in std::mem::take(&mut cluster.unmet) {
            // Who has given up does not expect that something is done.
            if !call.reply.is_closed() {
                self.answer(call);
            }
        }
    }

    /// Users do not wait for ever for a store that does not come.
    pub(super) fn overdue_unmet(&mut self) {
        let cluster = &mut self.cluster;
        let waits = |(since, call): &(Instant, Call)| since.elapsed() < ANSWER_TIME_MAX && !call.reply.is_closed();
        let (stay, late) = std::mem::take(&mut cluster.unmet).into_iter().partition(waits);
        cluster.unmet = stay;
        let (name, problem) = (cluster.name.clone(), self.store_problem());
        for (_, Call { op, reply, .. }) in late {
            let id = op.job().unwrap_or_default();
            let error = refuse(
                ErrorCode::Internal,
                format!("whether there is a job {id} is not known yet"),
                format!("this daemon has begun anew, and the store of cluster {name} is not reached: {problem}"),
                "Nothing was changed. Ask again when `cosched status` shows the store in touch, or ask on another node.",
            );
            let _ = reply.send(Err(error));
        }
    }
}
