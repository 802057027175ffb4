use super::*;
use crate::cluster::{Input, JobSpec, NodeWant, OnNodeLoss, Planner as ClusterPlanner, Want, two_nodes};
use alloc::vec::Vec;

const NODE: NodeId = NodeId(0);
const SPANNING: JobId = JobId(1);
const OWN: JobId = JobId(2);

/// Two nodes of two CPUs: job 1 has both CPUs of both nodes and continues after a node loss, job 2 has one CPU of node 0.
fn cluster() -> ClusterPlanner {
    let mut planner = two_nodes(2);
    for (id, nodes, cpus) in [(SPANNING, &[0, 1][..], 2), (OWN, &[0][..], 1)] {
        let want = |node: &u32| NodeWant { node: NodeId(*node), cpus, cpus_min: 1, memory_bytes: 0, disk_bytes: 0 };
        let want = Want::PerNode(nodes.iter().map(want).collect());
        let spec = JobSpec { on_node_loss: OnNodeLoss::Keep, ..JobSpec::new(id, Class::Batch, want) };
        planner.handle(Time(0), Time(0), Input::Submit(spec)).unwrap();
    }
    planner
}

fn job(cpus: u32, spans: bool) -> LocalJob {
    let (class, policy) = (Class::Batch, None);
    LocalJob {
        owner: 0,
        class,
        policy,
        slot_share: None,
        cpus,
        memory_bytes: 0,
        suspended: false,
        spans,
        exclusive_cores: false,
    }
}

fn local() -> LocalScheduler {
    let mut local = LocalScheduler::new(LocalConfig::new(2));
    local.begin(SPANNING, job(2, true));
    local.begin(OWN, job(1, false));
    local
}

/// Passes the cluster's state on to the node and applies it; returns the actions for the host.
fn settle(local: &mut LocalScheduler, planner: &ClusterPlanner) -> Vec<LocalAction> {
    let known = Known { node: NODE, state: planner.state(), revision: planner.plan().generation, in_touch: true };
    let mut actions = Vec::new();
    while local.settle(Time(0), Some(known)) {
        actions.extend(core::iter::from_fn(|| local.poll_action()));
    }
    assert!(!actions.iter().any(|action| matches!(action, LocalAction::Agent(AgentAction::Unsound(_)))), "{actions:?}");
    actions
}

fn planned(local: &LocalScheduler) -> Vec<JobId> {
    local.plan().jobs.keys().copied().collect()
}

#[test]
fn before_the_cluster_is_known_jobs_are_as_their_records_say() {
    let mut local = local();
    local.begin(JobId(3), LocalJob { suspended: true, ..job(2, false) });
    assert!(local.settle(Time(0), None));
    while local.poll_action().is_some() {}
    assert_eq!(planned(&local), [OWN, JobId(3)], "who spans nodes is left to the operating system");
    let may = |id| local.disposition(id);
    assert_eq!([SPANNING, OWN, JobId(3)].map(may), [Disposition::Run, Disposition::Run, Disposition::Stop]);
    assert!(!local.settle(Time(0), None), "nothing has changed");
}

#[test]
fn a_part_that_waits_for_its_plan_has_no_cpus_of_others() {
    let planner = cluster();
    let mut local = LocalScheduler::new(LocalConfig { sharing: Sharing::Strict, ..LocalConfig::new(2) });
    let id = JobId(9);
    let mut state = planner.state().clone();
    state.config.sharing = Sharing::Strict;
    state.jobs.insert(id, state.jobs[&SPANNING].clone());
    let known = Known { node: NODE, state: &state, revision: 1, in_touch: true };
    local.begin(id, job(2, true));
    local.settle(Time(0), Some(known));
    assert_eq!(local.unplanned(id), Disposition::Run, "nobody has slots yet");
    local.use_plan(Arc::clone(planner.plan()));
    local.settle(Time(0), Some(known));
    assert_eq!(local.unplanned(id), Disposition::Stop);
    local.leave(id);
    local.settle(Time(0), Some(Known { revision: 2, ..known }));
    assert_eq!(local.unplanned(id), Disposition::Run, "what is said is said of its twin");
    local.end(id);
    local.begin(id, job(2, true));
    local.settle(Time(0), Some(known));
    assert_eq!(local.unplanned(id), Disposition::Stop);
    local.start_early(id);
    assert_eq!(local.unplanned(id), Disposition::Run);
    local.no_slots();
    assert_eq!(local.unplanned(id), Disposition::Run);
}

#[test]
fn both_planners_jobs_are_in_the_nodes_plan() {
    let (planner, mut local) = (cluster(), local());
    local.use_plan(Arc::clone(planner.plan()));
    settle(&mut local, &planner);
    assert_eq!(planned(&local), [SPANNING, OWN]);
    local.end(OWN);
    settle(&mut local, &planner);
    assert_eq!(planned(&local), [SPANNING]);
}

/// Regression: with strict sharing it was stopped for ever, because no planner had it.
#[test]
fn a_gang_that_has_lost_its_other_nodes_is_the_nodes_own() {
    let (mut planner, mut local) = (cluster(), local());
    local.use_plan(Arc::clone(planner.plan()));
    settle(&mut local, &planner);
    planner.handle(Time(1), Time(1), Input::Leave(NodeId(1))).unwrap();
    assert_eq!(settle(&mut local, &planner), [], "the plan in use has it");
    local.use_plan(Arc::clone(planner.plan()));
    let actions = settle(&mut local, &planner);
    assert!(actions.contains(&LocalAction::Keep(SPANNING, job(2, false))), "{actions:?}");
    assert!(local.plan().jobs[&SPANNING].home.is_some(), "it has slots");
}

