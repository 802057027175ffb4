use super::*;
use crate::types::FoundPart;
use cosched_cluster::wire::{By, Decided, Exit, Job, JobAsk, MainProcess, OnNodeLoss, WantAsk};
use cosched_cluster::{Action as Wanted, Keys};
use cosched_core::cluster::{Capacity, LocalAction, Part as Place};
use cosched_core::{AgentAction, Class, NodeId, Policy, Reason};

pub(crate) const ID: JobId = JobId(7);
pub(crate) const S: u64 = 1_000_000_000;

pub(crate) fn at(ns: u64) -> Moment {
    Moment { steady: Time(100 * S + ns), wall: Time(1_000_000 * S + ns) }
}

pub(crate) fn node() -> Node {
    let keys = Keys::new("test").unwrap();
    let settings = Settings::new(keys, "n", 1, Capacity { cpus: 2, memory_bytes: 1 << 30, disk_bytes: 0 });
    let mut node = Node::new(at(0), settings, LocalConfig::new(2), 1 << 30, &[]);
    while node.poll_action().is_some() {}
    node
}

const NOTHING: Decided = Decided { suspended_by: None, class: None, policy: None, share_permille: None };
pub(crate) const LEAD: PartOf = PartOf {
    attempt: 0,
    tree: 1,
    lead: true,
    alike: false,
    closing: false,
    grace_ms: None,
    planned_ms: None,
    decided: NOTHING,
};
const FOLLOWER: PartOf = PartOf { lead: false, ..LEAD };
const ALIKE: PartOf = PartOf { alike: true, ..FOLLOWER };

pub(crate) fn job() -> LocalJob {
    let (class, policy) = (Class::Batch, None);
    LocalJob {
        owner: 1,
        class,
        policy,
        slot_share: None,
        cpus: 1,
        memory_bytes: 0,
        suspended: false,
        spans: false,
        exclusive_cores: false,
    }
}

pub(crate) fn with(of: PartOf, has_begun: bool, populated: bool) -> Node {
    let mut node = node();
    node.find(ID, &FoundPart { of, job: job(), has_begun, populated });
    said(&mut node);
    node
}

/// A node with two jobs that want all of its CPUs; [`ID`] has this policy.
pub(crate) fn with_policy(policy: Policy) -> Node {
    let mut node = node();
    for (id, policy) in [(ID, Some(policy)), (JobId(8), None)] {
        let job = LocalJob { policy, cpus: 2, ..job() };
        node.find(id, &FoundPart { of: LEAD, job, has_begun: true, populated: true });
    }
    said(&mut node);
    node
}

/// The host's actions, except for the store's and samples.
pub(crate) fn said(node: &mut Node) -> Vec<Action> {
    let all = std::iter::from_fn(|| node.poll_action());
    let rest = |action: &Action| {
        !matches!(action, Action::Store(..) | Action::Sample(_) | Action::Plan | Action::Say(_) | Action::Keep(_))
    };
    all.filter(rest).collect()
}

fn after(node: &mut Node, ns: u64) -> Vec<Action> {
    node.handle(at(ns), Input::Timeout);
    said(node)
}

fn told(node: &mut Node, input: Input) -> Vec<Action> {
    node.handle(at(S), input);
    said(node)
}

/// The launcher reports the main process's exit status, and the host whether other processes are left.
fn exited(node: &mut Node, populated: bool) -> Vec<Action> {
    node.request(at(S), USER, RequestId(1), Request::Exited(ID, EXIT));
    assert_eq!(said(node), [Action::Exited(ID, EXIT)]);
    node.handle(at(S), Input::Populated(ID, populated));
    let said = said(node);
    assert_eq!(node.poll_answer(), Some((RequestId(1), Outcome::Local(ID))));
    said
}

const EXIT: Exit = Exit { code: Some(0), signal: None };

/// The owner of all jobs here.
pub(crate) const USER: By = By { uid: 1, gid: 1, admin: false };

