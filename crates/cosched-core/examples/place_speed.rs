//! How long a node's planner takes when a gang arrives, with places and with columns that only count CPUs.
//!
//! `cargo run --release -p cosched-core --example place_speed`: 256 CPUs (4 sockets of 4 caches, 32 cores of 2 threads each), 60 gangs of 1 to 31 CPUs;
//! one more arrives and the oldest one ends, 10,000 times. Each arrival is timed, including the new plan; also measured is the choice of
//! a place alone, in a matrix with as many gangs.

use cosched_core::{
    Class, Cpu, Job, JobId, Matrix, Node, NodeId, Packing, Planner, PlannerConfig, PlannerInput, Policy, Shares,
    Sharing, Time, Topology,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ARRIVALS: u64 = 10_000;
const STAY: u64 = 60;
const CPUS: u32 = 256;

fn machine() -> Topology {
    let cpu = |core: u32| Cpu { socket: core / 32, numa_node: core / 32, cache: core / 8, core };
    Topology::new((0..CPUS).map(|at| cpu(at % 128)).collect())
}

fn width(id: u64) -> u32 {
    1 + (id * 7 % 31) as u32
}

fn arrivals(places: bool) -> Vec<Duration> {
    let planner = Planner::new(PlannerConfig {
        nodes: vec![Node { id: NodeId(0), cpus: CPUS }],
        slot_length_ns: 100_000_000,
        policy: Policy::Gang,
        sharing: Sharing::Soft,
        packing: Packing::FirstFit,
        shares: Shares::default(),
    });
    let mut planner = if places { planner.with_places(Arc::new(machine())) } else { planner };
    let one = |id| {
        let job = Job { id: JobId(id), owner: 0, class: Class::Batch, policy: None, cpus: width(id), node: None };
        let start = Instant::now();
        planner.handle(Time(0), PlannerInput::Submit(job)).expect("the job fits");
        let took = start.elapsed();
        if id >= STAY {
            planner.handle(Time(0), PlannerInput::End(JobId(id - STAY))).expect("the job exists");
        }
        while planner.poll_action().is_some() {}
        took
    };
    (0..ARRIVALS).map(one).collect()
}

fn choices() -> Vec<Duration> {
    let mut matrix = Matrix::of_places(NodeId(0), Arc::new(machine()));
    let one = |id| {
        let start = Instant::now();
        matrix.insert(JobId(id), width(id), None, Packing::FirstFit).expect("the job fits");
        let took = start.elapsed();
        if id >= STAY {
            matrix.remove(JobId(id - STAY));
            matrix.unify();
        }
        took
    };
    (0..ARRIVALS).map(one).collect()
}

fn main() {
    let all = [("counted", arrivals(false)), ("placed", arrivals(true)), ("place alone", choices())];
    for (name, mut times) in all {
        times.sort_unstable();
        let of = |part: usize| times[(times.len() - 1) * part / 1000];
        println!("{name:<12} median {:?}, 99.9 % {:?}, longest {:?}", of(500), of(999), of(1000));
    }
}
