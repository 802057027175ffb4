//! Requests, one at a time, on a cluster of three nodes of four CPUs.

use super::*;
use crate::member::replica::At;
use crate::member::tests::{ROOT, USER, job, submit};
use crate::wire::{JobAsk, KillHow, OnNodeLoss, Policy, Why};
use cosched_core::Standing;
use cosched_core::cluster::{Capacity, State};

const OTHER: By = By { uid: 1001, gid: 100, admin: false };

/// The start of a step of planning: nodes n0 to n2, and the records of jobs.
struct Cluster {
    replica: Replica,
    planner: Planner,
}

impl Cluster {
    fn new() -> Cluster {
        let mut planner = Planner::new(State::default()).unwrap();
        let mut replica = Replica::default();
        for id in 0..3 {
            let capacity = Capacity { cpus: 4, memory_bytes: 1 << 30, disk_bytes: 1 << 30 };
            planner.apply(Time(0), Input::Join(NodeId(id), capacity)).unwrap();
            replica.names.insert(format!("n{id}"), id);
            replica.by_id.insert(NodeId(id), format!("n{id}"));
        }
        Cluster { replica, planner }
    }

    /// A cluster with this job of USER, which is on all its nodes.
    fn with(ask: JobAsk) -> Cluster {
        let mut cluster = Cluster::new();
        assert_eq!(cluster.asks(USER, Ask::Submit(Box::new(ask))), Ok(Answer::Submitted { job: 1 }));
        cluster
    }

    fn batch(&self, refuse_submits: bool) -> Batch<'_> {
        Batch::new(&self.replica, Planner::new(self.planner.state().clone()).unwrap(), Time(7), refuse_submits)
    }

    /// Carries out one request, and what follows from it.
    fn does(&mut self, origin: &str, by: Option<By>, ask: Ask) -> Outcome {
        let mut batch = self.batch(false);
        let outcome = batch.request(&Request { origin: origin.to_owned(), by, at_ns: 5, ask });
        batch.finish();
        let Batch { planner, jobs, .. } = batch;
        self.planner = planner;
        for (id, job) in jobs {
            self.replica.jobs.insert(id, At { value: job, revision: 1 });
        }
        outcome
    }

    fn asks(&mut self, by: By, ask: Ask) -> Outcome {
        self.does("n0", Some(by), ask)
    }

    fn says(&mut self, origin: &str, ask: Ask) {
        assert_eq!(self.does(origin, None, ask), Ok(Answer::Done));
    }

    fn job(&self) -> &Job {
        &self.replica.jobs[&1].value
    }

    fn stage(&self) -> Option<Stage> {
        self.planner.state().jobs.get(&JobId(1)).map(|job| job.stage)
    }

    fn standing(&self) -> Standing {
        self.planner.state().jobs[&JobId(1)].standing
    }
}

fn why(outcome: Outcome) -> String {
    match outcome {
        Err(Answer::Refused { what, why, .. }) => format!("{what}: {why}"),
        other => panic!("{other:?}"),
    }
}

/// A job on all three nodes, with this rule.
fn wide(on_node_loss: OnNodeLoss) -> JobAsk {
    JobAsk { on_node_loss, ..job("wide", 12) }
}

const END: PartEnd = PartEnd { exit: None, cpu_time_ns: 0, memory_peak_bytes: 0, out_of_memory: None };
const EXIT: Exit = Exit { code: Some(3), signal: None };

#[test]
fn a_job_is_over_when_its_last_part_is() {
    let mut cluster = Cluster::with(wide(OnNodeLoss::Kill));
    for (node, over) in [("n1", false), ("n0", false), ("n1", false), ("n2", true)] {
        cluster.says(node, Ask::PartEnded { job: 1, attempt: 0, end: END });
        assert_eq!(cluster.job().end.is_some(), over, "{node}");
        assert_eq!(cluster.stage().is_none(), over, "{node}");
    }
}

