//! A ceiling on the slots of all gangs of one machine.
//!
//! Problem: "a configurable ceiling on the CPU share of all gang jobs, so that the rest of the machine stays responsive"
//! (LLNL, "Gang Scheduler Design"). In a cluster the cycle of gangs that span nodes leaves turns open for that; a single
//! machine only has gangs of its own.
//! Rule. Turns in which no gang owns CPUs are spread evenly between the others. In them gangs are in the same state as in the
//! turns of other gangs: idle weight or stopped. Jobs with shares of the slots earn them in open turns, too, so ceiling and share are
//! each a maximum of its own: a job has at most the smaller one, not their product.
//! Units: turns; the ceiling in thousandths.

use alloc::vec::Vec;

/// How close the gangs' part comes to the ceiling, if the cycle does not get too long for it, in thousandths.
const NEAR_PERMILLE: usize = 10;

/// The maximum length of the cycle for that, in turns.
const TURNS_MAX: usize = 2048;

/// The turns of rows, and between them as many turns of the row `open` as the ceiling demands.
pub(super) fn open(order: Vec<usize>, open: usize, ceiling_permille: u32) -> Vec<usize> {
    let (busy, ceiling) = (order.len(), ceiling_permille.clamp(1, 1000) as usize);
    if busy == 0 || ceiling == 1000 {
        return order;
    }
    let opened = |repeats: usize| (repeats * busy * (1000 - ceiling)).div_ceil(ceiling);
    let part = |repeats: usize| repeats * busy * 1000 / (repeats * busy + opened(repeats));
    let fits = |repeats: &usize| *repeats == 1 || repeats * busy + opened(*repeats) <= TURNS_MAX;
    let near = |repeats: &usize| part(*repeats) + NEAR_PERMILLE >= ceiling;
    let possible = || (1..=TURNS_MAX).take_while(fits);
    let repeats = possible().find(near).or_else(|| possible().max_by_key(|repeats| part(*repeats))).unwrap_or(1);
    let (owned, length) = (repeats * busy, repeats * busy + opened(repeats));
    let turn = |k: usize| {
        let before = k * owned / length;
        let is_owned = (k + 1) * owned / length > before;
        if is_owned { order[before % busy] } else { open }
    };
    (0..length).map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{Class, Shares};
    use crate::id::{JobId, NodeId};
    use crate::job::{Job, Node, Packing, Policy, Sharing};
    use crate::plan::Plan;
    use crate::planner::{Planner, PlannerConfig, PlannerInput};
    use crate::time::Time;
    use alloc::vec;

    fn plan(gangs: u64, ceiling_permille: u32) -> Plan {
        let mut planner = Planner::new(PlannerConfig {
            nodes: vec![Node { id: NodeId(0), cpus: 2 }],
            slot_length_ns: 100_000_000,
            policy: Policy::Gang,
            sharing: Sharing::Soft,
            packing: Packing::FirstFit,
            shares: Shares::default(),
        });
        planner.handle(Time(0), PlannerInput::Ceiling(ceiling_permille)).unwrap();
        for id in 1..=gangs {
            let job =
                Job { id: JobId(id), owner: 0, class: Class::Batch, policy: None, cpus: 2, node: Some(NodeId(0)) };
            planner.handle(Time(0), PlannerInput::Submit(job)).unwrap();
        }
        Plan::clone(planner.plan())
    }

    #[test]
    fn gangs_never_have_more_than_the_ceiling_and_nearly_as_much() {
        for gangs in 1..=7 {
            for ceiling in [10, 100, 333, 500, 667, 800, 900, 990, 999] {
                let (before, plan) = (plan(gangs, 1000), plan(gangs, ceiling));
                let owned = plan.turns.iter().filter(|turn| !turn.run.is_empty()).count();
                let part = owned * 1000 / plan.turns.len();
                assert!(owned * 1000 <= ceiling as usize * plan.turns.len(), "{gangs} gangs, {ceiling}");
                assert!(part + NEAR_PERMILLE >= ceiling as usize, "{gangs} gangs, {ceiling}: {part}");
                // Among themselves they have what they had.
                for (id, job) in &plan.jobs {
                    let turns = plan.turns.iter().filter(|turn| turn.run.contains(id)).count();
                    assert_eq!(turns, job.turns as usize);
                    let all = plan.jobs.values().map(|job| job.turns).sum::<u32>();
                    let all_before = before.jobs.values().map(|job| job.turns).sum::<u32>();
                    assert_eq!(job.turns * all_before, before.jobs[id].turns * all);
                }
            }
        }
    }

    #[test]
    fn open_turns_are_spread() {
        let plan = plan(2, 500);
        let is_open: Vec<bool> = plan.turns.iter().map(|turn| turn.run.is_empty()).collect();
        assert!(is_open == [true, false, true, false] || is_open == [false, true, false, true], "{is_open:?}");
        let open = plan.turns.iter().find(|turn| turn.run.is_empty()).unwrap().row as usize;
        assert_eq!(plan.matrix.rows()[open].jobs().count(), 0, "nobody lives in the row of open turns");
    }

    #[test]
    fn without_gangs_there_are_no_turns() {
        assert_eq!(plan(0, 100).turns, []);
    }
}
