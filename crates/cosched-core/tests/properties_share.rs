//! Shares of the slots: a job's largest part, alone and beside others, on one node and on several.

use cosched_core::cluster::{
    Capacity, Input, JobSpec, Known, LocalConfig, LocalJob, LocalScheduler, NodeWant, Planner as Cluster, State, Want,
};
use cosched_core::{
    Class, Job, JobId, Node, NodeId, Packing, Plan, Planner, PlannerConfig, PlannerInput, Policy, Shares, Sharing,
    SlotShare, Time,
};
use proptest::prelude::*;
use proptest::test_runner::Config;

const SLOT_NS: u64 = 20_000_000;

fn share(permille: u32) -> Option<SlotShare> {
    SlotShare::new(permille)
}

fn planner(policy: Policy) -> Planner {
    Planner::new(PlannerConfig {
        nodes: vec![Node { id: NodeId(0), cpus: 4 }],
        slot_length_ns: SLOT_NS,
        policy,
        sharing: Sharing::Strict,
        packing: Packing::FirstFit,
        shares: Shares::default(),
    })
}

fn submit(planner: &mut Planner, now: Time, id: u64, cpus: u32, most: Option<SlotShare>) {
    let job = Job { id: JobId(id), owner: id as u32, class: Class::Batch, policy: None, cpus, node: None };
    planner.note(PlannerInput::Submit(job)).unwrap();
    planner.handle(now, PlannerInput::Share(JobId(id), most)).unwrap();
}

/// The number of these slots in which a job runs.
fn slots(plan: &Plan, id: u64, slots: std::ops::Range<u64>) -> u64 {
    slots.filter(|slot| plan.turn(*slot).is_some_and(|turn| turn.run.contains(&JobId(id)))).count() as u64
}

#[test]
fn who_is_alone_has_exactly_its_share_in_any_ten_seconds() {
    for permille in [20, 50, 125, 300, 333, 500, 501, 667, 990, 999, 1000] {
        let mut planner = planner(Policy::Local);
        submit(&mut planner, Time(0), 1, 2, share(permille));
        for begin in (0..3000).step_by(37) {
            let has = slots(planner.plan(), 1, begin..begin + 500) * 1000;
            assert!(has.abs_diff(500 * u64::from(permille)) <= 1000, "{permille} ‰: {has} from {begin}");
        }
    }
}

/// What a job has earned under its old share is neither lost nor paid twice.
#[test]
fn a_changed_share_is_exact_from_the_next_slot_on() {
    let shares = [20, 125, 333, 500, 667, 900, 1000];
    let mut planner = planner(Policy::Local);
    submit(&mut planner, Time(0), 1, 2, share(700));
    let mut slot = 0;
    for (n, permille) in shares.iter().cycle().step_by(4).take(28).enumerate() {
        slot += 501 + n as u64;
        planner.handle(Time(slot * SLOT_NS + SLOT_NS / 2), PlannerInput::Share(JobId(1), share(*permille))).unwrap();
        let has = slots(planner.plan(), 1, slot + 1..slot + 501) * 1000;
        assert!(has.abs_diff(500 * u64::from(*permille)) <= 2000, "{permille} ‰ from {slot}: {has}");
    }
}

#[test]
fn what_a_share_leaves_goes_to_the_others() {
    for (permille, expected) in [(100, 100), (300, 300), (500, 500), (800, 500)] {
        let mut planner = planner(Policy::Gang);
        submit(&mut planner, Time(0), 1, 4, share(permille));
        submit(&mut planner, Time(0), 2, 4, None);
        let has = [1, 2].map(|id| slots(planner.plan(), id, 0..1000));
        assert_eq!(has, [expected, 1000 - expected], "{permille} ‰");
    }
}

#[test]
fn two_with_shares_leave_the_rest_idle() {
    let mut planner = planner(Policy::Gang);
    submit(&mut planner, Time(0), 1, 4, share(200));
    submit(&mut planner, Time(0), 2, 3, share(350));
    let has = [1, 2].map(|id| slots(planner.plan(), id, 0..1000));
    assert_eq!(has, [200, 350]);
}

