//! What is under way on a platform: flows, and the order in which messages are received.

use crate::params::ParamsError;
use crate::platform::{Flows, Platform, Wanted};
use std::collections::{BTreeMap, VecDeque};

/// From one task of a job to another: job, sender, receiver.
pub(super) type Pair = [u32; 3];

/// A message under way.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) sent_ns: u64,
    pub(super) bytes: u64,
    /// Until its latency is over.
    pub(super) wanted: Option<Wanted>,
    pub(super) arrived: bool,
}

/// The messages of a pair of tasks that are under way, in the order in which they were sent and will be received.
#[derive(Debug, Default)]
struct Stream {
    /// The number of the first.
    first: u64,
    transfers: VecDeque<Transfer>,
}

/// All messages under way.
#[derive(Debug)]
pub(super) struct Traffic<'a> {
    platform: &'a Platform,
    pub(super) flows: Flows<(Pair, u64)>,
    streams: BTreeMap<Pair, Stream>,
    /// Rates are to be found at the end of this instant.
    pub(super) sharing: bool,
    /// The event that counts for the next end of a flow: its time and its number.
    pub(super) next: Option<u64>,
    pub(super) events: u64,
}

impl<'a> Traffic<'a> {
    /// For a machine of this many nodes.
    pub(super) fn new(platform: &'a Platform, nodes: u32) -> Result<Traffic<'a>, ParamsError> {
        let hosts = platform.hosts().len();
        if nodes as usize > hosts {
            let what = format!("{nodes} nodes on a platform of {hosts} hosts");
            return Err(ParamsError::new(what, "each node is a host", "give fewer nodes, or a larger platform"));
        }
        let flows = platform.flows();
        Ok(Traffic { platform, flows, streams: BTreeMap::new(), sharing: false, next: None, events: 0 })
    }

    /// The latency of a message between nodes, and what its flow wants.
    pub(super) fn message(&self, from: u32, to: u32, bytes: u64) -> (u64, Wanted) {
        self.platform.message(from, to, bytes)
    }

    /// A message is sent; its number in its stream.
    pub(super) fn sent(&mut self, pair: Pair, transfer: Transfer) -> u64 {
        let stream = self.streams.entry(pair).or_default();
        stream.transfers.push_back(transfer);
        stream.first + stream.transfers.len() as u64 - 1
    }

    /// How long this computation takes on a node; times are those of the first host.
    pub(super) fn paced_ns(&self, node: u32, ns: u64) -> u64 {
        let hosts = self.platform.hosts();
        let (first, own) = (hosts[0].flops, hosts[node as usize].flops);
        if first == own { ns } else { (ns as f64 * (first / own)).round() as u64 }
    }

    pub(super) fn transfer(&mut self, pair: Pair, number: u64) -> Option<&mut Transfer> {
        let stream = self.streams.get_mut(&pair)?;
        stream.transfers.get_mut((number - stream.first) as usize)
    }

    /// A message has arrived: those that can be received now, as none before them is missing.
    pub(super) fn arrived(&mut self, pair: Pair, number: u64) -> Vec<Transfer> {
        if let Some(transfer) = self.transfer(pair, number) {
            transfer.arrived = true;
        }
        let mut ready = Vec::new();
        let Some(stream) = self.streams.get_mut(&pair) else { return ready };
        while stream.transfers.front().is_some_and(|transfer| transfer.arrived) {
            ready.extend(stream.transfers.pop_front());
            stream.first += 1;
        }
        if stream.transfers.is_empty() {
            self.streams.remove(&pair);
        }
        ready
    }
}
