//! The claims of the paper on Lawrence Livermore National Laboratory's gang scheduler for clusters of Digital Alpha
//! computers (1997), as far as the core implements them. Every test names the section and, where there is one,
//! quotes the claim.
//!
//! Not covered, because the planner of one machine does not have them: one gang over several computers, slices allotted by load and
//! changed as it varies, and the removal of programs that are idle for hours.

use cosched_core::{
    Agent, AgentAction, AgentConfig, AgentInput, Class, Disposition, Job, JobId, Node, NodeId, Packing, Plan, Planner,
    PlannerAction, PlannerConfig, PlannerInput, Policy, Shares, Sharing, Standing, Time,
};
use std::sync::Arc;

const SLOT_NS: u64 = 30_000_000_000;

/// Two computers of the paper's table 2, and its slices of 30 s.
fn east_and_west() -> Planner {
    let nodes = [0, 1].map(|id| Node { id: NodeId(id), cpus: 2 });
    cluster(&nodes)
}

fn cluster(nodes: &[Node]) -> Planner {
    Planner::new(PlannerConfig {
        nodes: nodes.to_vec(),
        slot_length_ns: SLOT_NS,
        policy: Policy::Gang,
        sharing: Sharing::Strict,
        packing: Packing::FirstFit,
        shares: Shares::default(),
    })
}

fn submit(planner: &mut Planner, id: u64, cpus: u32, class: Class, node: Option<u32>) {
    let job = Job { id: JobId(id), owner: 0, class, policy: None, cpus, node: node.map(NodeId) };
    tell(planner, PlannerInput::Submit(job));
}

fn tell(planner: &mut Planner, input: PlannerInput) {
    planner.handle(Time(0), input).unwrap();
}

/// The jobs that own CPUs in each turn.
fn turns(plan: &Plan) -> Vec<Vec<u64>> {
    plan.turns.iter().map(|turn| turn.run.iter().map(|id| id.0).collect()).collect()
}

/// Gang Scheduler Design: "prioritized job classes": express, interactive, batch, standby.
#[test]
fn classes_are_served_in_their_order() {
    let mut planner = cluster(&[Node { id: NodeId(0), cpus: 2 }]);
    // In an order unrelated to that of the classes.
    for (id, class) in [(3, Class::Batch), (1, Class::Express), (4, Class::Standby), (2, Class::Interactive)] {
        submit(&mut planner, id, 2, class, None);
    }
    let share = |id| planner.plan().share(JobId(id)).unwrap().0;
    assert!(share(1) > share(2) && share(2) > share(3) && share(3) > share(4) && share(4) > 0);
}

/// Gang Scheduler Design: "The class of a program may be altered to a lower priority class". The others gain what it loses.
#[test]
fn a_class_may_be_altered() {
    let mut planner = cluster(&[Node { id: NodeId(0), cpus: 2 }]);
    (1..=2).for_each(|id| submit(&mut planner, id, 2, Class::Batch, None));
    assert_eq!(turns(planner.plan()), [[1], [2]]);
    tell(&mut planner, PlannerInput::Class(JobId(2), Class::Standby));
    assert_eq!(planner.plan().share(JobId(1)), Some((2, 3)));
    assert_eq!(planner.plan().share(JobId(2)), Some((1, 3)));
}

/// Gang Scheduler Design, table 2: A and B at times 1 and 3, C at 2, D at 4. C and D, which span both computers, are a
/// gang on each here; see testdata/matrix/llnl-table-2.txt for what differs.
#[test]
fn table_2_is_the_cycle_of_its_jobs() {
    let mut planner = east_and_west();
    let (a, b, c, d) = (1, 2, [3, 13], [4, 14]);
    submit(&mut planner, a, 2, Class::Interactive, Some(0));
    submit(&mut planner, b, 2, Class::Interactive, Some(1));
    for both in [c, d] {
        (0..2).for_each(|node| submit(&mut planner, both[node as usize], 2, Class::Batch, Some(node)));
    }
    assert_eq!(turns(planner.plan()), [vec![a, b], c.to_vec(), vec![a, b], d.to_vec()]);
}

/// Gang Scheduler Design: "The last row in the matrix, time 4, is followed by repeating the cycle from the top, time 1."
#[test]
fn the_last_row_is_followed_by_the_first() {
    let mut planner = east_and_west();
    (1..=3).for_each(|id| submit(&mut planner, id, 2, Class::Batch, Some(0)));
    let plan = planner.plan();
    let rows: Vec<u32> = (0..7).map(|slot| plan.row_at(plan.slot_start(slot)).unwrap()).collect();
    assert_eq!(rows, [0, 1, 2, 0, 1, 2, 0]);
}