#[test]
fn a_part_that_ends_where_the_job_is_led_from_closes_it() {
    let mut cluster = Cluster::with(wide(OnNodeLoss::Kill));
    cluster.says("n1", Ask::PartEnded { job: 1, attempt: 0, end: END });
    assert!(!cluster.job().closing);
    cluster.says("n0", Ask::PartEnded { job: 1, attempt: 0, end: END });
    assert!(cluster.job().closing, "n0 is where its main process was");
}

#[test]
fn the_first_that_a_node_says_of_a_parts_end_counts() {
    let mut cluster = Cluster::with(wide(OnNodeLoss::Kill));
    let first = PartEnd { exit: Some(EXIT), ..END };
    cluster.says("n1", Ask::PartEnded { job: 1, attempt: 0, end: first });
    cluster.says("n1", Ask::PartEnded { job: 1, attempt: 0, end: END });
    assert_eq!(cluster.job().ended_on["n1"], first);
}

/// The cluster with a job in its second attempt.
fn again() -> Cluster {
    let mut cluster = Cluster::with(wide(OnNodeLoss::Requeue));
    cluster.says("n2", Ask::PartLost { job: 1, attempt: 0 });
    for node in ["n0", "n1"] {
        cluster.says(node, Ask::PartEnded { job: 1, attempt: 0, end: END });
    }
    assert_eq!((cluster.job().attempt, cluster.stage()), (1, Some(Stage::Ready)));
    cluster
}

#[test]
fn what_is_said_of_an_earlier_life_counts_no_more() {
    for said in [
        Ask::PartEnded { job: 1, attempt: 0, end: END },
        Ask::PartLost { job: 1, attempt: 0 },
        Ask::MainEnded { job: 1, attempt: 0, exit: EXIT },
        Ask::Asleep { job: 1, attempt: 0 },
        Ask::Dropped { job: 1, attempt: 0 },
        Ask::Empty { job: 1, attempt: 0 },
        Ask::Memory { job: 1, attempt: 0, bytes: 1 << 29 },
    ] {
        let mut cluster = again();
        let (before, state) = (cluster.job().clone(), cluster.planner.state().clone());
        for node in ["n0", "n1", "n2"] {
            cluster.says(node, said.clone());
        }
        assert_eq!(*cluster.job(), before, "{said:?}");
        assert_eq!(*cluster.planner.state(), state, "{said:?}");
    }
}

#[test]
fn what_is_said_of_the_present_life_counts() {
    let mut cluster = again();
    cluster.says("n1", Ask::MainEnded { job: 1, attempt: 1, exit: EXIT });
    assert_eq!((cluster.job().main_exit, cluster.job().closing), (Some(EXIT), true), "whoever stands in for the lead");
    for node in ["n0", "n1", "n2"] {
        cluster.says(node, Ask::PartEnded { job: 1, attempt: 1, end: END });
    }
    assert_eq!(cluster.job().end.map(|end| end.exit), Some(Some(EXIT)));
}

#[test]
fn in_its_first_life_only_the_node_of_its_main_process_can_say_that_it_has_ended() {
    let mut cluster = Cluster::with(wide(OnNodeLoss::Kill));
    cluster.says("n1", Ask::MainEnded { job: 1, attempt: 0, exit: EXIT });
    assert!(!cluster.job().closing);
    cluster.says("n0", Ask::MainEnded { job: 1, attempt: 0, exit: EXIT });
    assert!(cluster.job().closing);
    assert_eq!(cluster.stage(), Some(Stage::Ready), "what is left goes on until it is empty");
}

