//! The cost of messages, as far as a recording shows it.
//!
//! A collective takes as long as its longest chain of messages, from the arrival of the last task to the departure of the last
//! one. A message takes from its send to the end of its receive, if the receiver was waiting already. Both need a common clock;
//! for tasks on several hosts, the shortest time that a task spends in a collective that synchronises all tasks is used instead.
//! Samples in which a task had to wait for a CPU say nothing about messages; the lower quartile excludes other disturbances. With
//! more tasks than CPUs there may be no other samples: then the fastest one is closest to the truth, since waiting only adds time.

use super::rank_file::{Call, Kind, Members, RankFile};
use super::{Collective, Event, Network, What, collectives};
use std::collections::HashMap;

/// The maximum number of calls of a task that are evaluated.
const CALLS_MAX: usize = 200_000;
/// Up to this size a message's size does not matter.
const SMALL_BYTES: u64 = 1024;
/// From this size on it does.
const LARGE_BYTES: u64 = 8192;

/// A measured time of a chain of messages.
#[derive(Clone, Copy, Debug)]
struct Sample {
    messages: u64,
    bytes: u64,
    ns: u64,
    /// No task waited for a CPU.
    is_clean: bool,
}

/// This number of undisturbed samples is enough.
const CLEAN_MIN: usize = 3;

/// A call with its times on the machine's clock.
#[derive(Clone, Copy, Debug)]
struct Timed<'a> {
    kind: &'a Kind,
    call: &'a Call,
    begin_ns: u64,
    end_ns: u64,
}

/// The cost of messages, and whether it was measured without competition for CPUs; None if there are no messages.
pub(super) fn fit(files: &[RankFile]) -> Option<(Network, bool)> {
    let one_clock = files.windows(2).all(|pair| pair[0].host == pair[1].host);
    let mut samples = together(files, one_clock);
    if one_clock {
        samples.extend(to_and_fro(files));
    }
    let is_clean = samples.iter().filter(|sample| sample.is_clean).count() >= CLEAN_MIN.min(samples.len());
    samples.retain(|sample| sample.is_clean || !is_clean);
    let per_message = |sample: &Sample| sample.ns as f64 / sample.messages as f64;
    let is_small = |sample: &&Sample| sample.bytes / sample.messages <= SMALL_BYTES;
    let small: Vec<f64> = samples.iter().filter(is_small).map(per_message).collect();
    // Without small messages the fastest of the others gives a bound.
    let typical = if is_clean { quartile } else { fastest };
    let alpha_ns = typical(small).or_else(|| samples.iter().map(per_message).min_by(f64::total_cmp))?;
    let slope = |sample: &Sample| (sample.ns as f64 - alpha_ns * sample.messages as f64).max(0.0) / sample.bytes as f64;
    let is_large = |sample: &&Sample| sample.bytes / sample.messages >= LARGE_BYTES;
    let beta_ns = quartile(samples.iter().filter(is_large).map(slope).collect()).unwrap_or(0.0);
    // No message is free, and the simulator uses whole nanoseconds.
    let alpha_us = alpha_ns.max(1.0) / 1e3;
    Some((Network { alpha_us, beta_us_per_word: beta_ns * 8.0 / 1e3, samples: samples.len() as u64 }, is_clean))
}

fn fastest(values: Vec<f64>) -> Option<f64> {
    values.into_iter().min_by(f64::total_cmp)
}

fn quartile(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 4).copied()
}

fn timed(file: &RankFile) -> impl Iterator<Item = Timed<'_>> {
    let mut now_ns = file.begin_ns;
    file.calls.iter().take(CALLS_MAX).map(move |call| {
        let begin_ns = [call.compute_ns, call.io_ns, call.wait_ns].into_iter().fold(now_ns, u64::saturating_add);
        now_ns = begin_ns.saturating_add(call.call_ns);
        Timed { kind: &file.kinds[call.kind as usize], call, begin_ns, end_ns: now_ns }
    })
}

/// A task's collectives in program order.
type Collectives<'a> = Vec<(&'a Collective<Members>, Timed<'a>)>;

/// Samples from the collectives in which all tasks of a group were recorded.
fn together(files: &[RankFile], one_clock: bool) -> Vec<Sample> {
    let mut found: HashMap<&[u32], Vec<Collectives<'_>>> = HashMap::new();
    for file in files {
        let mut own: HashMap<&[u32], Collectives<'_>> = HashMap::new();
        for timed in timed(file) {
            if let [Event::Together(collective)] = timed.kind.events.as_slice() {
                // Creating a communicator takes more than its messages.
                if !timed.kind.name.starts_with("MPI_Comm") && !timed.kind.name.contains("_create") {
                    own.entry(&collective.among).or_default().push((collective, timed));
                }
            }
        }
        own.into_iter().for_each(|(group, calls)| found.entry(group).or_default().push(calls));
    }
    let mut samples = Vec::new();
    for (group, each) in found {
        if each.len() != group.len() || group.len() < 2 {
            continue;
        }
        let count = each.iter().map(Vec::len).min().unwrap_or(0);
        for index in 0..count {
            let (collective, _) = each[0][index];
            let calls = || each.iter().map(|calls| calls[index].1);
            let is_clean = calls().all(|timed| is_clean(timed.call));
            let ns = match () {
                () if one_clock => {
                    let last_begin_ns = calls().map(|timed| timed.begin_ns).max().unwrap_or(0);
                    calls().map(|timed| timed.end_ns).max().unwrap_or(0).saturating_sub(last_begin_ns)
                }
                () if keeps_all(collective.what) => calls().map(|timed| timed.call.call_ns).min().unwrap_or(0),
                () => continue,
            };
            let (messages, bytes) = collectives::longest_path(collective.what, group.len() as u64, collective.bytes);
            samples.push(Sample { messages, bytes, ns, is_clean });
        }
    }
    samples
}

