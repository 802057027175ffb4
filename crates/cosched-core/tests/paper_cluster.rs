//! The claims of two papers about clusters, as far as the planner of a cluster implements them: the one on Lawrence
//! Livermore National Laboratory's gang scheduler (1997), and what Strazdins & Uhlmann (2004) report of SCore and propose.
//! Every test names the section and, where there is one, quotes the claim. The claims about one computer are in
//! `paper_llnl_1997.rs`.

use cosched_core::cluster::{
    Action, Capacity, Config, Input, JobSpec, NodeWant, Packing, Period, Plan, Planner, Queue, Refusal, Stage, State,
    Want, fill,
};
use cosched_core::{
    Class, Job, JobId, Node, NodeId, Planner as NodePlanner, PlannerConfig, PlannerInput, Policy, Reason, Shares,
    Sharing, Time,
};
use std::collections::BTreeSet;

const SLOT_NS: u64 = 30_000_000_000;

fn cluster(config: Config, cpus: &[u32], memory_bytes: u64) -> Planner {
    let config = Config { slot_length_ns: SLOT_NS, ..config };
    let mut planner = Planner::new(State { config, ..State::default() }).unwrap();
    for (node, cpus) in (0..).zip(cpus) {
        tell(&mut planner, Input::Join(NodeId(node), Capacity { cpus: *cpus, memory_bytes, disk_bytes: 0 }));
    }
    planner
}

fn tell(planner: &mut Planner, input: Input) {
    planner.handle(Time(0), Time(0), input).unwrap();
}

fn on(node: u32, cpus: u32, memory_bytes: u64) -> NodeWant {
    NodeWant { node: NodeId(node), cpus, cpus_min: cpus, memory_bytes, disk_bytes: 0 }
}

fn spec(id: u64, class: Class, want: Want) -> JobSpec {
    JobSpec::new(JobId(id), class, want)
}

fn total(cpus: u32, memory_per_cpu_bytes: u64) -> Want {
    Want::Total { cpus, memory_per_cpu_bytes, disk_bytes: 0 }
}

fn part_of_turns(plan: &Plan, id: u64) -> f64 {
    let (own, cycle) = plan.share(JobId(id)).unwrap();
    f64::from(own) / f64::from(cycle)
}

/// Gang Scheduler Design: "Programs spanning multiple computers contact the appropriate gang scheduler daemons to be
/// preallocated specific time-slices on each computer": the same ones on each.
#[test]
fn programs_that_span_computers_have_the_same_slices_on_each() {
    let mut planner = cluster(Config::default(), &[2, 2, 2], 0);
    tell(&mut planner, Input::Submit(spec(1, Class::Batch, Want::PerNode(vec![on(0, 2, 0), on(1, 1, 0)]))));
    tell(&mut planner, Input::Submit(spec(2, Class::Batch, Want::PerNode(vec![on(1, 2, 0), on(2, 2, 0)]))));
    let own = |cpus| {
        NodePlanner::new(PlannerConfig {
            nodes: vec![Node { id: NodeId(1), cpus }],
            slot_length_ns: SLOT_NS,
            policy: Policy::Gang,
            sharing: Sharing::Strict,
            packing: cosched_core::Packing::FirstFit,
            shares: Shares::default(),
        })
    };
    let plan = planner.plan();
    for slot in plan.from_slot..plan.from_slot + 10 {
        for node in 0..3 {
            let (here, _) = fill(plan, NodeId(node), own(2).plan(), &Shares::default(), &BTreeSet::new());
            let runs: Vec<JobId> = here.turn(slot).unwrap().run.clone();
            let expected: Vec<JobId> =
                plan.run(slot).iter().copied().filter(|id| plan.part(*id, NodeId(node)).is_some()).collect();
            assert_eq!(runs, expected, "slot {slot}, node {node}");
        }
    }
    assert_eq!((part_of_turns(plan, 1), part_of_turns(plan, 2)), (0.5, 0.5));
}

