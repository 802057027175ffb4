//! When nodes fail and are repaired, whatever runs on them.

use crate::draw::Draws;
use crate::workload::outages::Outage;
use std::collections::BTreeSet;

/// The longest time to a failure or a repair, µs (32 years).
const TIME_US_MAX: f64 = 1e15;

/// When nodes are down.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// At these times; of one node they do not overlap.
    Listed(Vec<Outage>),
    /// At random times.
    Drawn(Drawn),
}

/// Each node by itself fails after a Weibull time and is repaired after an exponential one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// The mean time from a repair to the next failure.
    pub mtbf_us: f64,
    /// The mean time of a repair.
    pub mttr_us: f64,
    /// The Weibull distribution's shape: 1 is exponential; below 1, failures are the likelier the shorter a node is up.
    pub shape: f64,
    /// Draws the times.
    pub seed: u64,
}

impl Drawn {
    /// The outage number `count` of a node that is up from `from_us` on.
    fn outage(&self, node: u32, count: u64, from_us: u64) -> Outage {
        let draws = Draws::new(self.seed, node.into(), u64::MAX);
        let exponential = |kind: u64| -libm::log(1.0 - draws.unit(count, kind));
        // The mean of a Weibull time of scale 1 is Γ(1 + 1 / shape).
        let scale = self.mtbf_us / libm::tgamma(1.0 + 1.0 / self.shape);
        let us = |time: f64| time.clamp(1.0, TIME_US_MAX).round() as u64;
        let down_us = from_us.saturating_add(us(scale * libm::pow(exponential(0), 1.0 / self.shape)));
        Outage { node, down_us, up_us: down_us.saturating_add(us(self.mttr_us * exponential(1))) }
    }
}

/// The outages of all nodes, by their times.
#[derive(Debug)]
pub(super) struct Outages {
    /// The next ones: failure, node, repair.
    coming: BTreeSet<(u64, u32, u64)>,
    /// With how many outages each node has had.
    drawn: Option<(Drawn, Vec<u64>)>,
}

impl Outages {
    /// Of nodes that are up at `begin_us`.
    pub(super) fn new(source: &Source, nodes: u32, begin_us: u64) -> Outages {
        let key = |outage: Outage| (outage.down_us, outage.node, outage.up_us);
        match source {
            Source::Listed(outages) => Outages { coming: outages.iter().copied().map(key).collect(), drawn: None },
            Source::Drawn(drawn) => Outages {
                coming: (0..nodes).map(|node| key(drawn.outage(node, 0, begin_us))).collect(),
                drawn: Some((*drawn, vec![0; nodes as usize])),
            },
        }
    }

    pub(super) fn next_us(&self) -> Option<u64> {
        self.coming.first().map(|(down_us, ..)| *down_us)
    }

    /// The next outage that begins until `now_us`.
    pub(super) fn pop(&mut self, now_us: u64) -> Option<Outage> {
        let (down_us, node, up_us) = self.coming.first().copied().filter(|(down_us, ..)| *down_us <= now_us)?;
        self.coming.pop_first();
        if let Some((drawn, counts)) = &mut self.drawn {
            let count = &mut counts[node as usize];
            *count += 1;
            let Outage { down_us, up_us, .. } = drawn.outage(node, *count, up_us);
            self.coming.insert((down_us, node, up_us));
        }
        Some(Outage { node, down_us, up_us })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20,000 times each; the standard error of a mean is below 1.5 % of it for all shapes here.
    #[test]
    fn means_are_those_that_were_asked_for() {
        for (shape, seed) in [(0.7, 1), (1.0, 2), (3.0, 3)] {
            let drawn = Drawn { mtbf_us: 5e9, mttr_us: 2e8, shape, seed };
            let (mut up, mut down, mut from) = (0.0, 0.0, 7);
            for count in 0..20_000 {
                let outage = drawn.outage(4, count, from);
                up += (outage.down_us - from) as f64 / 20_000.0;
                down += (outage.up_us - outage.down_us) as f64 / 20_000.0;
                from = outage.up_us;
            }
            assert!((up / 5e9 - 1.0).abs() < 0.05 && (down / 2e8 - 1.0).abs() < 0.05, "{shape}: {up} {down}");
        }
    }

    #[test]
    fn outages_come_by_time_and_one_after_the_other_on_a_node() {
        let drawn = Drawn { mtbf_us: 1e6, mttr_us: 1e6, shape: 1.0, seed: 5 };
        let mut outages = Outages::new(&Source::Drawn(drawn), 3, 10);
        let all: Vec<Outage> = (0..300).map_while(|_| outages.next_us().and_then(|time| outages.pop(time))).collect();
        assert!(all.len() == 300 && all.is_sorted_by_key(|outage| outage.down_us));
        for node in 0..3 {
            let mut up_us = 10;
            for outage in all.iter().filter(|outage| outage.node == node) {
                assert!(outage.down_us > up_us && outage.up_us > outage.down_us);
                up_us = outage.up_us;
            }
        }
        assert_eq!(outages.pop(all[299].down_us), None);
    }
}
