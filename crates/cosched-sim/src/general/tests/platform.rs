//! Programs on platforms.

use super::*;
use crate::general::simulate_on;
use crate::platform::{Platform, read_toml};
use crate::strategy::Strategy;

/// Four hosts of 1 Gf and four of 2 Gf, each with a cable of 100 MB/s and 10 us, and a link between the two.
fn platform() -> Platform {
    let cluster = |name, speed| {
        format!(
            "[[cluster]]\nname = \"{name}\"\nhosts = 4\nspeed = \"{speed}\"\nbandwidth = \"100MBps\"\nlatency = \"10us\"\n"
        )
    };
    let link = "[[link]]\nbetween = [\"slow\", \"fast\"]\nbandwidth = \"100MBps\"\nlatency = \"80us\"\n";
    read_toml(&format!("model = \"CM02\"\n{}{}{link}", cluster("slow", "1Gf"), cluster("fast", "2Gf"))).unwrap()
}

fn on(strategy: &str, works: &[Work]) -> (Outcome, Record) {
    let mut record = Record::default();
    let outcome = simulate_on(&machine(strategy, 8), Some(&platform()), works, &mut record, &mut |_| true).unwrap();
    (outcome, record)
}

fn ends_us(works: &[Work]) -> Vec<u64> {
    on("Local", works).0.jobs.iter().map(|job| job.finish_ns.unwrap() / US).collect()
}

#[test]
fn messages_take_latency_and_share_bandwidth() {
    // 20 us of cables and 10 ms of bytes, there and back.
    assert_eq!(ends_us(&programs(&[(0, 2, "on 0 { send 1 1MB; recv 1 }; on 1 { recv 0; send 0 1MB }")])), [20_040]);
    // Both ways at once, on cables of their own, each with 5 % of acknowledgements of the other.
    assert_eq!(ends_us(&programs(&[(0, 2, "exchange 1d 1MB")])), [10_520]);
    // Two at one receiver: half of its cable each.
    assert_eq!(
        ends_us(&programs(&[(0, 3, "on 1 { send 0 1MB }; on 2 { send 0 1MB }; on 0 { recv 1; recv 2 }")])),
        [20_020]
    );
    // Four over the link between the clusters.
    let across = "on 0..3 { send +4 1MB }; on 4..7 { recv -4 }";
    assert_eq!(ends_us(&programs(&[(0, 8, across)])), [40_100]);
}

#[test]
fn hosts_compute_at_their_speed() {
    let (_, record) = on("Local", &programs(&[(0, 8, "compute 4ms")]));
    let of = |node| record.of_cpu(node)[0].2;
    assert_eq!((of(0), of(3), of(4), of(7)), (4 * MS, 4 * MS, 2 * MS, 2 * MS));
}

#[test]
fn what_holds_a_cpu_does_so_on_any_host() {
    let (_, record) = on("Local", &programs(&[(0, 8, "hold 4ms")]));
    assert_eq!([0, 4, 7].map(|node| record.of_cpu(node)[0].2), [4 * MS; 3]);
}

/// Jobs that fit behind the first one by their own estimates start before it; these are of the slowest way and host.
#[test]
fn estimates_know_the_size_of_messages_and_the_speed_of_hosts() {
    let backfilled = |later: &str, platform: Option<&Platform>| {
        // Four of eight nodes are used for 100 ms, and then all of them are wanted.
        let works = programs(&[(0, 4, "hold 100ms"), (1, 8, "compute 1ms"), (2, 4, later)]);
        let out = simulate_on(&machine("EASY", 8), platform, &works, &mut Silent, &mut |_| true).unwrap();
        out.jobs[2].start_ns.unwrap() < 100 * MS
    };
    let (short, long) = ("ring 1MB", "ring 40MB");
    // 5 ms and 200 ms at 200 MB/s; 10 ms and 400 ms at 100 MB/s.
    let platform = platform();
    assert_eq!([short, long].map(|later| backfilled(later, None)), [true, false]);
    assert_eq!([short, long].map(|later| backfilled(later, Some(&platform))), [true, false]);
    // Whichever hosts they get, they are ready in time.
    let turned = read_toml(TURNED).unwrap();
    assert_eq!(["compute 40ms", "compute 60ms"].map(|later| backfilled(later, Some(&turned))), [true, false]);
}

/// The first four hosts compute twice as fast as the others.
const TURNED: &str = "model = \"CM02\"\n[[cluster]]\nname = \"fast\"\nhosts = 4\nspeed = \"2Gf\"\nbandwidth = \"1GBps\"\nlatency = \"0\"\n\
                      [[cluster]]\nname = \"slow\"\nhosts = 4\nspeed = \"1Gf\"\nbandwidth = \"1GBps\"\nlatency = \"0\"\n\
                      [[link]]\nbetween = [\"fast\", \"slow\"]\nbandwidth = \"1GBps\"\nlatency = \"0\"\n";

/// A short message that is sent after a long one has all of its bytes first, and is received second.
#[test]
fn messages_of_a_pair_keep_their_order() {
    let (_, record) = on("SB", &programs(&[(0, 2, "on 0 { send 1 1MB; send 1 1B }; on 1 { recv 0; recv 0 }")]));
    let times: Vec<u64> = record.messages.iter().map(|message| message.delivered_ns / US).collect();
    assert_eq!(times, [10_020, 10_020]);
}

#[test]
fn laws_hold_on_platforms() {
    let text = "repeat 2 { compute 300us skew; barrier; alltoall 10kB; bcast root=1 64KiB; exchange 2d 100kB; ring 0B; random-pairs }";
    let jobs = programs(&[(0, 6, text), (1_000, 8, text), (2_000, 5, text), (3_000, 8, text)]);
    for strategy in Strategy::all() {
        let config =
            Config::paper(Params { mpl: 3, quantum_ns: 10 * MS, check_invariants: true, ..Params::paper(strategy, 8) });
        let run = || simulate_on(&config, Some(&platform()), &jobs, &mut Silent, &mut |_| true).unwrap();
        let outcome = run();
        assert_eq!(outcome, run(), "{strategy}");
        assert!(outcome.jobs.iter().all(|job| job.finish_ns.is_some()), "{strategy}");
    }
}

#[test]
fn nodes_without_hosts_are_refused() {
    let error = simulate_on(&machine("Local", 9), Some(&platform()), &[], &mut Silent, &mut |_| true).unwrap_err();
    assert!(error.to_string().contains("9 nodes on a platform of 8 hosts"), "{error}");
}