/// Table 2: C and D span East and West, A and B run on one each; A and B have times 1 and 3, C time 2, D time 4. And
/// Gang Scheduler Design: single-computer programs "lack entries in the Ousterhout matrix, but make use of available
/// entries".
#[test]
fn table_2() {
    let mut planner = cluster(Config::default(), &[2, 2], 0);
    for id in [3, 4] {
        tell(&mut planner, Input::Submit(spec(id, Class::Batch, Want::PerNode(vec![on(0, 2, 0), on(1, 2, 0)]))));
    }
    for (id, node) in [(1, 0), (2, 1)] {
        tell(&mut planner, Input::Submit(spec(id, Class::Interactive, Want::PerNode(vec![on(node, 2, 0)]))));
    }
    let plan = planner.plan();
    assert!(plan.jobs[&JobId(1)].home.is_none() && plan.rows.iter().all(|row| !row.residents.contains(&JobId(1))));
    for (id, node) in [(1, 0), (2, 1)] {
        let mut own = NodePlanner::new(PlannerConfig {
            nodes: vec![Node { id: NodeId(node), cpus: 2 }],
            slot_length_ns: SLOT_NS,
            policy: Policy::Gang,
            sharing: Sharing::Strict,
            packing: cosched_core::Packing::FirstFit,
            shares: Shares::default(),
        });
        let job = Job { id: JobId(id), owner: 0, class: Class::Interactive, policy: None, cpus: 2, node: None };
        own.handle(Time(0), PlannerInput::Submit(job)).unwrap();
        let (here, _) = fill(plan, NodeId(node), own.plan(), &Shares::default(), &BTreeSet::new());
        let runs: Vec<Vec<u64>> = here.turns.iter().map(|turn| turn.run.iter().map(|id| id.0).collect()).collect();
        let times = |id: u64| runs.iter().filter(|run| **run == [id]).count();
        assert_eq!((runs.len(), times(id), times(3), times(4)), (4, 2, 1, 1), "{runs:?}");
    }
}

/// Gang Scheduler Design: "The program is allocated a percentage of Ousterhout matrix entries equal to its proportion of
/// threads on the most heavily loaded computer. For example, a program registering … for four-way parallel on an eight
/// processor computer with 12 other runnable threads should be allocated 25 percent of Ousterhout matrix entries on that
/// computer, or four processors every other time-slice."
#[test]
fn entries_are_in_proportion_to_threads_on_the_most_loaded_computer() {
    for (others, expected) in [([12, 0], 0.5), ([0, 12], 0.5), ([12, 28], 0.25), ([4, 4], 1.0), ([0, 0], 1.0)] {
        let mut planner = cluster(Config::default(), &[8, 8], 0);
        for (node, threads) in (0..).zip(others) {
            tell(&mut planner, Input::Load(NodeId(node), threads));
        }
        tell(&mut planner, Input::Rebalance);
        let want = Want::PerNode(vec![on(0, 4, 0), on(1, 4, 0)]);
        tell(&mut planner, Input::Submit(spec(1, Class::Batch, want)));
        assert_eq!(part_of_turns(planner.plan(), 1), expected, "{others:?}");
    }
}

/// Gang Scheduler Design: "A gang scheduler sub-system periodically may increase or decrease the number of time-slices
/// pre-allocated to a program spanning multiple computers as system loads vary."
#[test]
fn slices_follow_the_load_from_time_to_time() {
    let mut planner = cluster(Config::default(), &[8, 8], 0);
    tell(&mut planner, Input::Submit(spec(1, Class::Batch, Want::PerNode(vec![on(0, 8, 0), on(1, 8, 0)]))));
    for (threads, before, after) in [(8, 1.0, 0.5), (24, 0.5, 0.25), (0, 0.25, 1.0)] {
        tell(&mut planner, Input::Load(NodeId(0), threads));
        assert_eq!(part_of_turns(planner.plan(), 1), before);
        tell(&mut planner, Input::Rebalance);
        assert_eq!(part_of_turns(planner.plan(), 1), after);
    }
}

/// Gang Scheduler Design: "The maximum resource allocation to all gang scheduled programs is limited to a configurable
/// level. This may be used to insure that one or more processors are available to maintain overall system
/// responsiveness."
#[test]
fn gangs_have_no_more_than_the_ceiling() {
    for permille in [100, 500, 875, 1000] {
        let mut planner = cluster(Config { ceiling_permille: permille, ..Config::default() }, &[8, 8], 0);
        for id in 1..=5 {
            let cpus = 3 + id as u32;
            tell(&mut planner, Input::Submit(spec(id, Class::Batch, Want::PerNode(vec![on(0, cpus, 0), on(1, 2, 0)]))));
        }
        let plan = planner.plan();
        let used: f64 = (1..=5).map(|id| part_of_turns(plan, id) * (3.0 + id as f64) / 8.0).sum();
        assert!(used <= f64::from(permille) / 1000.0, "{used} of {permille} ‰");
        let free = |slot| 8 - plan.run(slot).iter().map(|id| plan.part(*id, NodeId(0)).unwrap().cpus).sum::<u32>();
        let cycle = plan.turns.len() as u64 * plan.period();
        assert!(permille == 1000 || (0..cycle).any(|slot| free(plan.from_slot + slot) > 0), "some CPU is available");
    }
}

