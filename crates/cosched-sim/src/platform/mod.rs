//! The machine of today: hosts with speeds, links with bandwidth and latency, and which links a message takes.
//!
//! A platform is a tree of zones, each with wires of one kind. Messages are flows: they wait for the latency of their way, then share
//! its links with the others (`flows`). The model is that of Casanova and Marchal 2002 (CM02), with the corrections of Velho and
//! Legrand 2009 (LV08) by default. docs/platforms.md describes both readers.

mod build;
mod error;
mod flows;
mod limits;
mod regular;
#[cfg(test)]
mod tests;
mod toml;
mod units;
mod wires;
mod xml;

pub use error::PlatformError;
pub use toml::read_toml;
pub use xml::read_xml;

pub(crate) use flows::{Flows, Wanted};
use wires::Zone;

/// The links of a way that flows share, and how much of each a flow takes of its rate.
pub(crate) type Uses = Vec<(u32, f64)>;

/// A reverse flow of acknowledgements takes this part of the rate.
const ACKNOWLEDGES: f64 = 0.05;

/// Lower penalties count as this, in s: ways without latency.
const PENALTY_MIN: f64 = 1e-6;

/// Ways cannot fail.
const TRIED: &str = "all ways were tried when the platform was read";

/// How TCP is approximated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkModel {
    /// A way's latency is multiplied by this (slow start).
    pub latency_factor: f64,
    /// This part of a flow's rate is payload.
    pub bandwidth_factor: f64,
    /// Flows share a link in inverse proportion to latency + Σ `weight_bytes` / bandwidth of their ways.
    pub weight_bytes: f64,
    /// The largest window, in bytes: a flow's rate is at most window / (2 · latency); 0: none.
    pub window_bytes: f64,
    /// Whether acknowledgements take 5 % of a flow's rate on the way back.
    pub crosstraffic: bool,
}

impl NetworkModel {
    /// Without corrections.
    pub const CM02: NetworkModel = NetworkModel {
        latency_factor: 1.0,
        bandwidth_factor: 1.0,
        weight_bytes: 0.0,
        window_bytes: 4_194_304.0,
        crosstraffic: true,
    };

    /// Fitted to a simulator of packets.
    pub const LV08: NetworkModel =
        NetworkModel { latency_factor: 13.01, bandwidth_factor: 0.97, weight_bytes: 20_537.0, ..NetworkModel::CM02 };

    /// The highest rate of a flow by its window.
    fn window(&self, latency_s: f64) -> f64 {
        let bounded = self.window_bytes > 0.0 && latency_s > 0.0;
        if bounded { self.window_bytes / (2.0 * latency_s) } else { f64::INFINITY }
    }
}

/// A host: a node of the simulated machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The speed of one of its CPUs, flop/s.
    pub flops: f64,
    /// Its CPUs.
    pub cores: u32,
    point: u32,
    loopback: u32,
}

/// A link.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Link {
    bytes_per_s: f64,
    latency_s: f64,
    /// Each flow may have all of it.
    fat: bool,
}

/// A place in a zone: a host or a router.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    zone: u32,
    rank: u32,
}

/// A platform.
#[derive(Clone, Debug)]
pub struct Platform {
    hosts: Vec<Host>,
    links: Vec<Link>,
    points: Vec<Point>,
    zones: Vec<Zone>,
    /// How messages share it.
    pub network: NetworkModel,
}

impl Platform {
    /// The hosts, in the order of the file.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The number of its links; those with two directions count twice.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// Its shared links, without flows.
    pub(crate) fn flows<T>(&self) -> Flows<T> {
        Flows::new(self.links.iter().map(|link| link.bytes_per_s))
    }

    /// The latency of a message, in ns, and what its flow wants.
    pub(crate) fn message(&self, from: u32, to: u32, bytes: u64) -> (u64, Wanted) {
        let model = &self.network;
        let there = self.way(from, to);
        let of = |link: &u32| &self.links[*link as usize];
        let latency_s: f64 = there.iter().map(|link| of(link).latency_s).sum();
        let narrowest = there.iter().map(|link| of(link).bytes_per_s).fold(f64::INFINITY, f64::min);
        let weights: f64 = there.iter().map(|link| model.weight_bytes / of(link).bytes_per_s).sum();
        let back = if model.crosstraffic { self.way(to, from) } else { Vec::new() };
        let wanted = Wanted {
            uses: self.uses(&there, &back),
            penalty: (latency_s + weights).max(PENALTY_MIN),
            bound: narrowest.min(model.window(latency_s)),
            factor: model.bandwidth_factor,
            bytes: bytes as f64,
        };
        ((latency_s * model.latency_factor * 1e9).round() as u64, wanted)
    }

    /// The shared links there and back, each once.
    fn uses(&self, there: &[u32], back: &[u32]) -> Uses {
        let each = there.iter().map(|link| (*link, 1.0)).chain(back.iter().map(|link| (*link, ACKNOWLEDGES)));
        let mut uses: Uses = each.filter(|(link, _)| !self.links[*link as usize].fat).collect();
        uses.sort_by_key(|(link, _)| *link);
        uses.dedup_by(|(link, more), (before, all)| {
            let same = link == before;
            *all += if same { *more } else { 0.0 };
            same
        });
        uses
    }

    /// What a message between the first `nodes` hosts takes at most while no other one flows: its latency, and for each byte, in ns.
    /// `shared`: also between tasks of one host.
    pub(crate) fn slowest(&self, nodes: u32, shared: bool) -> (f64, f64) {
        let (mut latency_s, mut narrowest) = (0.0_f64, f64::INFINITY);
        let mut takes = |way: &[u32]| {
            latency_s = latency_s.max(way.iter().map(|link| self.links[*link as usize].latency_s).sum());
            narrowest = way.iter().map(|link| self.links[*link as usize].bytes_per_s).fold(narrowest, f64::min);
        };
        let stands = self.stands(nodes as usize);
        for from in &stands {
            for to in &stands {
                takes(&self.longest(*from, *to).expect(TRIED));
            }
        }
        if shared {
            self.hosts.iter().take(nodes as usize).for_each(|host| takes(&[host.loopback]));
        }
        let model = &self.network;
        let byte_ns = 1e9 / (narrowest.min(model.window(latency_s)) * model.bandwidth_factor);
        (latency_s * model.latency_factor * 1e9, byte_ns)
    }

    /// How much slower the slowest of the first `nodes` hosts computes than the first host.
    pub(crate) fn slowness(&self, nodes: u32) -> f64 {
        let slowest = self.hosts.iter().take(nodes as usize).map(|host| host.flops).fold(f64::INFINITY, f64::min);
        (self.hosts[0].flops / slowest).max(1.0)
    }

    /// The links of a message's way.
    fn way(&self, from: u32, to: u32) -> Vec<u32> {
        let (a, b) = (&self.hosts[from as usize], &self.hosts[to as usize]);
        if from == to {
            return vec![a.loopback];
        }
        let mut way = Vec::new();
        self.join(a.point, b.point, [false; 2], &mut way).expect(TRIED);
        way
    }
}
