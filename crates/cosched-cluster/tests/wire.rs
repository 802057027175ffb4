//! Values survive encoding and decoding; unknown formats are refused; and large states fit into the store.

use cosched_cluster::store::TXN_BYTES_MAX;
use cosched_cluster::wire::{
    self, Ack, Answer, Ask, By, Clock, Exit, FormatError, Job, JobAsk, KillHow, Measured, Node, NodeAsk, PartEnd,
    Reply, Request, WantAsk, Why, decode, encode,
};
use cosched_core::cluster::{
    After, Capacity, Cells, Config, FairShare, Input, JobRecord, JobSpec, NodeRecord, NodeWant, OnNodeLoss, Packing,
    Part, Period, Place, Planner, Queue, Rights, Span, Stage, State, Suspended, Terms, Usage, Want,
};
use cosched_core::{Class, JobId, NodeId, Policy, Reason, Shares, Sharing, Standing, Time};
use proptest::prelude::*;
use proptest::test_runner::Config as Cases;
use std::collections::BTreeMap;

const POLICIES: [Policy; 5] = [Policy::Gang, Policy::Local, Policy::Pb, Policy::Dcs, Policy::Auto];
const REASONS: [Reason; 6] =
    [Reason::Arrival, Reason::NodeLost, Reason::LeaseOut, Reason::WaitsForMemory, Reason::RunTime, Reason::WaitsForJob];

fn one_of<T: Copy + std::fmt::Debug>(all: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(all)
}

prop_compose! {
    fn shares()((express, interactive, batch, standby) in any::<(u32, u32, u32, u32)>()) -> Shares {
        Shares { express, interactive, batch, standby }
    }
}

prop_compose! {
    fn queue()(name in ".{0,8}", exclusive in any::<bool>(), limits in any::<[Option<u64>; 3]>(), users in any::<Vec<u32>>(), jobs_max in any::<Option<u32>>()) -> Queue {
        let [memory_bytes_max, disk_bytes_max, time_ns_max] = limits;
        let rights = Rights { users, groups: vec![7], memory_bytes_max: disk_bytes_max, jobs_max };
        Queue { name, exclusive, memory_bytes_max, disk_bytes_max, time_ns_max, rights }
    }
}

prop_compose! {
    fn config()(
        slot_length_ns in any::<u64>(),
        numbers in any::<[u32; 3]>(),
        policy in one_of(&POLICIES),
        sharing in one_of(&[Sharing::Strict, Sharing::Paired, Sharing::Soft]),
        packing in one_of(&[Packing::FirstFit, Packing::BestFit, Packing::Buddy]),
        period in one_of(&[Period::Working, Period::Off]),
        (working, off) in (shares(), shares()),
        queues in prop::collection::vec(queue(), 0..3),
        fair_share in prop::option::of(any::<(u64, u64)>()),
        node_dead_after_ns in any::<u64>(),
    ) -> Config {
        let [rows_max, other_share, ceiling_permille] = numbers;
        let fair_share = fair_share.map(|(half_life_ns, weight_ns)| FairShare { half_life_ns, weight_ns });
        Config {
            slot_length_ns,
            policy,
            sharing,
            packing,
            rows_max,
            working,
            off,
            period,
            other_share,
            ceiling_permille,
            node_dead_after_ns,
            queues,
            fair_share,
        }
    }
}

fn want() -> impl Strategy<Value = Want> {
    let node = any::<(u32, u32, u32, u64, u64)>().prop_map(|(node, cpus, cpus_min, memory_bytes, disk_bytes)| {
        NodeWant { node: NodeId(node), cpus, cpus_min, memory_bytes, disk_bytes }
    });
    let total = any::<(u32, u64, u64)>().prop_map(|(cpus, memory_per_cpu_bytes, disk_bytes)| Want::Total {
        cpus,
        memory_per_cpu_bytes,
        disk_bytes,
    });
    prop_oneof![prop::collection::vec(node, 0..4).prop_map(Want::PerNode), total]
}

fn part() -> impl Strategy<Value = Part> {
    any::<(u32, u32, u64, u64)>().prop_map(|(node, cpus, memory_bytes, disk_bytes)| Part {
        node: NodeId(node),
        cpus,
        memory_bytes,
        disk_bytes,
    })
}

fn place() -> impl Strategy<Value = Place> {
    let cells = any::<(u32, u32, u32)>()
        .prop_map(|(node, first, count)| Cells { node: NodeId(node), cpus: Span { first, count } });
    let home = prop::option::of((any::<u32>(), prop::collection::vec(cells, 0..4)));
    (prop::collection::vec(part(), 0..4), home).prop_map(|(parts, home)| Place { parts, home })
}