#[test]
fn a_job_that_waits_ends_with_its_main_process() {
    let mut cluster = Cluster::with(JobAsk { lead: Some("n1".to_owned()), ..job("first", 12) });
    let exclusive = |uid| By { uid, ..USER };
    // There is memory for all; the second one waits.
    let mut ask = job("second", 12);
    ask.want = WantAsk::Total { cpus: 12, memory_per_cpu_bytes: 1 << 28, disk_bytes: 0 };
    cluster.asks(exclusive(1), Ask::Submit(Box::new(ask.clone()))).unwrap();
    cluster.asks(exclusive(2), Ask::Submit(Box::new(ask))).unwrap();
    let stage = |cluster: &Cluster| cluster.planner.state().jobs.get(&JobId(3)).map(|job| job.stage);
    assert!(matches!(stage(&cluster), Some(Stage::Waiting(_))));
    cluster.says("n0", Ask::MainEnded { job: 3, attempt: 0, exit: EXIT });
    assert_eq!(stage(&cluster), None);
    assert_eq!(cluster.replica.jobs[&3].value.end.map(|end| end.why), Some(crate::wire::Why::Killed { uid: 2 }));
}

#[test]
fn a_gang_sleeps_when_it_does_so_on_all_its_nodes() {
    let mut cluster = Cluster::with(wide(OnNodeLoss::Kill));
    for (node, standing) in [("n0", Standing::Scheduled), ("n1", Standing::Scheduled), ("n2", Standing::Asleep)] {
        cluster.says(node, Ask::Asleep { job: 1, attempt: 0 });
        assert_eq!(cluster.standing(), standing, "{node}");
    }
    cluster.says("n1", Ask::Awake { job: 1, attempt: 0 });
    assert_eq!(cluster.standing(), Standing::Scheduled, "one that wakes wakes all");
}

#[test]
fn a_gang_that_nobody_waits_for_any_more_is_back_when_its_user_says_so() {
    let mut cluster = Cluster::with(wide(OnNodeLoss::Kill));
    for node in ["n0", "n1", "n2"] {
        cluster.says(node, Ask::Asleep { job: 1, attempt: 0 });
        cluster.says(node, Ask::Dropped { job: 1, attempt: 0 });
    }
    cluster.says("n0", Ask::Awake { job: 1, attempt: 0 });
    assert_eq!(cluster.standing(), Standing::Asleep);
    assert_eq!(cluster.asks(USER, Ask::Resume { job: 1 }), Ok(Answer::Done));
    assert_eq!(cluster.standing(), Standing::Scheduled);
    assert!(cluster.job().dropped_on.is_empty() && cluster.job().asleep_on.is_empty());
}

#[test]
fn a_job_without_a_main_process_closes_when_it_is_empty_on_all_its_nodes() {
    let mut cluster = Cluster::with(JobAsk { lead: None, ..wide(OnNodeLoss::Kill) });
    cluster.says("n0", Ask::Empty { job: 1, attempt: 0 });
    cluster.says("n1", Ask::Empty { job: 1, attempt: 0 });
    cluster.says("n1", Ask::Occupied { job: 1, attempt: 0 });
    cluster.says("n2", Ask::Empty { job: 1, attempt: 0 });
    assert!(!cluster.job().closing);
    cluster.says("n1", Ask::Empty { job: 1, attempt: 0 });
    assert!(cluster.job().closing);
    let mut cluster = Cluster::with(wide(OnNodeLoss::Kill));
    for node in ["n0", "n1", "n2"] {
        cluster.says(node, Ask::Empty { job: 1, attempt: 0 });
    }
    assert!(!cluster.job().closing, "this one has a main process");
}