pub(crate) fn ask() -> JobAsk {
    JobAsk {
        name: "a".to_owned(),
        command: vec!["true".to_owned()],
        cwd: None,
        environment: Vec::new(),
        log_path: None,
        class: cosched_cluster::wire::Class::Batch,
        policy: None,
        share_permille: None,
        waiting: None,
        want: WantAsk::Total { cpus: 1, memory_per_cpu_bytes: 0, disk_bytes: 0 },
        queue: None,
        groups: Vec::new(),
        on_node_loss: OnNodeLoss::Kill,
        lead: Some("n".to_owned()),
        main: None,
        once: false,
        terms: Default::default(),
    }
}

fn wanted(id: JobId) -> Box<Job> {
    let ask = JobAsk { main: Some(MainProcess { pid: 1, start_ticks: 1 }), ..ask() };
    Box::new(Job::new(id.0, By { uid: 1, gid: 1, admin: false }, ask, 0))
}

fn begin(node: &mut Node) -> Vec<Action> {
    let part = Place { node: NodeId(0), cpus: 1, memory_bytes: 0, disk_bytes: 0 };
    node.act(Wanted::StartPart { job: wanted(ID), part });
    said(node)
}

const OVER: Action = Action::Finish(ID, 0);

#[test]
fn a_part_with_the_main_process_waits_a_moment_to_hear_how_that_ended() {
    let mut node = with(LEAD, true, true);
    assert_eq!(exited(&mut node, true), [], "others of its processes are left");
    assert_eq!(told(&mut node, Input::Populated(ID, false)), [OVER]);
    let mut node = with(LEAD, true, true);
    assert_eq!(told(&mut node, Input::Populated(ID, false)), []);
    assert_eq!(node.poll_timeout().map(|due| due <= at(3 * S).steady), Some(true));
    assert_eq!(after(&mut node, 3 * S - 1), []);
    assert_eq!(after(&mut node, 3 * S), [OVER]);
    assert!(!node.has(ID));
    assert_eq!(told(&mut node, Input::Populated(ID, true)), [], "it is not here any more");
}

#[test]
fn one_whose_processes_come_back_is_not_over() {
    let mut node = with(LEAD, true, true);
    told(&mut node, Input::Populated(ID, false));
    told(&mut node, Input::Populated(ID, true));
    assert_eq!(after(&mut node, 100 * S), []);
}

#[test]
fn other_parts_may_be_empty_until_the_main_process_has_ended() {
    let mut node = with(FOLLOWER, false, true);
    assert_eq!(told(&mut node, Input::Populated(ID, false)), []);
    assert_eq!(after(&mut node, 100 * S), []);
    node.act(Wanted::ClosePart { job: ID, attempt: 0 });
    assert_eq!(said(&mut node), [OVER]);
    let mut node = with(FOLLOWER, false, true);
    node.act(Wanted::ClosePart { job: ID, attempt: 0 });
    assert_eq!(said(&mut node), []);
    assert!(node.part(ID).unwrap().0.closing, "the next daemon has to know");
    assert_eq!(told(&mut node, Input::Populated(ID, false)), [OVER]);
}

#[test]
fn a_job_without_a_main_process_is_over_when_the_cluster_says_so() {
    let mut node = with(ALIKE, true, true);
    assert_eq!(told(&mut node, Input::Populated(ID, false)), []);
    assert_eq!(after(&mut node, 100 * S), []);
    assert!(node.has(ID));
    node.act(Wanted::ClosePart { job: ID, attempt: 0 });
    assert_eq!(said(&mut node), [OVER]);
}

#[test]
fn what_was_found_without_processes_is_given_time() {
    assert_eq!(after(&mut with(LEAD, true, false), 2 * S), [OVER], "its launcher has not said how it ended");
    let mut node = with(LEAD, false, false);
    assert_eq!(after(&mut node, 59 * S), [], "its first process may come");
    assert_eq!(after(&mut node, 60 * S), [OVER]);
    assert_eq!(after(&mut with(LEAD, false, true), 100 * S), []);
    assert_eq!(after(&mut with(FOLLOWER, false, false), 100 * S), []);
}