prop_compose! {
    fn job()(
        (id, order, ready) in any::<(u64, u64, u64)>(),
        queue in any::<u32>(),
        class in one_of(&Class::ALL),
        policy in prop::option::of(one_of(&POLICIES)),
        choice in one_of(&POLICIES),
        want in want(),
        on_node_loss in one_of(&[OnNodeLoss::Kill, OnNodeLoss::Keep, OnNodeLoss::Requeue]),
        standing in one_of(&[Standing::Scheduled, Standing::Asleep, Standing::Suspended]),
        (stage, reason) in (0..4_u8, one_of(&REASONS)),
        place in prop::option::of(place()),
        (time_ns_max, begin, since, ns) in any::<(Option<u64>, Option<u64>, Option<u64>, u64)>(),
        after in prop::collection::vec(any::<(u64, bool)>(), 0..3),
    ) -> (JobId, JobRecord) {
        let stage = match stage {
            0 => Stage::Waiting(reason),
            1 => Stage::Ready,
            2 => Stage::Clearing,
            _ => Stage::Ending(reason),
        };
        let after = after.into_iter().map(|(job, ok)| After { job: JobId(job), ok }).collect();
        let terms = Terms { time_ns_max, begin: begin.map(Time), after };
        let suspended = Suspended { since: since.map(Time), ns };
        let spec = JobSpec { policy, queue, on_node_loss, terms, ..JobSpec::new(JobId(id), class, want) };
        (JobId(id), JobRecord { spec, order, standing, choice, stage, place, ready_since: Time(ready), suspended })
    }
}

prop_compose! {
    fn node()(id in any::<u32>(), drains in any::<bool>(), n in any::<(u32, u64, u64, u32, u32)>()) -> (NodeId, NodeRecord) {
        let (cpus, memory_bytes, disk_bytes, other_threads_seen, other_threads) = n;
        let capacity = Capacity { cpus, memory_bytes, disk_bytes };
        (NodeId(id), NodeRecord { capacity, drains, other_threads_seen, other_threads })
    }
}

prop_compose! {
    fn state()(
        config in config(),
        (generation, from_slot, next_order, start) in any::<(u64, u64, u64, u32)>(),
        row_turns in prop::collection::vec(any::<u64>().prop_map(Time), 0..4),
        early in prop::collection::vec(any::<u64>().prop_map(JobId), 0..4),
        nodes in prop::collection::btree_map(any::<u32>(), node(), 0..5),
        drained_away in prop::collection::btree_set(any::<u32>().prop_map(NodeId), 0..4),
        silent in prop::collection::btree_map(any::<u32>().prop_map(NodeId), any::<u64>().prop_map(Time), 0..4),
        kept in prop::collection::vec((any::<u64>(), part()), 0..4),
        jobs in prop::collection::btree_map(any::<u64>(), job(), 0..5),
        usage in prop::collection::btree_map(any::<u32>(), any::<(u64, u64)>(), 0..3),
    ) -> State {
        let usage = usage.into_iter().map(|(user, (cpu_ms, at))| (user, Usage { cpu_ms, at: Time(at) })).collect();
        let mut of_nodes: BTreeMap<NodeId, BTreeMap<JobId, Part>> = BTreeMap::new();
        for (job, part) in kept {
            of_nodes.entry(part.node).or_default().insert(JobId(job), part);
        }
        let kept = of_nodes;
        let (nodes, jobs) = (nodes.into_values().collect(), jobs.into_values().collect());
        State {
            config,
            generation,
            from_slot,
            start,
            row_turns,
            early,
            next_order,
            nodes,
            drained_away,
            silent,
            kept,
            usage,
            jobs,
        }
    }
}

proptest! {
    #![proptest_config(Cases::with_cases(300))]

    #[test]
    fn every_field_of_the_state_comes_back(state in state()) {
        prop_assert_eq!(decode::<State>(&encode(&state)), Ok(state));
    }

    #[test]
    fn no_bytes_make_it_stumble(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(decode::<State>(&bytes).is_err());
        let mut packed = vec![0x1f, 0x8b];
        packed.extend(bytes);
        prop_assert!(decode::<State>(&packed).is_err());
    }
}

