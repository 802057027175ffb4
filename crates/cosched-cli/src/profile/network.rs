//! What messages cost, as far as a recording shows it.
//!
//! A collective takes as long as its longest chain of messages from when the last task has come: of all tasks that one is
//! the shortest time in the call. A message takes from its send to the end of its receive, if the receiver waited already;
//! for that both must have one clock. Others load the machine at times, so the lower quartile counts, not the mean.

use super::rank_file::{Call, Kind, RankFile};
use super::{Collective, Event, Network, collectives};
use std::collections::HashMap;

/// Calls of a task that are looked at.
const CALLS_MAX: usize = 200_000;
/// Up to so many bytes a message's size does not matter.
const SMALL_BYTES: u64 = 1024;
/// From so many on it does.
const LARGE_BYTES: u64 = 8192;

/// A measured time of a chain of messages.
#[derive(Clone, Copy, Debug)]
struct Sample {
    messages: u64,
    bytes: u64,
    ns: u64,
}

/// A call on the machine's clock.
#[derive(Clone, Copy, Debug)]
struct Timed<'a> {
    kind: &'a Kind,
    call: &'a Call,
    begin_ns: u64,
    end_ns: u64,
}

/// The cost of messages; `None` without a message.
pub(super) fn fit(files: &[RankFile]) -> Option<Network> {
    let mut samples = together(files);
    if files.windows(2).all(|pair| pair[0].host == pair[1].host) {
        samples.extend(to_and_fro(files));
    }
    let per_message = |sample: &Sample| sample.ns as f64 / sample.messages as f64;
    let is_small = |sample: &&Sample| sample.bytes / sample.messages <= SMALL_BYTES;
    let small: Vec<f64> = samples.iter().filter(is_small).map(per_message).collect();
    // Without small messages the fastest of the others bounds it.
    let alpha_ns = quartile(small).or_else(|| samples.iter().map(per_message).min_by(f64::total_cmp))?;
    let slope = |sample: &Sample| (sample.ns as f64 - alpha_ns * sample.messages as f64).max(0.0) / sample.bytes as f64;
    let is_large = |sample: &&Sample| sample.bytes / sample.messages >= LARGE_BYTES;
    let beta_ns = quartile(samples.iter().filter(is_large).map(slope).collect()).unwrap_or(0.0);
    Some(Network { alpha_us: alpha_ns / 1e3, beta_us_per_word: beta_ns * 8.0 / 1e3, samples: samples.len() as u64 })
}

fn quartile(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 4).copied()
}

fn timed(file: &RankFile) -> impl Iterator<Item = Timed<'_>> {
    let mut now_ns = file.begin_ns;
    file.calls.iter().take(CALLS_MAX).map(move |call| {
        let begin_ns = now_ns.saturating_add(call.compute_ns + call.io_ns + call.wait_ns);
        now_ns = begin_ns.saturating_add(call.call_ns);
        Timed { kind: &file.kinds[call.kind as usize], call, begin_ns, end_ns: now_ns }
    })
}

/// From the collectives in which all of a group were seen.
fn together(files: &[RankFile]) -> Vec<Sample> {
    let mut found: HashMap<&[u32], Vec<Vec<(&Collective<Vec<u32>>, u64)>>> = HashMap::new();
    for file in files {
        let mut own: HashMap<&[u32], Vec<(&Collective<Vec<u32>>, u64)>> = HashMap::new();
        for timed in timed(file) {
            if let [Event::Together(collective)] = timed.kind.events.as_slice() {
                // Making a communicator takes more than its messages.
                if !timed.kind.name.starts_with("MPI_Comm") && !timed.kind.name.contains("_create") {
                    own.entry(&collective.among).or_default().push((collective, timed.call.call_ns));
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
            let ns = each.iter().map(|calls| calls[index].1).min().unwrap_or(0);
            let (messages, bytes) = collectives::longest_path(collective.what, group.len() as u64, collective.bytes);
            samples.push(Sample { messages, bytes, ns });
        }
    }
    samples
}

/// From messages for which the receiver waited: the k-th message to a task is its k-th one from there.
fn to_and_fro(files: &[RankFile]) -> Vec<Sample> {
    let mut sent: HashMap<(u32, u32), Vec<(u64, u64)>> = HashMap::new();
    let mut received: HashMap<(u32, u32), Vec<Timed<'_>>> = HashMap::new();
    for file in files {
        for timed in timed(file) {
            for event in &timed.kind.events {
                match event {
                    Event::Send { to, bytes } => {
                        sent.entry((file.rank, *to)).or_default().push((timed.begin_ns, *bytes));
                    }
                    Event::Receive { from, .. } => received.entry((*from, file.rank)).or_default().push(timed),
                    _ => {}
                }
            }
        }
    }
    let mut samples = Vec::new();
    for (pair, sent) in sent {
        for ((sent_ns, bytes), receive) in sent.iter().zip(received.get(&pair).map_or(&[][..], Vec::as_slice)) {
            let is_alone = receive.kind.events.len() == 1;
            if is_alone && receive.begin_ns < *sent_ns && *sent_ns < receive.end_ns {
                samples.push(Sample { messages: 1, bytes: *bytes, ns: receive.end_ns - sent_ns });
            }
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::What;

    fn file(rank: u32, kinds: Vec<Kind>, calls: &[(u32, u64, u64)]) -> RankFile {
        let call = |(kind, compute_ns, call_ns): &(u32, u64, u64)| Call {
            kind: *kind,
            compute_ns: *compute_ns,
            call_ns: *call_ns,
            ..Call::default()
        };
        RankFile { rank, ranks: 2, kinds, calls: calls.iter().map(call).collect(), ..RankFile::default() }
    }

    fn kind(event: Event<Vec<u32>>) -> Kind {
        Kind { name: "MPI_X".into(), events: vec![event] }
    }

    #[test]
    fn the_last_one_to_come_tells_what_a_barrier_costs() {
        let barrier =
            || vec![kind(Event::Together(Collective { what: What::Barrier, among: vec![0, 1], root: None, bytes: 0 }))];
        let early = file(0, barrier(), &[(0, 100, 5_000), (0, 100, 6_000)]);
        let late = file(1, barrier(), &[(0, 5_000, 900), (0, 6_000, 1_100)]);
        let network = fit(&[early, late]).unwrap();
        assert_eq!((network.alpha_us, network.beta_us_per_word, network.samples), (0.9, 0.0, 2));
        assert_eq!(fit(&[file(0, barrier(), &[(0, 1, 1)])]), None, "nobody to talk to");
    }

    #[test]
    fn messages_that_were_waited_for_give_both_costs() {
        let sizes = [8_u64, 80_000];
        let sends = sizes.map(|bytes| kind(Event::Send { to: 1, bytes })).to_vec();
        let receives = sizes.map(|bytes| kind(Event::Receive { from: 0, bytes })).to_vec();
        // At 1000 and at 12,000 ns; the receiver waits from 0 on, and from 3000 on.
        let sender = file(0, sends, &[(0, 1000, 10), (1, 10_990, 10)]);
        let receiver = file(1, receives, &[(0, 0, 3_000), (1, 0, 9_000 + 2_000 + 80_000)]);
        let network = fit(&[sender, receiver]).unwrap();
        assert_eq!((network.alpha_us, network.samples), (2.0, 2));
        assert!((network.beta_us_per_word - 0.008).abs() < 1e-9, "{network:?}");
    }
}