/// The task did not wait for a CPU. Smaller values are due to the time between readings of the layer's clocks.
fn is_clean(call: &Call) -> bool {
    call.call_wait_ns < 3_000
}

/// Whether no task leaves the collective before all have arrived.
fn keeps_all(what: What) -> bool {
    matches!(what, What::Barrier | What::Allreduce | What::Allgather | What::Alltoall)
}

/// Samples from messages for which the receiver was waiting: the k-th message sent to a task is the k-th that it receives from the
/// sender.
fn to_and_fro(files: &[RankFile]) -> Vec<Sample> {
    let mut sent: HashMap<(u32, u32), Vec<(Timed<'_>, u64)>> = HashMap::new();
    let mut received: HashMap<(u32, u32), Vec<Timed<'_>>> = HashMap::new();
    for file in files {
        for timed in timed(file) {
            for event in &timed.kind.events {
                match event {
                    Event::Send { to, bytes } => {
                        sent.entry((file.rank, *to)).or_default().push((timed, *bytes));
                    }
                    Event::Receive { from, .. } => received.entry((*from, file.rank)).or_default().push(timed),
                    _ => {}
                }
            }
        }
    }
    let mut samples = Vec::new();
    for (pair, sent) in sent {
        for ((send, bytes), receive) in sent.iter().zip(received.get(&pair).map_or(&[][..], Vec::as_slice)) {
            let is_alone = receive.kind.events.len() == 1;
            if is_alone && receive.begin_ns < send.begin_ns && send.begin_ns < receive.end_ns {
                let is_clean = is_clean(send.call) && is_clean(receive.call);
                samples.push(Sample { messages: 1, bytes: *bytes, ns: receive.end_ns - send.begin_ns, is_clean });
            }
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(rank: u32, kinds: Vec<Kind>, calls: &[(u32, u64, u64)]) -> RankFile {
        let call = |(kind, compute_ns, call_ns): &(u32, u64, u64)| Call {
            kind: *kind,
            compute_ns: *compute_ns,
            call_ns: *call_ns,
            ..Call::default()
        };
        RankFile { rank, ranks: 2, kinds, calls: calls.iter().map(call).collect(), ..RankFile::default() }
    }

    fn kind(event: Event<Members>) -> Kind {
        Kind { name: "MPI_X".into(), events: vec![event] }
    }

    #[test]
    fn the_last_one_to_come_tells_what_a_barrier_costs() {
        let barrier = || {
            vec![kind(Event::Together(Collective { what: What::Barrier, among: [0, 1].into(), root: None, bytes: 0 }))]
        };
        let mut early = file(0, barrier(), &[(0, 100, 5_800), (0, 100, 7_000)]);
        let mut late = file(1, barrier(), &[(0, 5_000, 900), (0, 6_000, 1_100)]);
        // On one clock: from 5000 to 5900, from 11,900 to 13,000.
        let (network, is_clean) = fit(&[early.clone(), late.clone()]).unwrap();
        assert_eq!((network.alpha_us, network.beta_us_per_word, network.samples, is_clean), (0.9, 0.0, 2, true));
        late.host = "elsewhere".into();
        late.begin_ns = 1_000_000;
        assert_eq!(fit(&[early.clone(), late.clone()]).unwrap().0.alpha_us, 0.9);
        late.calls.iter_mut().for_each(|call| call.call_wait_ns = 5_000);
        assert!(!fit(&[early.clone(), late.clone()]).unwrap().1, "somebody waited for a CPU");
        // Every message waited for a CPU, all but one of them for a long time.
        for file in [&mut early, &mut late] {
            let long = Call { compute_ns: 100, call_ns: 4_000_000, call_wait_ns: 3_990_000, ..Call::default() };
            file.calls.extend(vec![long; 10]);
        }
        let (network, is_clean) = fit(&[early, late]).unwrap();
        assert!(!is_clean && network.alpha_us == 0.9, "{network:?}");
        assert_eq!(fit(&[file(0, barrier(), &[(0, 1, 1)])]), None, "nobody to talk to");
    }

    #[test]
    fn messages_that_were_waited_for_give_both_costs() {
        let sizes = [8_u64, 80_000];
        let sends = sizes.map(|bytes| kind(Event::Send { to: 1, bytes })).to_vec();
        let receives = sizes.map(|bytes| kind(Event::Receive { from: 0, bytes })).to_vec();
        // Sent at 1000 and at 12,000 ns; the receiver waits from 0 on, and from 3000 on.
        let sender = file(0, sends, &[(0, 1000, 10), (1, 10_990, 10)]);
        let receiver = file(1, receives, &[(0, 0, 3_000), (1, 0, 9_000 + 2_000 + 80_000)]);
        let (network, _) = fit(&[sender, receiver]).unwrap();
        assert_eq!((network.alpha_us, network.samples), (2.0, 2));
        assert!((network.beta_us_per_word - 0.008).abs() < 1e-9, "{network:?}");
    }
}
