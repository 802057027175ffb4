//! Jobs change their requests while they wait or run. Source: LLNL, "Gang Scheduler Design" ("modify resource requirements").

use cosched_core::cluster::{
    Capacity, Config, Input, JobSpec, NodeWant, Part, Planner, Queue, Refusal, Stage, State, Want,
};
use cosched_core::{Class, JobId, NodeId, Reason, Time};

fn cluster(config: Config, cpus: &[u32]) -> Planner {
    let mut planner = Planner::new(State { config, ..State::default() }).unwrap();
    for (id, cpus) in cpus.iter().enumerate() {
        let capacity = Capacity { cpus: *cpus, memory_bytes: 100, disk_bytes: 100 };
        tell(&mut planner, Input::Join(NodeId(id as u32), capacity)).unwrap();
    }
    planner
}

fn tell(planner: &mut Planner, input: Input) -> Result<(), Refusal> {
    planner.handle(Time(0), Time(0), input)
}

fn on(node: u32, cpus: u32, memory_bytes: u64) -> NodeWant {
    NodeWant { node: NodeId(node), cpus, cpus_min: cpus, memory_bytes, disk_bytes: 0 }
}

fn nodes(wants: &[(u32, u32, u64)]) -> Want {
    Want::PerNode(wants.iter().map(|(node, cpus, memory)| on(*node, *cpus, *memory)).collect())
}

fn total(cpus: u32, memory_per_cpu_bytes: u64) -> Want {
    Want::Total { cpus, memory_per_cpu_bytes, disk_bytes: 0 }
}

fn submit(planner: &mut Planner, id: u64, want: Want) {
    let spec = JobSpec::new(JobId(id), Class::Batch, want);
    tell(planner, Input::Submit(spec)).unwrap();
}

fn change(planner: &mut Planner, id: u64, want: Want) -> Result<(), Refusal> {
    let before = planner.state().clone();
    let done = tell(planner, Input::Resources(JobId(id), want));
    assert!(done.is_ok() || *planner.state() == before, "a refusal changes nothing");
    done
}

fn parts(planner: &Planner, id: u64) -> Vec<(u32, u32, u64)> {
    let place = planner.state().jobs[&JobId(id)].place.as_ref();
    let part = |part: &Part| (part.node.0, part.cpus, part.memory_bytes);
    place.map_or(Vec::new(), |place| place.parts.iter().map(part).collect())
}

fn stage(planner: &Planner, id: u64) -> Stage {
    planner.state().jobs[&JobId(id)].stage
}

fn row(planner: &Planner, id: u64) -> u32 {
    planner.plan().jobs[&JobId(id)].home.as_ref().expect("it has cells").0
}

#[test]
fn a_job_that_waits_starts_with_what_it_wants_now() {
    let mut planner = cluster(Config::default(), &[4, 4]);
    submit(&mut planner, 1, nodes(&[(0, 2, 80)]));
    submit(&mut planner, 2, nodes(&[(0, 2, 60)]));
    submit(&mut planner, 3, nodes(&[(0, 1, 1)]));
    assert_eq!(stage(&planner, 2), Stage::Waiting(Reason::WaitsForMemory));
    assert_eq!(stage(&planner, 3), Stage::Ready, "nobody knows when the first one ends");
    change(&mut planner, 2, nodes(&[(0, 2, 15)])).unwrap();
    assert_eq!(stage(&planner, 2), Stage::Ready);
    // A job that has not started may change its nodes, too.
    submit(&mut planner, 4, nodes(&[(0, 1, 90)]));
    change(&mut planner, 4, nodes(&[(1, 1, 90)])).unwrap();
    assert_eq!(parts(&planner, 4), [(1, 1, 90)]);
}

#[test]
fn what_a_job_gives_back_lets_others_start() {
    let mut planner = cluster(Config::default(), &[4]);
    submit(&mut planner, 1, nodes(&[(0, 4, 90)]));
    submit(&mut planner, 2, nodes(&[(0, 4, 30)]));
    assert_eq!(stage(&planner, 2), Stage::Waiting(Reason::WaitsForMemory));
    change(&mut planner, 1, nodes(&[(0, 3, 70)])).unwrap();
    assert_eq!(stage(&planner, 2), Stage::Ready);
    assert_eq!(parts(&planner, 1), [(0, 3, 70)]);
}