/// Gang Scheduler Design: "At prearranged times, the gang scheduler daemons allocate resources as specified in the
/// Ousterhout matrix", the first slice "on the hour": the row follows from plan and clock, for every daemon the same.
#[test]
fn rows_change_at_prearranged_times() {
    let mut planner = east_and_west();
    (1..=4).for_each(|id| submit(&mut planner, id, 2, Class::Batch, Some(0)));
    let mine = Arc::clone(planner.plan());
    let theirs = Plan::clone(&mine);
    let hour = Time(482_000 * 3_600_000_000_000);
    assert_eq!(mine.slot_start(mine.slot_at(hour)), hour, "a slice begins on the hour");
    let first = mine.slot_at(hour);
    for slice in 0..120 {
        let (begin, end) = (hour + slice * SLOT_NS, hour + ((slice + 1) * SLOT_NS - 1));
        let row = mine.turn(first + slice).map(|turn| turn.row);
        assert_eq!([mine.row_at(begin), mine.row_at(end)], [row, row], "one row from the beginning to the end");
        assert_eq!(theirs.row_at(begin), row);
    }
}

/// Introduction: "concurrently schedules an independent processor to each thread in the gang", and "removing that access
/// concurrently": in every slice a gang has all its CPUs or none.
#[test]
fn a_gang_runs_whole_or_not_at_all() {
    let mut planner = cluster(&[Node { id: NodeId(0), cpus: 4 }]);
    for (id, cpus) in [(1, 3), (2, 2), (3, 4), (4, 2), (5, 1)] {
        submit(&mut planner, id, cpus, Class::Batch, None);
    }
    let plan = planner.plan();
    for slot in 0..plan.turns.len() as u64 {
        let cpus = |of: Disposition| {
            let jobs = plan.dispositions(slot).filter(move |(_, d)| *d == of);
            jobs.map(|(id, _)| plan.jobs[&id].cpus).sum::<u32>()
        };
        assert!(cpus(Disposition::Run) <= 4, "a processor for each thread");
        assert_eq!(cpus(Disposition::Run) + cpus(Disposition::Stop), 12, "strict: the others stop");
    }
}

/// Gang Scheduler Design: programs of one computer "make use of available entries based upon current conditions". Here
/// such a program has an entry too, and in addition uses what other rows leave free.
#[test]
fn a_program_of_one_computer_uses_what_is_free() {
    let mut planner = east_and_west();
    submit(&mut planner, 1, 2, Class::Batch, Some(0));
    submit(&mut planner, 2, 2, Class::Batch, Some(0));
    submit(&mut planner, 3, 2, Class::Batch, Some(1));
    assert_eq!(turns(planner.plan()), [[1, 3], [2, 3]], "West is free in the second row");
    submit(&mut planner, 4, 1, Class::Batch, Some(1));
    tell(&mut planner, PlannerInput::Suspend(JobId(3)));
    assert_eq!(planner.plan().share(JobId(4)), Some((2, 2)), "and a single process takes any free processor");
}

/// Gang Scheduler Design: "the execution of a newly initiated program may commence prior to the beginning of a new
/// time-slice, if appropriate for the given workload".
#[test]
fn a_new_program_starts_within_the_slice_where_there_is_room() {
    let mut planner = cluster(&[Node { id: NodeId(0), cpus: 2 }]);
    submit(&mut planner, 1, 1, Class::Batch, None);
    let now = Time(7 * SLOT_NS + SLOT_NS / 2);
    let job = Job { id: JobId(2), owner: 0, class: Class::Batch, policy: None, cpus: 1, node: None };
    planner.handle(now, PlannerInput::Submit(job)).unwrap();
    let plan = planner.plan();
    assert_eq!(plan.from_slot, 7);
    assert_eq!(plan.disposition(JobId(2), plan.slot_at(now)), Disposition::Run);
}

/// Gang Scheduler Design: "The program is allocated a percentage of Ousterhout matrix entries equal to its proportion";
/// here the proportion is that of its class's share.
#[test]
fn entries_are_in_proportion_to_shares() {
    let mut planner = cluster(&[Node { id: NodeId(0), cpus: 2 }]);
    let classes = [Class::Express, Class::Interactive, Class::Batch, Class::Batch, Class::Standby];
    (1..).zip(classes).for_each(|(id, class)| submit(&mut planner, id, 2, class, None));
    let all: u32 = classes.iter().map(|class| Shares::default().of(*class)).sum();
    for (id, class) in (1..).zip(classes) {
        let (own, cycle) = planner.plan().share(JobId(id)).unwrap();
        assert_eq!(own * all, Shares::default().of(class) * cycle, "{class:?}");
    }
}