#[test]
fn several_launchers_have_one_job_until_it_is_about_to_end() {
    let ask = || {
        let want = (0..2).map(|node| crate::wire::NodeAsk {
            node: format!("n{node}"),
            cpus: 1,
            cpus_min: 1,
            memory_bytes: 0,
            disk_bytes: 0,
        });
        Box::new(JobAsk { once: true, lead: None, want: WantAsk::PerNode(want.collect()), ..job("slurm-7", 2) })
    };
    let mut cluster = Cluster::with(*ask());
    assert_eq!(cluster.does("n1", Some(USER), Ask::Submit(ask())), Ok(Answer::Submitted { job: 1 }));
    assert_eq!(
        cluster.asks(OTHER, Ask::Submit(ask())),
        Ok(Answer::Submitted { job: 2 }),
        "another user's is another job"
    );
    let mut elsewhere = ask();
    elsewhere.name = "slurm-8".to_owned();
    assert_eq!(cluster.asks(USER, Ask::Submit(elsewhere)), Ok(Answer::Submitted { job: 3 }));
    assert_eq!(
        cluster.asks(ROOT, Ask::Submit(ask())),
        Ok(Answer::Submitted { job: 4 }),
        "an administrator's is his own"
    );
    assert_eq!(cluster.asks(USER, Ask::Kill { job: 1, how: KillHow::FORCE }), Ok(Answer::Done));
    assert_eq!(
        cluster.asks(USER, Ask::Submit(ask())),
        Ok(Answer::Submitted { job: 5 }),
        "the first one is about to end"
    );
}

#[test]
fn a_user_has_so_many_jobs_that_wait_and_others_are_not_concerned() {
    let mut cluster = Cluster::new();
    let waits = || {
        let mut ask = job("w", 12);
        ask.want = WantAsk::Total { cpus: 12, memory_per_cpu_bytes: 1 << 28, disk_bytes: 0 };
        Ask::Submit(Box::new(ask))
    };
    (0..2).for_each(|_| drop(cluster.asks(USER, waits()).unwrap()));
    // The second one waits, and so do all jobs like it.
    let mut state = cluster.planner.state().clone();
    let second = state.jobs[&JobId(2)].clone();
    assert!(matches!(second.stage, Stage::Waiting(_)));
    for id in 3..=USER_WAITING_MAX as u64 {
        let mut record = second.clone();
        (record.spec.id, record.order) = (JobId(id), id);
        state.jobs.insert(JobId(id), record);
        let known = Job::new(id, USER, job("w", 12), 5);
        cluster.replica.jobs.insert(id, At { value: known, revision: 1 });
    }
    state.next_order = USER_WAITING_MAX as u64;
    cluster.planner = Planner::new(state).unwrap();
    let mut batch = cluster.batch(false);
    let mut ask = |by| batch.request(&Request { origin: "n0".to_owned(), by: Some(by), at_ns: 5, ask: waits() });
    assert!(ask(USER).is_ok(), "one more");
    assert!(why(ask(USER)).contains("1000 of your jobs are waiting already"));
    assert!(ask(OTHER).is_ok());
    assert!(ask(By { uid: USER.uid, ..ROOT }).is_ok(), "an administrator may have any number");
}

#[test]
fn while_the_store_is_full_no_job_is_taken_and_the_rest_is_done() {
    let cluster = Cluster::with(job("a", 1));
    let mut batch = cluster.batch(true);
    let mut ask = |ask| batch.request(&Request { origin: "n0".to_owned(), by: Some(USER), at_ns: 5, ask });
    assert!(why(ask(submit("b", 1))).contains("no room for it in the store"));
    assert_eq!(ask(Ask::Kill { job: 1, how: KillHow::FORCE }), Ok(Answer::Done));
}

#[test]
fn users_ask_as_users_and_daemons_as_daemons() {
    let mut cluster = Cluster::with(job("a", 1));
    let end = Ask::PartEnded { job: 1, attempt: 0, end: END };
    assert!(why(cluster.asks(ROOT, end)).contains("for daemons only"));
    assert!(why(cluster.does("n0", None, Ask::Suspend { job: 1 })).contains("for users only"));
    assert!(cluster.job().ended_on.is_empty());
    assert_eq!(cluster.standing(), Standing::Scheduled);
}