/// Gang Scheduler Design: "for each computer to be used: desired processor count, minimum processor count, desired real
/// memory space, and desired disk space".
#[test]
fn a_program_may_want_more_than_is_enough() {
    let mut planner = cluster(Config::default(), &[4, 2], 10);
    let wants = |cpus_min| [0, 1].map(|node| NodeWant { cpus: 4, cpus_min, ..on(node, 4, 1) }).to_vec();
    let refused = planner.handle(Time(0), Time(0), Input::Submit(spec(1, Class::Batch, Want::PerNode(wants(3)))));
    assert_eq!(refused, Err(Refusal::FewCpus { node: NodeId(1), wanted: 3, has: 2 }));
    tell(&mut planner, Input::Submit(spec(1, Class::Batch, Want::PerNode(wants(2)))));
    let cpus: Vec<u32> = planner.plan().jobs[&JobId(1)].parts.iter().map(|part| part.cpus).collect();
    assert_eq!(cpus, [4, 2]);
}

/// Gang Scheduler Design: interactive jobs "require rapid response time and very good throughput during working hours",
/// which "may be reduced at other times"; batch jobs "should receive very good throughput outside of working hours".
#[test]
fn working_hours_favour_interactive_jobs_and_off_hours_batch_jobs() {
    let mut planner = cluster(Config::default(), &[1, 1], 0);
    for (id, class) in (1..).zip([Class::Express, Class::Interactive, Class::Batch, Class::Standby]) {
        tell(&mut planner, Input::Submit(spec(id, class, Want::PerNode(vec![on(0, 1, 0), on(1, 1, 0)]))));
    }
    let shares = |planner: &Planner| [1, 2, 3, 4].map(|id| part_of_turns(planner.plan(), id));
    let [express, interactive, batch, standby] = shares(&planner);
    assert!(express > interactive && interactive > batch && batch > standby);
    tell(&mut planner, Input::Period(Period::Off));
    let [express, interactive, batch, standby] = shares(&planner);
    assert!(express > batch && batch > interactive && interactive > standby && standby > 0.0);
}

/// Gang Scheduler Design: "the execution of a newly initiated program may commence prior to the beginning of a new
/// time-slice, if appropriate for the given workload."
#[test]
fn a_new_program_starts_before_its_plan_holds_where_nobody_is_in_its_way() {
    let mut planner = cluster(Config::default(), &[2, 2], 0);
    let submit = |planner: &mut Planner, id, cpus| {
        let want = Want::PerNode(vec![on(0, cpus, 0), on(1, cpus, 0)]);
        let (now, from) = (Time(10 * SLOT_NS + 1), Time(12 * SLOT_NS));
        planner.handle(now, from, Input::Submit(spec(id, Class::Batch, want))).unwrap();
        planner.plan().early.clone()
    };
    tell(&mut planner, Input::Submit(spec(1, Class::Batch, Want::PerNode(vec![on(0, 1, 0), on(1, 1, 0)]))));
    assert_eq!(submit(&mut planner, 2, 1), [JobId(2)]);
    assert_eq!(planner.plan().from_slot, 12);
    let mut planner = cluster(Config::default(), &[2, 2], 0);
    tell(&mut planner, Input::Submit(spec(1, Class::Batch, Want::PerNode(vec![on(0, 1, 0), on(1, 1, 0)]))));
    assert_eq!(submit(&mut planner, 3, 2), [], "job 1 has one of its CPUs");
}

/// Strazdins & Uhlmann, section 3 and figure 1: "In the case of dual nodes, two (consecutive) processes are allocated per
/// node"; 32 processes have 16 neighbouring nodes, from a multiple of 16 on (buddies).
#[test]
fn processes_are_allocated_in_order_on_a_block_of_nodes() {
    let mut planner = cluster(Config { packing: Packing::Buddy, ..Config::default() }, &[2; 96], 0);
    for (id, first) in [(1, 0), (2, 16), (3, 32)] {
        tell(&mut planner, Input::Submit(spec(id, Class::Batch, total(32, 0))));
        let nodes: Vec<u32> = planner.nodes_of(JobId(id)).iter().map(|node| node.0).collect();
        assert_eq!(nodes, (first..first + 16).collect::<Vec<_>>());
        let (row, spans) = planner.plan().jobs[&JobId(id)].home.clone().unwrap();
        assert_eq!((row, spans.len(), spans[0].first, spans[0].count), (0, 1, 2 * first, 32));
    }
}