#[test]
fn plans_that_come_fast_give_nobody_more_and_hardly_less() {
    for every in [1, 2, 3, 7] {
        let mut planner = planner(Policy::Gang);
        submit(&mut planner, Time(0), 1, 2, share(333));
        let mut has = 0;
        for slot in 0..3000 {
            let now = Time(slot * SLOT_NS + SLOT_NS / 3);
            let id = 10 + slot / every;
            match slot % every {
                0 if (slot / every) % 2 == 0 => submit(&mut planner, now, id, 1 + (slot % 4) as u32, None),
                0 => planner.handle(now, PlannerInput::End(JobId(id - 1))).unwrap(),
                _ => (),
            }
            has += slots(planner.plan(), 1, slot..slot + 1);
        }
        assert!((990..=1005).contains(&has), "every {every} slots: {has} of 1000");
    }
}

/// A job of a lower class is due less than its share beside others, and has all of it once they are gone.
#[test]
fn beside_other_classes_a_job_has_the_smaller_of_its_share_and_what_its_class_is_due() {
    for (class, permille, expected) in [
        (Class::Standby, 500, 333),
        (Class::Standby, 200, 200),
        (Class::Interactive, 500, 500),
        (Class::Interactive, 900, 667),
    ] {
        let mut planner = planner(Policy::Gang);
        submit(&mut planner, Time(0), 1, 4, share(permille));
        planner.handle(Time(0), PlannerInput::Class(JobId(1), class)).unwrap();
        submit(&mut planner, Time(0), 2, 4, None);
        let has = [1, 2].map(|id| slots(planner.plan(), id, 0..3000) / 3);
        assert!(has[0].abs_diff(expected) <= 1 && has[0] + has[1] >= 999, "{class:?}, {permille} ‰: {has:?}");
        planner.handle(Time(0), PlannerInput::End(JobId(2))).unwrap();
        assert_eq!(slots(planner.plan(), 1, 0..1000), u64::from(permille), "{class:?}, alone");
    }
}

/// Share and ceiling are each a maximum of its own; it is not the share of what the ceiling leaves.
#[test]
fn a_job_has_the_smaller_of_its_share_and_the_ceiling() {
    for (permille, ceiling) in [(500, 800), (300, 900), (125, 900), (800, 500), (900, 250), (300, 300)] {
        for (nodes, spans) in [(1, false), (2, true)] {
            let cluster = cluster_of(nodes, ceiling, &[(4, permille, 0, spans)]);
            let has = slots(&node_plan(&cluster, 0), 1, 0..4000) / 4;
            let least = u64::from(permille.min(ceiling));
            assert!(has <= least && has + 10 >= least, "{permille} ‰ under {ceiling} ‰, {nodes} nodes: {has}");
        }
    }
}

#[test]
fn beside_others_a_ceiling_takes_nothing_of_a_share_that_is_below_the_jobs_part() {
    let cluster = cluster_of(1, 800, &[(4, 300, 0, false), (4, 0, 0, false)]);
    let plan = node_plan(&cluster, 0);
    let has = [1, 2].map(|id| slots(&plan, id, 0..1000));
    assert_eq!(has, [300, 500]);
    let cluster = cluster_of(2, 800, &[(4, 300, 0, true), (4, 0, 0, true)]);
    let plan = node_plan(&cluster, 0);
    let has = [1, 2].map(|id| slots(&plan, id, 0..1000));
    assert_eq!(has, [300, 400]);
}

/// A cluster of three nodes.
fn cluster(gangs: &[(u32, u32, u32, bool)]) -> Cluster {
    cluster_of(3, 1000, gangs)
}

