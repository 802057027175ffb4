//! The plan in the form that the slot thread wants: prepared before the boundary, so that nothing is looked up at it.

use super::Live;
use cosched_core::{Disposition, JobId, Plan, Sharing, Standing};
use cosched_linux::{Entry, Fill, State, Table};
use std::collections::BTreeMap;

/// The weight of a job that the plan does not have.
const WEIGHT_UNPLANNED: u32 = 100;

/// One entry per live job and, per turn, the indices of the jobs that run in it. Without `slots` there are no turns, and
/// all run but the suspended ones. Jobs that the plan does not have (yet) are as `unplanned` says.
pub(super) fn compile(plan: &Plan, live: &BTreeMap<u64, Live>, slots: bool, unplanned: impl Fn(u64) -> State) -> Table {
    let known = || plan.jobs.iter().filter_map(|(id, job)| Some((*id, job, live.get(&id.0)?)));
    let index: BTreeMap<JobId, u16> = known().enumerate().map(|(i, (id, ..))| (id, i as u16)).collect();
    let jobs = known()
        .map(|(id, job, live)| Entry {
            switch: live.cgroup.switch_handle(),
            weight: job.weight,
            otherwise: match job.standing {
                Standing::Suspended => State::Stop,
                _ if !slots => State::Run,
                _ => state(plan.otherwise(id)),
            },
        })
        .chain(live.iter().filter(|(id, _)| !plan.jobs.contains_key(&JobId(**id))).map(|(id, live)| Entry {
            switch: live.cgroup.switch_handle(),
            weight: WEIGHT_UNPLANNED,
            otherwise: unplanned(*id),
        }))
        .collect();
    let turns = if slots { &plan.turns[..] } else { &[] };
    let turns = turns.iter().map(|turn| turn.run.iter().filter_map(|id| index.get(id).copied()).collect()).collect();
    let fill = if plan.sharing == Sharing::Paired { Fill::Pair } else { Fill::All };
    Table { epoch_ns: plan.epoch.0, slot_length_ns: plan.slot_length_ns, jobs, turns, fill }
}

fn state(disposition: Disposition) -> State {
    match disposition {
        Disposition::Run => State::Run,
        Disposition::Background => State::Background,
        Disposition::Stop => State::Stop,
    }
}