fn ask(want: WantAsk) -> JobAsk {
    JobAsk {
        name: "lu".to_owned(),
        command: vec!["mpirun".to_owned(), "lu \"1\"\n".to_owned()],
        cwd: Some("/home/ä".to_owned()),
        environment: vec![("A".to_owned(), "b=c".to_owned())],
        log_path: Some("/tmp/log".to_owned()),
        class: wire::Class::Batch,
        policy: Some(wire::Policy::Dcs),
        share_permille: None,
        want,
        queue: Some("night".to_owned()),
        on_node_loss: wire::OnNodeLoss::Requeue,
        waiting: None,
        lead: Some("a".to_owned()),
        main: None,
        groups: Vec::new(),
        once: false,
        terms: wire::TermsAsk {
            time_ms_max: Some(1),
            grace_ms: Some(2),
            begin_ms: Some(3),
            after: vec![wire::AfterAsk { job: 1, ok: true }],
            memory_bytes_max: Some(4),
            exclusive_cores: true,
        },
    }
}

#[test]
fn jobs_requests_replies_and_nodes_come_back() {
    let by = By { uid: 1000, gid: 100, admin: true };
    let per_node = NodeAsk { node: "a".to_owned(), cpus: 4, cpus_min: 2, memory_bytes: 1 << 40, disk_bytes: 7 };
    let mut job = Job::new(7, by, ask(WantAsk::PerNode(vec![per_node])), 5);
    let out_of_memory = Some(wire::OutOfMemory { killed: 1, limit_bytes: None });
    let exit = Some(Exit { code: None, signal: Some(9) });
    let end = PartEnd { exit, cpu_time_ns: 3, memory_peak_bytes: 4, out_of_memory };
    job.ended_on.insert("a".to_owned(), end);
    job.asleep_on.insert("b".to_owned());
    (job.attempt, job.closing, job.killed_by) = (3, true, Some(0));
    let why = Why::Killed { uid: 0 };
    job.end = Some(wire::End { at_ns: 9, why, exit, cpu_time_ns: 3, memory_peak_bytes: 4, out_of_memory });
    assert_eq!(decode::<Job>(&encode(&job)), Ok(job));

    let total = WantAsk::Total { cpus: 8, memory_per_cpu_bytes: 1, disk_bytes: 2 };
    let (job, attempt) = (7, 2);
    let asks = [
        Ask::Submit(Box::new(ask(total.clone()))),
        Ask::Suspend { job },
        Ask::Resume { job },
        Ask::Kill { job, how: KillHow::FORCE },
        Ask::Class { job, class: wire::Class::Express },
        Ask::Policy { job, policy: None },
        Ask::Share { job, permille: Some(500) },
        Ask::ClusterPolicy { policy: wire::Policy::Local },
        Ask::ClusterSharing { sharing: wire::Sharing::Strict },
        Ask::SlotLength { ns: 5 },
        Ask::Resources { job, want: total.clone() },
        Ask::Packing { packing: wire::Packing::BestFit },
        Ask::RowsMax { rows: 7 },
        Ask::Ceiling { permille: 900 },
        Ask::Drain { node: "b".to_owned(), drains: true },
        Ask::PartEnded { job, attempt, end },
        Ask::Asleep { job, attempt },
        Ask::Awake { job, attempt },
        Ask::Memory { job, attempt, bytes: u64::MAX },
        Ask::Choice { job, policy: wire::Policy::Dcs, reason: wire::Reason::WaitsMuch },
    ];
    for ask in asks {
        let request = Request { origin: "a".to_owned(), by: Some(by), at_ns: u64::MAX, ask };
        assert_eq!(decode::<Request>(&encode(&request)), Ok(request));
    }
    let refused = Answer::Refused { what: "w".to_owned(), why: "y".to_owned(), hint: "h".to_owned() };
    for answer in [Answer::Submitted { job: 7 }, Answer::Done, refused, Answer::Unknown] {
        let reply = Reply { at_ns: 1, answer };
        assert_eq!(decode::<Reply>(&encode(&reply)), Ok(reply));
    }
    let node = Node {
        boot: "b".to_owned(),
        id: 3,
        instance: u64::MAX,
        home: "m".to_owned(),
        cpus: 2,
        memory_bytes: 3,
        disk_bytes: 4,
        clock: Clock { synchronised: true, error_ns: 5 },
        version: "0.1.0".to_owned(),
        jobs_known: 7,
    };
    assert_eq!(decode::<Node>(&encode(&node)), Ok(node));
    let measured = Measured { at_ns: 9, runnable: 3, load_milli: [1, 20, 300], memory_available_bytes: 5 };
    let ack = Ack { generation: u64::MAX, other_threads: 3, measured: Some(measured) };
    assert_eq!(decode::<Ack>(&encode(&ack)), Ok(ack));
}