/// A cluster of nodes with four CPUs: gangs that span nodes, and others, by CPUs, share in ‰ and first node.
fn cluster_of(nodes: u32, ceiling_permille: u32, gangs: &[(u32, u32, u32, bool)]) -> Cluster {
    let mut planner = Cluster::new(State::default()).unwrap();
    planner.handle(Time(0), Time(0), Input::SlotLength(SLOT_NS)).unwrap();
    planner.handle(Time(0), Time(0), Input::Ceiling(ceiling_permille)).unwrap();
    for node in 0..nodes {
        let capacity = Capacity { cpus: 4, memory_bytes: 1 << 30, disk_bytes: 1 << 30 };
        planner.handle(Time(0), Time(0), Input::Join(NodeId(node), capacity)).unwrap();
    }
    for (id, (cpus, permille, node, spans)) in (1..).zip(gangs) {
        let on = [*node % nodes, (*node + 1) % nodes];
        let on = if *spans { &on[..] } else { &on[..1] };
        let want =
            |node: &u32| NodeWant { node: NodeId(*node), cpus: *cpus, cpus_min: 1, memory_bytes: 0, disk_bytes: 0 };
        let spec = JobSpec {
            slot_share: share(*permille).filter(|_| *permille >= 20 && *permille < 1000),
            ..JobSpec::new(JobId(id), Class::Batch, Want::PerNode(on.iter().map(want).collect()))
        };
        planner.handle(Time(0), Time(id * 333_000_000), Input::Submit(spec)).unwrap();
    }
    planner
}

/// A node's plan under the cluster's plan.
fn node_plan(cluster: &Cluster, node: u32) -> Plan {
    let is_single = cluster.state().nodes.len() == 1;
    let mut local = LocalScheduler::new(LocalConfig { slot_length_ns: SLOT_NS, is_single, ..LocalConfig::new(4) });
    local.use_plan(std::sync::Arc::clone(cluster.plan()));
    for (id, job) in &cluster.state().jobs {
        let parts = job.place.as_ref().map_or(&[][..], |place| &place.parts);
        let Some(part) = parts.iter().find(|part| part.node == NodeId(node)) else { continue };
        let (owner, class, policy, slot_share) = (0, Class::Batch, None, None);
        let (cpus, spans) = (part.cpus, parts.len() > 1);
        // The share comes from the cluster's state.
        local.begin(
            *id,
            LocalJob {
                owner,
                class,
                policy,
                slot_share,
                cpus,
                memory_bytes: 0,
                suspended: false,
                spans,
                exclusive_cores: false,
            },
        );
    }
    let known = Known { node: NodeId(node), state: cluster.state(), revision: 1, in_touch: true };
    while local.settle(Time(0), Some(known)) {
        while let Some(action) = local.poll_action() {
            let text = format!("{action:?}");
            assert!(!text.contains("Unsound") && !text.contains("Refused"), "{text}");
        }
    }
    Plan::clone(local.plan())
}

#[test]
fn a_gang_on_several_nodes_has_its_share_in_the_same_slots_and_others_have_the_rest() {
    let cluster = cluster(&[(4, 300, 0, true), (4, 0, 0, true)]);
    let plans = [0, 1].map(|node| node_plan(&cluster, node));
    for plan in &plans {
        assert_eq!([1, 2].map(|id| slots(plan, id, 0..1000)), [300, 700]);
    }
    assert!((0..1000).all(|slot| slots(&plans[0], 1, slot..slot + 1) == slots(&plans[1], 1, slot..slot + 1)));
}

proptest! {
    #![proptest_config(Config { cases: 96, failure_persistence: None, ..Config::default() })]

    #[test]
    fn all_nodes_run_a_gang_whole_within_its_share(gangs in prop::collection::vec((1..5_u32, 0..1500_u32, 0..3_u32, any::<bool>()), 1..8)) {
        let cluster = cluster(&gangs);
        let plans = [0, 1, 2].map(|node| node_plan(&cluster, node));
        let from = cluster.plan().from_slot;
        for (id, job) in &cluster.state().jobs {
            let on: Vec<&Plan> = plans.iter().filter(|plan| plan.jobs.contains_key(id)).collect();
            let runs = |plan: &Plan, slot| slots(plan, id.0, slot..slot + 1) > 0;
            for slot in from..from + 300 {
                prop_assert!(on.iter().all(|plan| runs(plan, slot) == runs(on[0], slot)), "job {} in {}", id, slot);
            }
            let Some(share) = job.spec.slot_share else { continue };
            for length in [1, 10, 100, 500] {
                let has = slots(on[0], id.0, from..from + length) * 1000;
                prop_assert!(has <= u64::from(share.permille()) * length + 2000, "job {}: {} of {}", id, has, length);
            }
            prop_assert!(on.iter().all(|plan| plan.jobs[id].turns > 0), "job {} starves", id);
        }
    }
}