#[test]
fn what_a_user_has_decided_counts_at_once_and_without_slots() {
    let (mut planner, mut local) = (cluster(), local());
    local.use_plan(Arc::clone(planner.plan()));
    settle(&mut local, &planner);
    planner.handle(Time(1), Time(1), Input::Suspend(OWN)).unwrap();
    planner.handle(Time(1), Time(1), Input::Suspend(SPANNING)).unwrap();
    let actions = settle(&mut local, &planner);
    assert!(actions.contains(&LocalAction::Keep(OWN, LocalJob { suspended: true, ..job(1, false) })), "{actions:?}");
    assert_eq!(local.plan().jobs[&OWN].standing, Standing::Suspended);
    local.no_slots();
    settle(&mut local, &planner);
    assert_eq!([SPANNING, OWN].map(|id| local.disposition(id)), [Disposition::Stop; 2]);
    // A signal that tells it to end, before the store has heard of that.
    local.suspend(OWN, false);
    settle(&mut local, &planner);
    assert_eq!(local.disposition(OWN), Disposition::Run);
    planner.handle(Time(2), Time(2), Input::Resume(OWN)).unwrap();
    planner.handle(Time(2), Time(2), Input::Suspend(OWN)).unwrap();
    settle(&mut local, &planner);
    assert_eq!(local.disposition(OWN), Disposition::Run, "nobody saw it resumed");
}

#[test]
fn without_a_good_clock_nobody_has_slots() {
    let (planner, mut local) = (cluster(), local());
    for id in [3, 4] {
        local.begin(JobId(id), job(2, false));
    }
    settle(&mut local, &planner);
    let stopped = |local: &LocalScheduler| {
        [2, 3, 4].into_iter().filter(|id| local.disposition(JobId(*id)) != Disposition::Run).count()
    };
    assert!(stopped(&local) > 0 && local.owners().next().is_some());
    local.clock(Time(0), false);
    assert_eq!((stopped(&local), local.owners().next()), (0, None));
}

/// A job that has lost its place through a restored copy of the store continues.
#[test]
fn a_state_that_does_not_know_a_job_changes_nothing_of_it() {
    let (planner, mut local) = (cluster(), local());
    local.use_plan(Arc::clone(planner.plan()));
    settle(&mut local, &planner);
    local.no_slots();
    let known = Known { node: NODE, state: &State::default(), revision: 1, in_touch: true };
    local.settle(Time(0), Some(known));
    while local.poll_action().is_some() {}
    assert_eq!(local.plan().jobs[&OWN].standing, Standing::Scheduled);
    assert_eq!(local.disposition(OWN), Disposition::Run);
}

/// Regression: with strict sharing it was stopped for ever, because no plan of the cluster has room for it.
#[test]
fn what_the_cluster_has_forgotten_is_left_to_the_operating_system() {
    let (planner, mut local) = (cluster(), local());
    local.use_plan(Arc::clone(planner.plan()));
    local.begin(JobId(3), job(2, false));
    settle(&mut local, &planner);
    assert_eq!(planned(&local), [SPANNING, OWN, JobId(3)]);
    for id in [OWN, JobId(3)] {
        local.leave(id);
        local.suspend(id, true);
    }
    let known = Known { node: NODE, state: &State::default(), revision: 99, in_touch: true };
    assert!(local.settle(Time(0), Some(known)));
    while local.poll_action().is_some() {}
    assert_eq!((planned(&local), local.disposition(JobId(3))), (vec![SPANNING], Disposition::Run));
}

#[test]
fn sleep_is_told_to_the_own_planner_and_a_user_ends_it_from_anywhere() {
    let (mut planner, mut local) = (cluster(), local());
    settle(&mut local, &planner);
    // The daemon was restarted: the cluster knows that the job sleeps.
    planner.handle(Time(1), Time(1), Input::Asleep(OWN)).unwrap();
    settle(&mut local, &planner);
    assert_eq!((local.is_asleep(OWN), local.plan().jobs[&OWN].standing), (true, Standing::Asleep));
    planner.handle(Time(1), Time(1), Input::Resume(OWN)).unwrap();
    let actions = settle(&mut local, &planner);
    let woken = AgentAction::Awake { job: OWN, reason: Reason::UserRequest };
    assert!(actions.contains(&LocalAction::Agent(woken)), "{actions:?}");
    assert_eq!((local.is_asleep(OWN), local.plan().jobs[&OWN].standing), (false, Standing::Scheduled));
}

#[test]
fn what_the_own_planner_cannot_do_is_told_and_leaves_the_others_alone() {
    let mut local = local();
    local.begin(JobId(3), job(99, false));
    assert!(matches!(local.poll_action(), Some(LocalAction::Refused(JobId(3), _))));
    local.settle(Time(0), None);
    assert_eq!(planned(&local), [OWN]);
    local.end(JobId(3));
    assert_eq!(local.poll_action(), None);
}
