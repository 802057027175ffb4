//! A started daemon that has not met the store yet: requests that only the store can answer wait for it, for a while.
//!
//! "There is no such job" would be wrong: the job may wait, or run on other nodes. Jobs that run here are known well enough to take orders, which
//! wait for the store as they do whenever it cannot be reached.

use super::super::Driver;
use super::ask::ANSWER_TIME_MAX;
use crate::call::Call;
use crate::refuse::refuse;
use cosched_api::ErrorCode;
use cosched_core::JobId;
use tokio::time::Instant;

impl Driver {
    /// Keeps a request that cannot be answered before the store is met; returns any other one. A node that takes no part will not meet the store.
    pub(in super::super) fn hold_call(&mut self, call: Call) -> Option<Call> {
        if !call.op.job().is_some_and(|id| self.cluster.node.is_unknown_yet(JobId(id))) {
            return Some(call);
        }
        // The bytes of those who have hung up are not counted any more.
        self.cluster.held_calls.retain(|(_, call)| !call.reply.is_closed());
        self.cluster.held_calls.push((Instant::now(), call));
        None
    }

    /// The store was met, or will not be: answers all requests that still wait.
    pub(super) fn answer_held_calls(&mut self) {
        let cluster = &mut self.cluster;
        if cluster.held_calls.is_empty() || !cluster.node.has_read_store() && cluster.member().out().is_none() {
            return;
        }
        for (_, call) in std::mem::take(&mut cluster.held_calls) {
            // A requester that has given up does not expect the request to be carried out.
            if !call.reply.is_closed() {
                self.answer(call);
            }
        }
    }

    /// Requests do not wait for ever for a store that cannot be reached.
    pub(super) fn refuse_overdue_calls(&mut self) {
        let cluster = &mut self.cluster;
        let waits = |(since, call): &(Instant, Call)| since.elapsed() < ANSWER_TIME_MAX && !call.reply.is_closed();
        let (stay, late) = std::mem::take(&mut cluster.held_calls).into_iter().partition(waits);
        cluster.held_calls = stay;
        let (name, problem) = (cluster.name.clone(), self.store_problem());
        for (_, Call { op, reply, .. }) in late {
            let id = op.job().unwrap_or_default();
            let error = refuse(
                ErrorCode::Internal,
                format!("whether there is a job {id} is not known yet"),
                format!("this daemon has restarted, and cannot reach the store of cluster {name}: {problem}"),
                "Nothing was changed. Try again when `cosched status` shows that the store answers, or try on another \
                 node.",
            );
            let _ = reply.send(Err(error));
        }
    }
}
