//! When a job is over: its last process has ended on the last of its nodes.

use super::replica::Replica;
use crate::wire::{Job, Why};
use cosched_core::Reason;
use cosched_core::cluster::{JobRecord, Stage};

/// Whether all parts of a job have ended.
pub(super) fn is_over(record: &JobRecord, job: Option<&Job>, replica: &Replica) -> bool {
    let parts = record.place.as_ref().map_or(&[][..], |place| &place.parts);
    let ended = |node| job.is_some_and(|job| job.ended_on.contains_key(replica.name_of(node)));
    let waits = matches!(record.stage, Stage::Waiting(_)) && record.place.is_none();
    !waits && parts.iter().all(|part| ended(part.node))
}

/// The reason for its end.
pub(super) fn why(record: &JobRecord, job: &Job) -> Why {
    match record.stage {
        Stage::Ending(Reason::TimeLimit) => Why::TimeLimit,
        Stage::Ending(Reason::RunTime) => Why::RunTime,
        Stage::Ending(Reason::JobFailed) => Why::JobFailed,
        Stage::Ending(Reason::NodeLost) => Why::NodeLost,
        Stage::Ending(_) => Why::Killed { uid: job.killed_by.unwrap_or(0) },
        Stage::Waiting(_) | Stage::Ready | Stage::Clearing => Why::Finished,
    }
}