#[test]
fn what_is_not_known_is_refused_with_a_reason() {
    let ack = Ack { generation: 1, other_threads: 2, measured: None };
    let text = String::from_utf8(encode(&ack)).unwrap();
    let newer = text.replace("\"version\":2", "\"version\":3").replace("generation", "generations");
    let error = decode::<Ack>(newer.as_bytes()).unwrap_err();
    assert_eq!(error, FormatError::Version { format: "cosched-ack", found: 3, known: 2 });
    assert!(error.to_string().contains("run the same version of cosched on all nodes"), "{error}");
    let error = decode::<Node>(text.as_bytes()).unwrap_err();
    assert_eq!(error, FormatError::Format { found: "cosched-ack".to_owned(), expected: "cosched-node" });
    let error = decode::<Ack>(text.replace("other_threads", "others").as_bytes()).unwrap_err();
    assert!(matches!(&error, FormatError::Body { why, .. } if why.contains("others")), "{error}");
    assert!(matches!(decode::<Ack>(b"hello"), Err(FormatError::NotOurs(_))));
    let twice = encode(&State { nodes: [(NodeId(1), cpus(4))].into(), ..State::default() });
    let twice = String::from_utf8(twice).unwrap();
    let node = twice.split_once("\"nodes\":[").unwrap().1.split_once(']').unwrap().0.to_owned();
    let twice = twice.replace(&node, &format!("{node},{node}"));
    assert!(matches!(decode::<State>(twice.as_bytes()), Err(FormatError::Body { .. })));
}

fn cpus(cpus: u32) -> NodeRecord {
    let capacity = Capacity { cpus, memory_bytes: 64 << 30, disk_bytes: 1 << 40 };
    NodeRecord { capacity, drains: false, other_threads_seen: 0, other_threads: 0 }
}

/// A realistic cluster: nodes of a few kinds with different loads, jobs of 1 to 64 nodes, some of which wait.
fn large(nodes: u32, jobs: u64) -> State {
    let mut state = State::default();
    for id in 0..nodes {
        let load = id.wrapping_mul(2_654_435_761) % 7;
        let record =
            NodeRecord { other_threads: load, other_threads_seen: load, ..cpus([16, 32, 64][id as usize % 3]) };
        state.nodes.insert(NodeId(id), record);
    }
    let mut planner = Planner::new(state).unwrap();
    for id in 1..=jobs {
        let mixed = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let cpus = 1 << (mixed >> 60).min(11);
        let want = Want::Total { cpus, memory_per_cpu_bytes: (mixed >> 40) % (1 << 31), disk_bytes: 1 << 30 };
        let spec = JobSpec::new(JobId(id), Class::ALL[1 + (mixed >> 20) as usize % 3], want);
        planner.apply(Time(mixed >> 4), Input::Submit(spec)).unwrap();
    }
    planner.state().clone()
}

/// The limit is for a whole transaction, of which a state may take at most the larger part.
#[test]
fn the_state_of_a_large_cluster_fits_into_a_transaction() {
    let state = large(2_000, 2_000);
    let bytes = encode(&state).len();
    let parts: usize = state.jobs.values().filter_map(|job| job.place.as_ref()).map(|place| place.parts.len()).sum();
    println!("2,000 nodes and 2,000 jobs with {parts} parts: {bytes} bytes");
    assert!(bytes < TXN_BYTES_MAX / 2, "{bytes} bytes");
    assert_eq!(decode::<State>(&encode(&state)), Ok(state));
}

/// `cargo test -p cosched-cluster --release --test wire -- --ignored --nocapture`: the figure for 10,000 nodes.
#[test]
#[ignore = "a figure; slow without optimisation"]
fn size_of_the_state_of_10000_nodes() {
    for (nodes, jobs) in [(1_000, 200), (10_000, 2_000)] {
        let state = large(nodes, jobs);
        let parts: usize =
            state.jobs.values().filter_map(|job| job.place.as_ref()).map(|place| place.parts.len()).sum();
        let begin = std::time::Instant::now();
        let bytes = encode(&state);
        let encoded = begin.elapsed();
        decode::<State>(&bytes).unwrap();
        let decoded = begin.elapsed() - encoded;
        println!(
            "{nodes} nodes, {jobs} jobs, {parts} parts: {} bytes, {encoded:?} to write, {decoded:?} to read",
            bytes.len()
        );
        assert!(bytes.len() < TXN_BYTES_MAX, "{} bytes", bytes.len());
    }
}