#[test]
fn each_request_of_a_user_is_for_the_owner_and_for_administrators() {
    let change = [
        Ask::Suspend { job: 1 },
        Ask::Resume { job: 1 },
        Ask::Class { job: 1, class: Class::Standby },
        Ask::Policy { job: 1, policy: Some(Policy::Local) },
        Ask::Resources { job: 1, want: WantAsk::Total { cpus: 1, memory_per_cpu_bytes: 0, disk_bytes: 0 } },
        Ask::Kill { job: 1, how: KillHow::FORCE },
    ];
    for ask in change {
        let mut cluster = Cluster::with(job("a", 1));
        let before = (cluster.job().clone(), cluster.planner.state().clone());
        assert!(why(cluster.asks(OTHER, ask.clone())).contains("job 1 is another user's"), "{ask:?}");
        assert_eq!((cluster.job().clone(), cluster.planner.state().clone()), before, "{ask:?}");
        for by in [USER, ROOT] {
            let mut cluster = Cluster::with(job("a", 1));
            assert_eq!(cluster.asks(by, ask.clone()), Ok(Answer::Done), "{ask:?}");
            assert!(cluster.job().history.iter().any(|event| event.uid == Some(by.uid)), "{ask:?}");
        }
    }
}

#[test]
fn what_holds_for_all_is_for_administrators() {
    let settings = [
        Ask::ClusterPolicy { policy: Policy::Local },
        Ask::ClusterSharing { sharing: crate::wire::Sharing::Strict },
        Ask::SlotLength { ns: 20_000_000 },
        Ask::Ceiling { permille: 500 },
        Ask::NodeDeadAfter { ns: 60_000_000_000 },
        Ask::Packing { packing: crate::wire::Packing::BestFit },
        Ask::RowsMax { rows: 3 },
        Ask::FairShare { fair_share: None },
        Ask::Queues { queues: vec![queue("", &[])] },
        Ask::Drain { node: "n1".to_owned(), drains: true },
        Ask::Dead { node: "n1".to_owned() },
    ];
    for ask in settings {
        let mut cluster = Cluster::new();
        let before = cluster.planner.state().clone();
        assert!(why(cluster.asks(USER, ask.clone())).contains("it is for administrators"), "{ask:?}");
        assert_eq!(*cluster.planner.state(), before, "{ask:?}");
        assert_eq!(cluster.asks(ROOT, ask.clone()), Ok(Answer::Done), "{ask:?}");
    }
}

fn queue(name: &str, users: &[u32]) -> Queue {
    let rights = cosched_core::cluster::Rights { users: users.to_vec(), ..Default::default() };
    Queue::from(CoreQueue { name: name.to_owned(), rights, ..CoreQueue::default() })
}

#[test]
fn a_job_goes_into_the_queue_that_it_names_or_the_first_that_is_for_its_owner() {
    let mut cluster = Cluster::new();
    let queues = vec![queue("theirs", &[OTHER.uid]), queue("ours", &[USER.uid])];
    assert_eq!(cluster.asks(ROOT, Ask::Queues { queues }), Ok(Answer::Done));
    let mut into = |by, name: Option<&str>| {
        let ask = JobAsk { queue: name.map(str::to_owned), ..job("q", 1) };
        let outcome = cluster.asks(by, Ask::Submit(Box::new(ask)));
        outcome.map(|_| cluster.planner.state().jobs.values().last().unwrap().spec.queue).map_err(|e| why(Err(e)))
    };
    assert_eq!((into(USER, None), into(OTHER, None), into(ROOT, None)), (Ok(1), Ok(0), Ok(0)));
    assert_eq!((into(USER, Some("ours")), into(ROOT, Some("ours"))), (Ok(1), Ok(1)));
    assert!(into(USER, Some("theirs")).unwrap_err().contains("queue theirs is for other users"));
    assert!(into(USER, Some("none")).unwrap_err().contains("there is no queue none"));
    assert!(into(By { uid: 5, ..USER }, None).unwrap_err().contains("you may not use any queue"));
}