/// Strazdins & Uhlmann, section 3: "The job scheduling algorithm is based on Distributed Hierarchical Control": a job gets
/// the least loaded block of the lowest level that is large enough, and blocks of a level never overlap in part.
#[test]
fn buddies_never_overlap_in_part() {
    let mut planner = cluster(Config { packing: Packing::Buddy, ..Config::default() }, &[2; 16], 0);
    for (id, cpus) in (1..).zip([3, 4, 8, 5, 16, 3, 30, 4, 6, 12, 4, 9]) {
        tell(&mut planner, Input::Submit(spec(id, Class::Batch, total(cpus, 0))));
        let nodes: Vec<u32> = planner.nodes_of(JobId(id)).iter().map(|node| node.0).collect();
        let block = cpus.div_ceil(2).next_power_of_two();
        assert_eq!(nodes[0] % block, 0, "job {id} of {cpus} begins where a block does");
        assert_eq!(nodes, (nodes[0]..nodes[0] + cpus.div_ceil(2)).collect::<Vec<_>>());
    }
}

/// Strazdins & Uhlmann, section 3: "priority queues. Each queue can have memory, disk and time limits and can be scheduled
/// in either a time-shared … or exclusive fashion."
#[test]
fn queues_have_priorities_limits_and_exclusive_use() {
    let queue = |exclusive, time_ns_max| Queue { exclusive, time_ns_max, ..Queue::default() };
    let limited = Queue { memory_bytes_max: Some(100), ..Queue::default() };
    let queues = vec![queue(false, Some(SLOT_NS)), queue(true, None), limited];
    let mut planner = cluster(Config { queues, ..Config::default() }, &[2, 2], 1000);
    let submit = |planner: &mut Planner, id, queue, memory| {
        let want = Want::PerNode(vec![on(0, 1, memory), on(1, 1, memory)]);
        planner.handle(Time(0), Time(0), Input::Submit(JobSpec { queue, ..spec(id, Class::Batch, want) }))
    };
    assert!(matches!(submit(&mut planner, 1, 2, 51), Err(Refusal::Queue(2, _))));
    submit(&mut planner, 1, 2, 50).unwrap();
    submit(&mut planner, 2, 1, 0).unwrap();
    submit(&mut planner, 3, 0, 0).unwrap();
    let stage = |planner: &Planner, id| planner.state().jobs[&JobId(id)].stage;
    assert_eq!(stage(&planner, 2), Stage::Waiting(Reason::WaitsForExclusive));
    assert_eq!(stage(&planner, 3), Stage::Ready, "it is of a more urgent queue");
    assert_eq!(planner.poll_timeout(), Some((Time(SLOT_NS), Reason::TimeLimit)));
    planner.handle_timeout(Time(SLOT_NS), Time(SLOT_NS));
    assert_eq!(stage(&planner, 3), Stage::Ending(Reason::TimeLimit));
    [1, 3].into_iter().for_each(|id| tell(&mut planner, Input::End(JobId(id))));
    assert_eq!(stage(&planner, 2), Stage::Ready);
    submit(&mut planner, 4, 0, 0).unwrap();
    assert_eq!(stage(&planner, 4), Stage::Waiting(Reason::WaitsForExclusive), "it has its nodes alone");
}

/// Strazdins & Uhlmann, sections 4.1 and 6: with jobs of about 6 % of a node's memory eight are "without danger of
/// performance degradation due to swapping"; when they want more than there is, "the effects of scheduling policy became
/// irrelevant"; hence "limit the active (i.e. ready-to-run) jobs based on total memory utilization".
#[test]
fn the_jobs_that_are_ready_fit_into_memory() {
    for (memory, ready) in [(6, 8), (12, 8), (13, 7), (50, 2), (51, 1)] {
        let mut planner = cluster(Config::default(), &[2, 2], 100);
        for id in 1..=8 {
            tell(
                &mut planner,
                Input::Submit(spec(id, Class::Batch, Want::PerNode(vec![on(0, 2, memory), on(1, 2, memory)]))),
            );
        }
        let mut done = 0;
        // All of them end, in their order, and there are never too many at once.
        for id in 1..=8 {
            let is_ready = |id: &u64| planner.state().jobs[&JobId(*id)].stage == Stage::Ready;
            let now: Vec<u64> = (id..=8).filter(is_ready).collect();
            let expected: Vec<u64> = (id..=8).take(ready).collect();
            assert_eq!(now, expected, "{memory} each");
            tell(&mut planner, Input::End(JobId(id)));
            done += 1;
        }
        assert_eq!((done, planner.state().jobs.len()), (8, 0));
    }
}