#[test]
fn more_than_there_is_now_is_refused_and_says_what_lacks() {
    let node = NodeId(0);
    let mut planner = cluster(Config::default(), &[4, 4]);
    submit(&mut planner, 1, nodes(&[(0, 2, 30)]));
    submit(&mut planner, 2, nodes(&[(0, 2, 40)]));
    let no_memory = Refusal::NoMemoryNow { node, wanted: 70, left: 60 };
    assert_eq!(change(&mut planner, 1, nodes(&[(0, 2, 70)])), Err(no_memory));
    assert_eq!(
        change(&mut planner, 1, nodes(&[(0, 2, 200)])),
        Err(Refusal::LittleMemory { node, wanted: 200, has: 100 })
    );
    assert_eq!(change(&mut planner, 1, nodes(&[(0, 5, 30)])), Err(Refusal::FewCpus { node, wanted: 5, has: 4 }));
    change(&mut planner, 1, nodes(&[(0, 4, 60)])).unwrap();
    assert_eq!(parts(&planner, 1), [(0, 4, 60)]);
    assert_eq!(change(&mut planner, 1, nodes(&[(1, 2, 30)])), Err(Refusal::KeepsNodes(JobId(1))));
    assert_eq!(change(&mut planner, 1, nodes(&[(0, 2, 3), (1, 2, 3)])), Err(Refusal::KeepsNodes(JobId(1))));
    assert_eq!(change(&mut planner, 9, total(1, 1)), Err(Refusal::UnknownJob(JobId(9))));
    tell(&mut planner, Input::Kill(JobId(1))).unwrap();
    assert_eq!(change(&mut planner, 1, nodes(&[(0, 1, 1)])), Err(Refusal::Stage(JobId(1))));
}

/// A small job that grows would overtake a large one that waits for the same memory.
#[test]
fn growing_does_not_overtake_who_came_before() {
    let mut planner = cluster(Config::default(), &[4, 4]);
    submit(&mut planner, 1, nodes(&[(0, 1, 60)]));
    submit(&mut planner, 2, nodes(&[(0, 1, 50)]));
    submit(&mut planner, 3, nodes(&[(1, 1, 10)]));
    assert_eq!(stage(&planner, 2), Stage::Waiting(Reason::WaitsForMemory));
    // Job 1 came before the job that waits; job 3 is on another node; a later job on the same node is only possible by growing.
    change(&mut planner, 3, nodes(&[(1, 1, 90)])).unwrap();
    change(&mut planner, 1, nodes(&[(0, 1, 70)])).unwrap();
    submit(&mut planner, 4, total(8, 20));
    assert_eq!(stage(&planner, 4), Stage::Waiting(Reason::WaitsForMemory));
    change(&mut planner, 3, nodes(&[(1, 1, 95)])).unwrap();
    let mut planner = cluster(Config { queues: vec![queue("a"), queue("b")], ..Config::default() }, &[4]);
    submit(&mut planner, 1, nodes(&[(0, 1, 60)]));
    submit(&mut planner, 2, nodes(&[(0, 1, 50)]));
    tell(&mut planner, Input::End(JobId(1))).unwrap();
    submit(&mut planner, 3, nodes(&[(0, 1, 30)]));
    submit(&mut planner, 4, nodes(&[(0, 1, 30)]));
    assert_eq!(stage(&planner, 4), Stage::Waiting(Reason::WaitsForMemory));
    tell(&mut planner, Input::Queues(vec![queue("b"), queue("a")])).unwrap();
    let urgent = JobSpec { queue: 0, ..planner.state().jobs[&JobId(4)].spec.clone() };
    tell(&mut planner, Input::Submit(JobSpec { id: JobId(5), ..urgent })).unwrap();
    assert_eq!(change(&mut planner, 3, nodes(&[(0, 1, 40)])), Err(Refusal::OthersWait(NodeId(0))));
    change(&mut planner, 3, nodes(&[(0, 4, 30)])).expect("CPUs are shared in time");
}

fn queue(name: &str) -> Queue {
    Queue { name: name.to_owned(), ..Queue::default() }
}