#[test]
fn a_queue_that_has_jobs_is_not_left_out() {
    let mut cluster = Cluster::new();
    cluster.asks(ROOT, Ask::Queues { queues: vec![queue("a", &[]), queue("b", &[])] }).unwrap();
    cluster.asks(USER, Ask::Submit(Box::new(JobAsk { queue: Some("b".to_owned()), ..job("q", 1) }))).unwrap();
    let refused = why(cluster.asks(ROOT, Ask::Queues { queues: vec![queue("a", &[])] }));
    assert!(refused.contains("in queues that are left out: 1 in b"), "{refused}");
    assert_eq!(cluster.asks(ROOT, Ask::Queues { queues: vec![queue("b", &[])] }), Ok(Answer::Done));
}

#[test]
fn a_node_that_lives_cannot_be_called_dead() {
    let mut cluster = Cluster::with(wide(OnNodeLoss::Kill));
    let node = serde_json::from_str(
        r#"{"id":1,"instance":1,"home":"n1","boot":"","cpus":4,"memory_bytes":1,"disk_bytes":1,
            "clock":{"synchronised":true,"error_ns":0},"version":"","jobs_known":0}"#,
    );
    let live = crate::member::replica::Live { node: node.unwrap(), lease: None };
    cluster.replica.nodes.insert("n1".to_owned(), At { value: live, revision: 1 });
    assert!(why(cluster.asks(ROOT, Ask::Dead { node: "n1".to_owned() })).contains("node n1 is alive"));
    assert_eq!(cluster.stage(), Some(Stage::Ready));
    assert_eq!(cluster.asks(ROOT, Ask::Dead { node: "n2".to_owned() }), Ok(Answer::Done));
    assert_eq!(cluster.stage(), Some(Stage::Ending(Reason::NodeLost)));
    assert!(why(cluster.asks(ROOT, Ask::Dead { node: "n9".to_owned() })).contains("there is no node n9"));
}

#[test]
fn a_job_that_an_administrator_has_suspended_ends_within_the_usual_time() {
    let killed = |by: By, suspended: bool, grace_ms| {
        let mut cluster = Cluster::with(job("a", 1));
        if suspended {
            cluster.asks(ROOT, Ask::Suspend { job: 1 }).unwrap();
        }
        cluster.asks(by, Ask::Kill { job: 1, how: KillHow { signal: 15, grace_ms } }).unwrap();
        cluster.job().kill_how.unwrap().grace_ms
    };
    assert_eq!(killed(USER, false, None), None);
    assert_eq!(killed(USER, true, None), Some(KillHow::GRACE_MS));
    assert_eq!(killed(USER, true, Some(99_000)), Some(KillHow::GRACE_MS));
    assert_eq!(killed(USER, true, Some(50)), Some(50));
    assert_eq!(killed(ROOT, true, None), None, "whoever suspended it knows what he does");
}

#[test]
fn only_an_administrator_puts_off_an_end_that_was_set() {
    let mut cluster = Cluster::with(job("a", 1));
    for (by, grace_ms, in_force) in [
        (ROOT, Some(5000), Some(5000)),
        (USER, None, Some(5000)),
        (USER, Some(99_000), Some(5000)),
        (USER, Some(40), Some(40)),
        (ROOT, Some(9000), Some(9000)),
        (ROOT, None, None),
        (USER, Some(99_000), Some(99_000)),
    ] {
        cluster.asks(by, Ask::Kill { job: 1, how: KillHow { signal: 15, grace_ms } }).unwrap();
        assert_eq!(cluster.job().kill_how.unwrap().grace_ms, in_force, "{by:?}, {grace_ms:?}");
    }
}

