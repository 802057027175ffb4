//! A ceiling on the slots of all gangs of one machine.
//!
//! Problem: "a configurable ceiling on the CPU share of all gang jobs, so that the rest of the machine stays responsive"
//! (LLNL, "Gang Scheduler Design"). In a cluster the cycle of gangs that span nodes leaves turns open for that; a single
//! machine only has gangs of its own.
//! Rule. Turns in which no gang owns CPUs are spread evenly between the others. In them gangs are in the same state as in the
//! turns of other gangs: idle weight or stopped. Turns that are empty already, because jobs have shares of the slots, count.
//! Units: turns; the ceiling in thousandths.

use crate::plan::{Plan, Turn};
use alloc::vec::Vec;

/// How close the gangs' part comes to the ceiling, if the cycle does not get too long for it, in thousandths.
const NEAR_PERMILLE: usize = 10;

/// The maximum length of the cycle for that, in turns.
const TURNS_MAX: usize = 2048;

/// The plan with at most this part of all slots for gangs.
pub fn cap(mut plan: Plan, ceiling_permille: u32) -> Plan {
    let (busy, ceiling) = (plan.turns.len(), ceiling_permille.clamp(1, 1000) as usize);
    let owned = plan.turns.iter().filter(|turn| !turn.run.is_empty()).count();
    if owned * 1000 <= ceiling * busy {
        return plan;
    }
    // The turns that are not empty keep their part.
    let ceiling = ceiling * busy / owned;
    let open = |repeats: usize| (repeats * busy * (1000 - ceiling)).div_ceil(ceiling);
    let part = |repeats: usize| repeats * busy * 1000 / (repeats * busy + open(repeats));
    let fits = |repeats: &usize| *repeats == 1 || repeats * busy + open(*repeats) <= TURNS_MAX;
    let near = |repeats: &usize| part(*repeats) + NEAR_PERMILLE >= ceiling;
    let possible = || (1..=TURNS_MAX).take_while(fits);
    let repeats = possible().find(near).or_else(|| possible().max_by_key(|repeats| part(*repeats))).unwrap_or(1);
    let rows = plan.matrix.rows().len();
    plan.matrix.add_rows(rows + 1);
    let (owned, length) = (repeats * busy, repeats * busy + open(repeats));
    let turn = |k: usize| {
        let before = k * owned / length;
        let is_owned = (k + 1) * owned / length > before;
        if is_owned { plan.turns[before % busy].clone() } else { Turn { row: rows as u32, run: Vec::new() } }
    };
    plan.turns = (0..length).map(turn).collect();
    plan.jobs.values_mut().for_each(|job| job.turns *= repeats as u32);
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{Class, Shares};
    use crate::id::{JobId, NodeId};
    use crate::job::{Job, Node, Packing, Policy, Sharing};
    use crate::planner::{Planner, PlannerConfig, PlannerInput};
    use crate::time::Time;
    use alloc::vec;

    fn plan(gangs: u64) -> Plan {
        let mut planner = Planner::new(PlannerConfig {
            nodes: vec![Node { id: NodeId(0), cpus: 2 }],
            slot_length_ns: 100_000_000,
            policy: Policy::Gang,
            sharing: Sharing::Soft,
            packing: Packing::FirstFit,
            shares: Shares::default(),
        });
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
                let before = plan(gangs);
                let plan = cap(before.clone(), ceiling);
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
        let plan = cap(plan(2), 500);
        let runs: Vec<bool> = plan.turns.iter().map(|turn| turn.run.is_empty()).collect();
        assert_eq!(runs, [true, false, true, false]);
        let open = plan.turns[0].row as usize;
        assert_eq!(plan.matrix.rows()[open].jobs().count(), 0, "nobody lives in the row of open turns");
    }

    #[test]
    fn without_a_ceiling_or_without_gangs_nothing_changes() {
        assert_eq!(cap(plan(3), 1000), plan(3));
        assert_eq!(cap(plan(0), 100), plan(0));
    }
}