#[test]
fn a_gang_gets_other_cells_in_its_row_or_in_another() {
    let mut planner = cluster(Config { rows_max: 2, ..Config::default() }, &[4, 4]);
    submit(&mut planner, 1, nodes(&[(0, 2, 0), (1, 2, 0)]));
    submit(&mut planner, 2, nodes(&[(0, 2, 0), (1, 1, 0)]));
    assert_eq!([row(&planner, 1), row(&planner, 2)], [0, 0]);
    let generation = planner.plan().generation;
    change(&mut planner, 2, nodes(&[(0, 1, 0), (1, 2, 0)])).unwrap();
    assert_eq!((parts(&planner, 2), row(&planner, 2)), (vec![(0, 1, 0), (1, 2, 0)], 0));
    assert!(planner.plan().generation > generation);
    change(&mut planner, 2, nodes(&[(0, 3, 0), (1, 3, 0)])).unwrap();
    assert_eq!([row(&planner, 1), row(&planner, 2)], [0, 1]);
    // Both rows are full now, and no third one is permitted.
    submit(&mut planner, 3, nodes(&[(0, 1, 0), (1, 1, 0)]));
    submit(&mut planner, 4, nodes(&[(0, 1, 0), (1, 1, 0)]));
    assert_eq!([row(&planner, 3), row(&planner, 4)], [0, 0]);
    assert_eq!(change(&mut planner, 4, nodes(&[(0, 2, 0), (1, 1, 0)])), Err(Refusal::RowsFull));
    change(&mut planner, 4, nodes(&[(0, 1, 5), (1, 1, 5)])).expect("its cells stay");
    assert_eq!(row(&planner, 4), 0);
    assert_eq!(Planner::new(planner.state().clone()).unwrap().plan(), planner.plan());
}

#[test]
fn cpus_in_all_are_spread_over_the_nodes_that_a_job_has() {
    let mut planner = cluster(Config::default(), &[2, 4, 8]);
    submit(&mut planner, 1, total(14, 2));
    assert_eq!(parts(&planner, 1), [(0, 2, 4), (1, 4, 8), (2, 8, 16)]);
    change(&mut planner, 1, total(9, 3)).unwrap();
    assert_eq!(parts(&planner, 1), [(0, 2, 6), (1, 4, 12), (2, 3, 9)]);
    change(&mut planner, 1, total(9, 1)).unwrap();
    assert_eq!(parts(&planner, 1), [(0, 2, 2), (1, 4, 4), (2, 3, 3)]);
    change(&mut planner, 1, total(3, 1)).unwrap();
    assert_eq!(parts(&planner, 1), [(0, 1, 1), (1, 1, 1), (2, 1, 1)]);
    assert_eq!(change(&mut planner, 1, total(2, 1)), Err(Refusal::FewerThanNodes { wanted: 2, nodes: 3 }));
    assert_eq!(change(&mut planner, 1, total(15, 1)), Err(Refusal::NeverFits { wanted: 15, most: 14 }));
}

/// A job that reduces its request below its observed use does not make room for others that way.
#[test]
fn memory_that_was_seen_stays_counted() {
    let mut planner = cluster(Config::default(), &[4]);
    submit(&mut planner, 1, nodes(&[(0, 1, 30)]));
    tell(&mut planner, Input::Memory(JobId(1), NodeId(0), 80)).unwrap();
    change(&mut planner, 1, nodes(&[(0, 1, 10)])).unwrap();
    assert_eq!(parts(&planner, 1), [(0, 1, 80)]);
    submit(&mut planner, 2, nodes(&[(0, 1, 30)]));
    assert_eq!(stage(&planner, 2), Stage::Waiting(Reason::WaitsForMemory));
}

#[test]
fn the_limits_of_the_queue_hold() {
    let limited = Queue { memory_bytes_max: Some(50), ..queue("a") };
    let mut planner = cluster(Config { queues: vec![limited], ..Config::default() }, &[4]);
    submit(&mut planner, 1, nodes(&[(0, 1, 30)]));
    assert!(matches!(change(&mut planner, 1, nodes(&[(0, 1, 60)])), Err(Refusal::Queue(0, _))));
    change(&mut planner, 1, nodes(&[(0, 1, 50)])).unwrap();
}
