//! Jobs that may not fill: the siblings of the cores that a running gang has to itself stay empty.
//!
//! Kept are sets of CPUs, for turns and for jobs: a list of jobs for every turn would be as large as turns times jobs.

use crate::id::JobId;
use crate::plan::{Plan, PlannedJob};
use crate::policy::columns::Columns;
use alloc::vec::Vec;

/// Which CPUs stay empty in which turns, and where the jobs would run. Both are empty where no gang has its cores to itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Apart {
    empty: Vec<Option<Columns>>,
    /// None for a job that may use all CPUs.
    places: Vec<Option<Columns>>,
}

impl Apart {
    /// Of a plan, whose jobs the table has in this order.
    pub(super) fn of(plan: &Plan, ids: &[JobId]) -> Apart {
        if plan.jobs.values().all(|job| job.alone_on.is_none()) {
            return Apart::default();
        }
        let total = plan.matrix.columns().len();
        let set = |columns: &[u32]| Columns::new(total, columns.iter().map(|column| *column as usize));
        let siblings = |job: &PlannedJob| {
            let (on, (_, cells)) = (job.alone_on.as_ref()?, job.home.as_ref()?);
            let mut empty = set(cells);
            empty.take(&set(on));
            Some(empty)
        };
        let of_turn = |run: &Vec<JobId>| {
            let all = run.iter().filter_map(|id| siblings(plan.jobs.get(id)?));
            all.reduce(|mut all, more| {
                all.add(&more);
                all
            })
        };
        let empty = plan.turns.iter().map(|turn| of_turn(&turn.run)).collect();
        Apart { empty, places: ids.iter().map(|id| plan.place(*id).map(set)).collect() }
    }

    /// Whether a job would fill CPUs in a turn that stay empty.
    pub(super) fn bars(&self, turn: usize, job: u16) -> bool {
        let Some(empty) = self.empty.get(turn).and_then(Option::as_ref) else { return false };
        let place = self.places.get(usize::from(job)).and_then(Option::as_ref);
        place.is_none_or(|place| empty.first_of(place).is_some())
    }
}
