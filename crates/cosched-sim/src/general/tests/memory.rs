//! Caches and the bandwidth of sockets, against times computed by hand.

use super::super::{Cache, Memory, NodeModel, Socket};
use super::*;
use crate::job::Footprint;
use crate::strategy::Strategy;

/// A working set of 1 MB is loaded in 1 ms.
const CACHE: Cache = Cache { bytes: 4 << 20, bytes_per_s: 1_000_000_000 };
const SOCKET: Socket = Socket { cpus: 2, bytes_per_s: 4_000_000_000 };

fn wants(working_set_bytes: u64, bytes_per_s: u64) -> Footprint {
    Footprint { working_set_bytes, bytes_per_s }
}

/// Jobs with programs and what they want: (arrival in µs, tasks, program, footprint).
fn with(jobs: &[(u64, u32, &'static str, Footprint)]) -> Vec<Work> {
    let all = |(at_us, tasks, text, footprint): &(u64, u32, &'static str, Footprint)| {
        let works = programs(&[(*at_us, *tasks, *text)]);
        let own = Own { footprint: *footprint, ..Own::default() };
        works.into_iter().map(move |work| match work {
            Work::Program(job) => Work::Program(ProgramJob { own, ..job }),
            paper => paper,
        })
    };
    jobs.iter().flat_map(all).collect()
}

fn ends(config: &Config, jobs: &[(u64, u32, &'static str, Footprint)]) -> Vec<u64> {
    outcome_of(config, &with(jobs)).0
}

/// Gangs that take turns of 10 ms on one CPU, and switch for nothing.
fn turns(memory: Memory) -> Config {
    let config = machine("GS", 1);
    Config { memory, params: Params { quantum_ns: 10 * MS, switch_ns: 0, ..config.params }, ..config }
}

#[test]
fn gangs_that_take_turns_lose_what_the_others_evict() {
    let cache = Cache { bytes: 1_000_000, ..CACHE };
    let config = turns(Memory { cache: Some(cache), socket: None });
    let large = wants(1_000_000, 0);
    // As much as the cache holds comes in each turn: e^-1 of it survives, and the rest is loaded again.
    let lost_ns = cache.load_ns(1_000_000, Some(1_000_000));
    assert!((lost_ns as f64 / 1e6 - 0.632).abs() < 0.001, "{lost_ns}");
    let jobs = with(&[(0, 1, "compute 91ms", large), (0, 1, "compute 90ms", large)]);
    let (_, outcome, record) = outcome_of(&config, &jobs);
    // The very first turn loads nothing; the first one of the other job all.
    let slices = [
        (Activity::Compute, 0, 10 * MS, Some(0)),
        (Activity::Switch, 10 * MS, 11 * MS, Some(1)),
        (Activity::Compute, 11 * MS, 20 * MS, Some(1)),
        (Activity::Switch, 20 * MS, 20 * MS + lost_ns, Some(0)),
    ];
    assert_eq!(record.of_cpu(0)[..4], slices);
    // Ten turns of the first, nine of the other before it is alone.
    assert_eq!(outcome.jobs[0].finish_ns, Some(181 * MS + 9 * lost_ns));
    assert_eq!((outcome.cpu.compute_ns, outcome.cpu.switch_ns), (181 * MS, MS + 18 * lost_ns));
}

#[test]
fn only_the_job_with_a_working_set_loads_it_and_no_more_than_the_cache_holds() {
    let config = turns(Memory { cache: Some(Cache { bytes: 2_000_000, ..CACHE }), socket: None });
    let (none, some, huge) = (Footprint::default(), wants(500_000, 0), wants(u64::MAX, 0));
    let jobs = [(0, 1, "compute 29500us", some), (0, 1, "compute 8ms", huge)];
    // 10 ms, 2 + 8 ms, and as nothing survived these, 0.5 + 19.5 ms.
    assert_eq!(ends(&config, &jobs), [40_000, 20_000]);
    let jobs = [jobs[0], (0, 1, "compute 24ms", huge)];
    assert_eq!(ends(&config, &jobs[1..]), [24_000], "alone it loses nothing");
    let jobs = [(0, 1, "compute 30ms", none), jobs[1]];
    assert_eq!(ends(&config, &jobs), [50_000, 56_000], "loaded once, as the other one brings nothing");
}

#[test]
fn a_socket_is_shared_by_those_who_compute_there() {
    let memory = Memory { cache: None, socket: Some(SOCKET) };
    let on = |nodes| Config { memory, ..machine("Local", nodes) };
    let three = wants(0, 3_000_000_000);
    let job = |at_us, text, footprint| (at_us, 1, text, footprint);
    let both = [job(0, "compute 10ms", three), job(0, "compute 10ms", three)];
    assert_eq!(ends(&on(2), &both), [15_000, 15_000], "each demands 3/4 and gets 1/2: 2/3 of its speed");
    let later = [job(0, "compute 10ms", three), job(4_000, "compute 10ms", three)];
    assert_eq!(ends(&on(2), &later), [13_000, 17_000], "4 + 9 ms, and 9 + 4 ms");
    let small = [job(0, "compute 10ms", wants(0, 6_000_000_000)), job(0, "compute 20ms", wants(0, 1_000_000_000))];
    assert_eq!(ends(&on(2), &small), [20_000, 20_000], "one demands little and gets it; the other gets the rest");
    let sleeps = [job(0, "compute 10ms", three), job(0, "io 5ms; compute 10ms", three)];
    assert_eq!(ends(&on(2), &sleeps), [12_500, 17_500], "one that sleeps demands nothing");
    let apart = [both[0], both[1], both[0]];
    assert_eq!(ends(&on(4), &apart), [15_000, 15_000, 10_000], "another socket has its own");
}

#[test]
fn without_a_memory_or_without_wants_all_is_as_before() {
    let memory = Memory { cache: Some(CACHE), socket: Some(SOCKET) };
    let list = |footprint: Footprint| -> Vec<Work> {
        let job = |k: u64| {
            let kind = JobType::ALL[k as usize % 6];
            Work::Paper(JobSpec { footprint, ..job(k * 3 * MS, 1 + k as u32 % 4, 30 * MS, kind) })
        };
        (0..8).map(job).collect()
    };
    let outcome = |config: &Config, footprint| {
        simulate_all(config, &list(footprint), &mut Silent, &mut |_| true).map_err(|error| error.to_string())
    };
    for strategy in Strategy::all() {
        for model in [NodeModel::Paper, NodeModel::Linux] {
            let params = Params { mpl: 4, quantum_ns: 10 * MS, check_invariants: true, ..Params::paper(strategy, 4) };
            let before = Config { model, cpus_per_node: 2, ..Config::paper(params) };
            let config = Config { memory, ..before };
            let wanted = wants(200_000, 3_000_000_000);
            let plain = outcome(&before, Footprint::default()).unwrap();
            assert_eq!(outcome(&config, Footprint::default()).unwrap(), plain, "{strategy}");
            assert_eq!(outcome(&before, wanted).unwrap(), plain, "{strategy}");
            // The laws hold at every event, and all jobs end.
            let slower = outcome(&config, wanted).unwrap();
            assert!(slower != plain && slower.jobs.iter().all(|job| job.finish_ns.is_some()), "{strategy}");
        }
    }
}