/// Gang Scheduler Design: "to provide each program with access to a similar quantity of processor cycles whether
/// registered for gang scheduling or not". A local job competes with one gang in each turn, by weight.
#[test]
fn gangs_and_others_get_similar_quantities() {
    let mut planner = cluster(&[Node { id: NodeId(0), cpus: 2 }]);
    (1..=3).for_each(|id| submit(&mut planner, id, 2, Class::Batch, None));
    submit(&mut planner, 4, 2, Class::Batch, None);
    tell(&mut planner, PlannerInput::JobPolicy(JobId(4), Some(Policy::Local)));
    let plan = planner.plan();
    let weight = |id| f64::from(plan.jobs[&JobId(id)].weight);
    let part = |id| weight(id) / (weight(id) + weight(4)) / 3.0;
    let local: f64 = (1..=3).map(|id| weight(4) / (weight(id) + weight(4)) / 3.0).sum();
    for id in 1..=3 {
        assert!((part(id) - 0.25).abs() < 0.001 && (local - 0.25).abs() < 0.001, "{} and {local}", part(id));
    }
}

/// Gang Scheduler Design, xgang: "suspend, resume": a suspended program has no slices, and gets them back.
#[test]
fn a_program_can_be_suspended_and_resumed() {
    let mut planner = cluster(&[Node { id: NodeId(0), cpus: 2 }]);
    (1..=2).for_each(|id| submit(&mut planner, id, 2, Class::Batch, None));
    tell(&mut planner, PlannerInput::Suspend(JobId(1)));
    assert_eq!(turns(planner.plan()), [[2]]);
    assert_eq!(planner.plan().disposition(JobId(1), 0), Disposition::Stop);
    tell(&mut planner, PlannerInput::Resume(JobId(1)));
    assert_eq!(turns(planner.plan()), [[2], [1]]);
}

/// Gang Scheduler Design: "Any gang scheduled program failing to utilize any CPU cycles for a configurable period of
/// time, currently 10 minutes, will cease being gang scheduled and will revert to normal UNIX scheduling. Should the
/// program resume consumption of CPU cycles, it will resume gang scheduling."
#[test]
fn an_idle_program_ceases_to_be_gang_scheduled_and_resumes() {
    const MINUTE_NS: u64 = 60_000_000_000;
    let mut planner = cluster(&[Node { id: NodeId(0), cpus: 2 }]);
    (1..=2).for_each(|id| submit(&mut planner, id, 2, Class::Batch, None));
    let mut agent = Agent::new(AgentConfig {
        idle_after_ns: 10 * MINUTE_NS,
        sample_interval_ns: 5_000_000_000,
        drive_boundaries: false,
        ..AgentConfig::default()
    });
    let (idle, mut used_ns, mut changes) = (JobId(2), [0_u64; 3], Vec::new());
    let mut last = Time(0);
    loop {
        while let Some(PlannerAction::Publish(plan, _)) = planner.poll_action() {
            agent.handle(last, AgentInput::Plan(plan));
        }
        let now = agent.poll_timeout().unwrap().0;
        if now >= Time(20 * MINUTE_NS) {
            break;
        }
        // Job 1 works; job 2 waits for its input, which arrives after a quarter of an hour.
        used_ns[1] += now - last;
        used_ns[2] += if now > Time(15 * MINUTE_NS) { now - last } else { 0 };
        last = now;
        agent.handle_timeout(now);
        while let Some(action) = agent.poll_action() {
            let (job, input) = match action {
                AgentAction::Sample { job } => {
                    agent.handle(now, AgentInput::CpuTime { job, cpu_time_ns: used_ns[job.0 as usize] });
                    continue;
                }
                AgentAction::Asleep { job, .. } => (job, PlannerInput::Asleep(job)),
                AgentAction::Awake { job, .. } => (job, PlannerInput::Awake(job)),
                AgentAction::Dropped { .. } => unreachable!("two hours have not passed"),
                AgentAction::Set { .. } => unreachable!("the agent does not drive boundaries"),
                AgentAction::Unsound(flaw) => unreachable!("{flaw}"),
            };
            planner.handle(now, input).unwrap();
            let plan = planner.plan();
            changes.push((now.0 / MINUTE_NS, job, plan.jobs[&idle].standing, turns(plan)));
        }
    }
    let expected =
        [(10, idle, Standing::Asleep, vec![vec![1]]), (15, idle, Standing::Scheduled, vec![vec![1], vec![2]])];
    assert_eq!(changes, expected);
}
