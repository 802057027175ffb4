//! Many gangs: users register thousands, and the daemon answers no requests while it makes a plan.

use cosched_core::{
    Class, Job, JobId, Node, NodeId, Packing, Planner, PlannerAction, PlannerConfig, PlannerInput, Policy, Shares,
    Sharing, Time,
};
use std::time::{Duration, Instant};

fn planner() -> Planner {
    Planner::new(PlannerConfig {
        nodes: vec![Node { id: NodeId(0), cpus: 4 }],
        slot_length_ns: 100_000_000,
        policy: Policy::Gang,
        sharing: Sharing::Soft,
        packing: Packing::FirstFit,
        shares: Shares::default(),
    })
}

/// Jobs of several widths and classes, and of two users.
fn submit(id: u64) -> PlannerInput {
    let class = if id.is_multiple_of(5) { Class::Standby } else { Class::Batch };
    let (owner, cpus) = ((id / 2 % 2) as u32, [1, 2, 4][(id % 3) as usize]);
    PlannerInput::Submit(Job { id: JobId(id), owner, class, policy: None, cpus, node: None })
}

fn plans(planner: &mut Planner) -> usize {
    let published = |action| usize::from(matches!(action, PlannerAction::Publish(..)));
    std::iter::from_fn(|| planner.poll_action()).map(published).sum()
}

#[test]
fn what_is_noted_is_in_one_plan() {
    let (mut at_once, mut one_by_one) = (planner(), planner());
    for id in 1..=30 {
        at_once.note(submit(id)).unwrap();
        one_by_one.handle(Time(0), submit(id)).unwrap();
    }
    assert!(at_once.note(submit(7)).is_err(), "there is one of this number");
    assert_eq!((plans(&mut at_once), plans(&mut one_by_one)), (0, 30));
    at_once.plan_noted(Time(0));
    assert_eq!(plans(&mut at_once), 1);
    let plan = at_once.plan();
    assert_eq!(plan.jobs.len(), 30);
    assert!(plan.jobs.values().all(|job| job.turns > 0));
}

#[test]
fn a_plan_takes_time_that_grows_as_the_jobs() {
    let time = |count: u64| {
        let mut planner = planner();
        (1..count).for_each(|id| planner.note(submit(id)).unwrap());
        planner.plan_noted(Time(0));
        let mut once = |id: u64| {
            let start = Instant::now();
            planner.handle(Time(0), submit(id)).unwrap();
            start.elapsed()
        };
        (count..count + 8).map(&mut once).min().unwrap_or(Duration::MAX)
    };
    let (few, many) = (time(100), time(1600));
    assert!(many < few * 16 * 4, "with 100 jobs it takes {few:?}, with 1600 {many:?}");
}