#[test]
fn who_has_a_place_and_does_not_come_gives_it_back() {
    let mut node = node();
    assert!(matches!(begin(&mut node)[..], [Action::Begin { .. }]));
    node.handle(at(0), Input::Began(ID, Began { populated: false, comes: true }));
    assert_eq!(after(&mut node, 59 * S), []);
    assert_eq!(after(&mut node, 60 * S), [OVER]);
    begin(&mut node);
    node.handle(at(61 * S), Input::Began(ID, Began { populated: false, comes: false }));
    assert_eq!(after(&mut node, 61 * S), [OVER], "its main process has ended already");
    begin(&mut node);
    node.handle(at(62 * S), Input::Began(ID, Began { populated: true, comes: true }));
    assert_eq!(after(&mut node, 200 * S), []);
    node.handle(at(200 * S), Input::NotEntered(ID));
    assert_eq!(after(&mut node, 201 * S), [], "processes are in it");
}

#[test]
fn a_number_that_is_taken_is_no_reason_to_touch_who_has_it() {
    let mut node = with(LEAD, true, true);
    assert_eq!(begin(&mut node), [Action::Taken(ID)]);
    assert!(node.has(ID));
}

#[test]
fn what_cannot_begin_is_not_here() {
    let mut node = node();
    begin(&mut node);
    assert_eq!(told(&mut node, Input::Failed(ID)), []);
    assert!(!node.has(ID) && node.local().job(ID).is_none());
}

#[test]
fn a_kill_ends_this_life_of_a_job_and_no_other() {
    let kill = |attempt, reason| Wanted::KillPart { job: ID, attempt, reason };
    let mut node = with(LEAD, true, true);
    node.act(kill(1, Reason::UserRequest));
    assert_eq!(said(&mut node), [Action::Report(ID, 1)]);
    node.act(kill(0, Reason::NodeLost));
    assert_eq!(
        said(&mut node),
        [Action::Signal { job: ID, signal: 9, why: Why::Reason(Reason::NodeLost), asked: None }]
    );
    assert_eq!(told(&mut node, Input::Populated(ID, false)), [], "who waits for it may say how it ended");
    assert_eq!(exited(&mut node, false), [OVER]);
    let mut node = with(LEAD, true, false);
    node.act(kill(0, Reason::UserRequest));
    assert_eq!(said(&mut node), [OVER], "there is nobody to send a signal to");
}

#[test]
fn a_store_that_knows_no_job_ends_none_and_keeps_none_stopped() {
    let mut node = node();
    node.find(
        ID,
        &FoundPart { of: LEAD, job: LocalJob { suspended: true, ..job() }, has_begun: true, populated: true },
    );
    said(&mut node);
    assert!(node.is_forgotten(ID));
    node.act(Wanted::KillPart { job: ID, attempt: 0, reason: Reason::Departure });
    assert_eq!(said(&mut node), [Action::Forgotten(ID)]);
    assert!(!node.part(ID).unwrap().1.suspended);
    assert_eq!(told(&mut node, Input::Populated(ID, false)), []);
    assert_eq!(after(&mut node, 100 * S), [OVER]);
}

#[test]
fn what_a_polite_signal_has_left_is_ended() {
    let mut node = with(LEAD, true, true);
    node.kill_in(ID, Some(5000), false);
    assert_eq!(after(&mut node, 4 * S), []);
    assert_eq!(after(&mut node, 5 * S), [Action::KillRest(ID)]);
    assert_eq!((after(&mut node, 6 * S), node.kills_at(ID)), (vec![], None));
}

#[test]
fn a_gang_that_is_asleep_is_so_for_the_host_too() {
    let mut node = with(LEAD, true, true);
    node.act_local(sleeps(true));
    assert!(matches!(said(&mut node)[..], [Action::Sleeps { job: ID, asleep: true, .. }]));
    node.act_local(sleeps(false));
    assert!(matches!(said(&mut node)[..], [Action::Sleeps { job: ID, asleep: false, .. }]));
}

fn sleeps(asleep: bool) -> LocalAction {
    let (job, reason) = (ID, Reason::NoCpuUsed);
    LocalAction::Agent(if asleep { AgentAction::Asleep { job, reason } } else { AgentAction::Awake { job, reason } })
}