#[test]
fn who_ended_a_job_first_has_ended_it() {
    let mut cluster = Cluster::with(job("a", 1));
    let [polite, patient] = [Some(9), None].map(|grace_ms| KillHow { signal: 15, grace_ms });
    for (by, how, in_force) in [
        (ROOT, patient, patient),
        (USER, polite, polite),
        (ROOT, KillHow::FORCE, KillHow::FORCE),
        (USER, polite, KillHow::FORCE),
    ] {
        cluster.asks(by, Ask::Kill { job: 1, how }).unwrap();
        assert_eq!((cluster.job().killed_by, cluster.job().kill_how), (Some(0), Some(in_force)), "after {how:?}");
    }
}

/// Submits a job of this user that follows others.
fn after(cluster: &mut Cluster, by: By, jobs: &[(u64, bool)]) -> Outcome {
    let after = jobs.iter().map(|(job, ok)| crate::wire::AfterAsk { job: *job, ok: *ok }).collect();
    let terms = crate::wire::TermsAsk { after, ..Default::default() };
    cluster.asks(by, Ask::Submit(Box::new(JobAsk { terms, ..job("later", 1) })))
}

fn ends(cluster: &mut Cluster, id: u64, code: i32) {
    let end = PartEnd { exit: Some(Exit { code: Some(code), signal: None }), ..PartEnd::default() };
    let place = cluster.planner.state().jobs[&JobId(id)].place.clone().unwrap();
    let origin = format!("n{}", place.parts[0].node.0);
    cluster.says(&origin, Ask::PartEnded { job: id, attempt: 0, end });
}

#[test]
fn jobs_come_after_others_of_their_owner() {
    let mut cluster = Cluster::with(job("first", 1));
    assert!(why(after(&mut cluster, OTHER, &[(1, false)])).contains("you have no job 1"));
    assert!(why(after(&mut cluster, USER, &[(99, false)])).contains("you have no job 99"));
    let many: Vec<(u64, bool)> = vec![(1, false); 33];
    assert!(why(after(&mut cluster, USER, &many)).contains("32"));
    assert_eq!(after(&mut cluster, USER, &[(1, false)]), Ok(Answer::Submitted { job: 2 }));
    assert_eq!(after(&mut cluster, USER, &[(1, true)]), Ok(Answer::Submitted { job: 3 }));
    assert_eq!(after(&mut cluster, ROOT, &[(3, true)]), Ok(Answer::Submitted { job: 4 }), "an administrator after any");
    let stage = |cluster: &Cluster, id| cluster.planner.state().jobs.get(&JobId(id)).map(|job| job.stage);
    assert_eq!(stage(&cluster, 2), Some(Stage::Waiting(Reason::WaitsForJob)));
    ends(&mut cluster, 1, 3);
    assert_eq!((stage(&cluster, 1), stage(&cluster, 2)), (None, Some(Stage::Ready)));
    let end_of = |cluster: &Cluster, id| cluster.replica.jobs[&id].value.end.map(|end| end.why);
    assert_eq!(
        (end_of(&cluster, 3), end_of(&cluster, 4)),
        (Some(Why::JobFailed), Some(Why::JobFailed)),
        "none waits for ever"
    );
    // A job that is over already is not waited for, and its exit status is known.
    assert!(why(after(&mut cluster, USER, &[(1, true)])).contains("did not end with exit code 0"));
    assert_eq!(after(&mut cluster, USER, &[(1, false)]), Ok(Answer::Submitted { job: 5 }));
    assert_eq!(stage(&cluster, 5), Some(Stage::Ready));
    assert_eq!(after(&mut cluster, USER, &[(5, true)]), Ok(Answer::Submitted { job: 6 }));
    ends(&mut cluster, 5, 0);
    assert_eq!(stage(&cluster, 6), Some(Stage::Ready));
}

#[test]
fn the_file_of_a_job_has_its_number() {
    assert_eq!(path_of("/a/out-%j-50%%j.%j", 7), "/a/out-7-50%j.7");
    let cluster = Cluster::with(JobAsk { log_path: Some("/x/%j".to_owned()), ..job("a", 1) });
    assert_eq!(cluster.job().ask.log_path.as_deref(), Some("/x/1"));
}