/// As above, where a job uses more than it requested: the last one is held until there is room, with the reason.
#[test]
fn memory_that_was_not_told_holds_the_last_job() {
    let mut planner = cluster(Config::default(), &[2, 2], 100);
    for id in 1..=3 {
        tell(&mut planner, Input::Submit(spec(id, Class::Batch, Want::PerNode(vec![on(0, 2, 30), on(1, 2, 30)]))));
    }
    while planner.poll_action().is_some() {}
    tell(&mut planner, Input::Memory(JobId(1), NodeId(1), 60));
    assert_eq!(planner.poll_action(), Some(Action::Wait(JobId(3), Reason::WaitsForMemory)));
    assert!(planner.plan().share(JobId(3)).is_none() && planner.plan().share(JobId(2)).is_some());
    tell(&mut planner, Input::End(JobId(2)));
    assert_eq!(planner.state().jobs[&JobId(3)].stage, Stage::Ready);
    tell(&mut planner, Input::Memory(JobId(3), NodeId(1), 90));
    assert!(planner.plan().share(JobId(3)).is_none(), "the one that came first goes on");
}

/// Strazdins & Uhlmann, section 6: a system "that merely selected the best set of nodes for a new job (based on load and
/// memory considerations)".
#[test]
fn the_best_nodes_are_chosen_by_load_and_memory() {
    let mut planner = cluster(Config::default(), &[4, 4, 4, 4], 100);
    for (node, threads) in [(0, 2), (1, 4), (2, 0), (3, 0)] {
        tell(&mut planner, Input::Load(NodeId(node), threads));
    }
    tell(&mut planner, Input::Rebalance);
    tell(&mut planner, Input::Submit(spec(1, Class::Batch, Want::PerNode(vec![on(2, 1, 30)]))));
    let mut place = |id, cpus, memory| {
        tell(&mut planner, Input::Submit(spec(id, Class::Batch, total(cpus, memory))));
        planner.nodes_of(JobId(id)).iter().map(|node| node.0).collect::<Vec<_>>()
    };
    assert_eq!(place(2, 1, 10), [3], "nobody is there");
    assert_eq!(place(3, 1, 10), [3], "both have one thread, this one has more memory left");
    assert_eq!(place(4, 1, 10), [2], "one thread against two");
    assert_eq!(place(5, 2, 40), [0], "two threads on each of three nodes, and most memory on the first");
    assert_eq!(place(6, 1, 90), [1], "only there");
}

/// Queues of a running cluster: jobs stay in the queue of the same name, wherever it is listed now, and are served by it.
#[test]
fn queues_change_under_the_jobs_that_are_in_them() {
    use cosched_core::cluster::{Queue, Refusal, Stage};
    let queue = |name: &str| Queue { name: name.to_owned(), ..Queue::default() };
    let config = Config { queues: vec![queue("day"), queue("night")], ..Config::default() };
    let mut planner = cluster(config, &[4, 4], 100);
    let submit = |id: u64, queue: u32| Input::Submit(JobSpec { queue, ..spec(id, Class::Batch, total(8, 1)) });
    for (id, queue) in [(1, 0), (2, 0), (3, 1), (4, 0)] {
        tell(&mut planner, submit(id, queue));
    }
    let before = planner.state().clone();
    let refused = |planner: &mut Planner, queues| planner.handle(Time(0), Time(0), Input::Queues(queues)).unwrap_err();
    assert_eq!(refused(&mut planner, vec![]), Refusal::Queues);
    assert_eq!(refused(&mut planner, vec![queue("day"), queue("day")]), Refusal::Queues);
    assert_eq!(refused(&mut planner, vec![queue("day")]), Refusal::QueueInUse(JobId(3)));
    assert_eq!(planner.state(), &before, "nothing has changed");

    let limited = Queue { time_ns_max: Some(SLOT_NS), ..queue("night") };
    tell(&mut planner, Input::Queues(vec![limited, queue("new"), queue("day")]));
    let of: Vec<u32> = planner.state().jobs.values().map(|job| job.spec.queue).collect();
    assert_eq!(of, [2, 2, 0, 2]);
    assert_eq!(planner.poll_timeout().map(|(at, _)| at), Some(Time(SLOT_NS)), "the limit holds for who is there");
    // A planner that begins with this state continues the same way.
    assert_eq!(Planner::new(planner.state().clone()).unwrap().plan(), planner.plan());
    assert!(planner.state().jobs.values().all(|job| job.stage == Stage::Ready));
}
