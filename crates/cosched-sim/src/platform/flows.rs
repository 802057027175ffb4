//! Flows that share links: max-min fairness by progressive filling, and when each flow ends.
//!
//! A flow's rate grows with all others', in proportion to 1 / penalty, until a link on its way is full or its own bound is
//! reached. When a flow starts or ends, only those that share links with it, directly or by others, get new rates.

use super::Uses;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Rates that differ by less are the same.
const EQUAL: f64 = 1.0 + 1e-12;

/// What a flow needs of the network.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The shared links of its way.
    pub(crate) uses: Uses,
    /// Among flows with the same bottleneck, rates are as 1 / penalty.
    pub(crate) penalty: f64,
    /// Its highest rate, bytes/s.
    pub(crate) bound: f64,
    /// The part of its rate that is payload.
    pub(crate) factor: f64,
    /// Its size.
    pub(crate) bytes: f64,
}

#[derive(Debug)]
struct Flow<T> {
    of: Wanted,
    what: T,
    /// Bytes/s; 0 before the first sharing.
    rate: f64,
    /// Payload that was left at `since_ns`.
    left: f64,
    since_ns: u64,
    /// `u64::MAX` before the first sharing.
    ends_ns: u64,
    /// Scratch of a sharing: in which one it has been reached, and whether its rate is found.
    reached: u64,
    fixed: bool,
}

#[derive(Debug)]
struct Line {
    capacity: f64,
    /// The flows on it.
    flows: Vec<u32>,
    /// Scratch of a sharing.
    reached: u64,
    left: f64,
    /// Σ weight / penalty of flows whose rate is not found yet, and their number.
    demand: f64,
    open: u32,
}

/// All flows, with the links that they share. `T` names a flow to its owner.
#[derive(Debug)]
pub(crate) struct Flows<T> {
    lines: Vec<Line>,
    /// Ended ones leave holes, which are filled again.
    flows: Vec<Option<Flow<T>>>,
    holes: Vec<u32>,
    /// When flows end, soonest first.
    ends: BTreeSet<(u64, u32)>,
    /// Links and new flows whose rates are to be found again.
    changed: Vec<u32>,
    fresh: Vec<u32>,
    sharing: u64,
}

impl<T> Flows<T> {
    /// On links of these capacities, bytes/s.
    pub(crate) fn new(capacities: impl IntoIterator<Item = f64>) -> Flows<T> {
        let line = |capacity| Line { capacity, flows: Vec::new(), reached: 0, left: 0.0, demand: 0.0, open: 0 };
        Flows {
            lines: capacities.into_iter().map(line).collect(),
            flows: Vec::new(),
            holes: Vec::new(),
            ends: BTreeSet::new(),
            changed: Vec::new(),
            fresh: Vec::new(),
            sharing: 0,
        }
    }

    /// A flow starts; it has a rate after [`Flows::share`].
    pub(crate) fn start(&mut self, now_ns: u64, of: Wanted, what: T) {
        let place = self.holes.pop().unwrap_or_else(|| {
            self.flows.push(None);
            self.flows.len() as u32 - 1
        });
        for (link, _) in &of.uses {
            self.lines[*link as usize].flows.push(place);
        }
        let left = of.bytes;
        let flow = Flow { of, what, rate: 0.0, left, since_ns: now_ns, ends_ns: u64::MAX, reached: 0, fixed: false };
        self.flows[place as usize] = Some(flow);
        self.fresh.push(place);
    }

    /// When the next flow ends.
    pub(crate) fn next_end_ns(&self) -> Option<u64> {
        self.ends.first().map(|(ns, _)| *ns)
    }

    /// Takes a flow that has ended by now.
    pub(crate) fn ended(&mut self, now_ns: u64) -> Option<T> {
        let (_, place) = *self.ends.first().filter(|(ns, _)| *ns <= now_ns)?;
        self.ends.pop_first();
        let flow = self.flows[place as usize].take()?;
        for (link, _) in &flow.of.uses {
            let flows = &mut self.lines[*link as usize].flows;
            flows.retain(|other| *other != place);
            self.changed.push(*link);
        }
        self.holes.push(place);
        Some(flow.what)
    }

    /// Finds the rates of all flows that are concerned by starts and ends since the last call.
    pub(crate) fn share(&mut self, now_ns: u64) {
        self.sharing += 1;
        let (flows, lines) = self.concerned();
        let mut full: BinaryHeap<Reverse<(u64, bool, u32)>> = BinaryHeap::new();
        for line in &lines {
            let state = &self.lines[*line as usize];
            full.push(Reverse((level(state.left / state.demand), true, *line)));
        }
        for place in &flows {
            let Some(flow) = &self.flows[*place as usize] else { continue };
            full.push(Reverse((level(flow.of.bound * flow.of.penalty), false, *place)));
        }
        // The level is rate × penalty. It never falls for a link as others' rates are found, so an old one is looked at again.
        while let Some(Reverse((at, is_line, index))) = full.pop() {
            if !is_line {
                self.fix(index, f64::from_bits(at), now_ns);
                continue;
            }
            let line = &self.lines[index as usize];
            if line.open == 0 {
                continue;
            }
            // Rounding must not take what was there.
            let now_at = (line.left / line.demand).max(f64::from_bits(at));
            if now_at > f64::from_bits(at) * EQUAL {
                full.push(Reverse((level(now_at), true, index)));
                continue;
            }
            for place in line.flows.clone() {
                self.fix(place, now_at, now_ns);
            }
        }
    }

    /// The flows and links that are connected to what changed, with the links' scratch filled.
    fn concerned(&mut self) -> (Vec<u32>, Vec<u32>) {
        let (mut flows, mut lines) = (Vec::new(), Vec::new());
        let mut new = std::mem::take(&mut self.fresh);
        let mut waiting = std::mem::take(&mut self.changed);
        loop {
            for place in new.drain(..) {
                let Some(flow) = self.flows[place as usize].as_mut() else { continue };
                if flow.reached != self.sharing {
                    (flow.reached, flow.fixed) = (self.sharing, false);
                    flows.push(place);
                    waiting.extend(flow.of.uses.iter().map(|(link, _)| *link));
                }
            }
            let Some(index) = waiting.pop() else { break };
            let line = &mut self.lines[index as usize];
            if line.reached != self.sharing {
                (line.reached, line.left, line.demand, line.open) = (self.sharing, line.capacity, 0.0, 0);
                new.extend(&line.flows);
                lines.push(index);
            }
        }
        // The order decides how sums are rounded: it must not depend on the way here.
        flows.sort_unstable();
        lines.sort_unstable();
        for place in &flows {
            let Some(flow) = &self.flows[*place as usize] else { continue };
            for (link, weight) in &flow.of.uses {
                let line = &mut self.lines[*link as usize];
                line.demand += weight / flow.of.penalty;
                line.open += 1;
            }
        }
        (flows, lines)
    }

    /// Gives a flow its rate, unless it has been found.
    fn fix(&mut self, place: u32, at: f64, now_ns: u64) {
        let Some(flow) = self.flows[place as usize].as_mut() else { return };
        if std::mem::replace(&mut flow.fixed, true) {
            return;
        }
        let rate = (at / flow.of.penalty).min(flow.of.bound);
        for (link, weight) in &flow.of.uses {
            let line = &mut self.lines[*link as usize];
            line.left = (line.left - rate * weight).max(0.0);
            line.demand -= weight / flow.of.penalty;
            line.open -= 1;
        }
        if flow.rate == rate {
            return;
        }
        flow.left -= flow.rate * flow.of.factor * (now_ns - flow.since_ns) as f64 / 1e9;
        (flow.rate, flow.since_ns) = (rate, now_ns);
        let takes_ns = (flow.left.max(0.0) / (rate * flow.of.factor) * 1e9).ceil();
        self.ends.remove(&(flow.ends_ns, place));
        // The cast saturates.
        flow.ends_ns = now_ns.saturating_add(takes_ns as u64);
        self.ends.insert((flow.ends_ns, place));
    }
}

/// Orders levels, which are not negative.
fn level(at: f64) -> u64 {
    if at.is_nan() { u64::MAX >> 1 } else { at.max(0.0).to_bits() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Spec = (Vec<(u32, f64)>, f64, f64);

    /// Capacities of six links, and flows: uses, penalty, bound.
    fn any_case() -> impl Strategy<Value = (Vec<f64>, Vec<Spec>)> {
        let uses = prop::collection::btree_map(0..6_u32, prop_oneof![Just(1.0), Just(0.05)], 0..4);
        let flow = (uses, 0.001..10.0_f64, prop_oneof![Just(1e9), 1.0..100.0_f64]);
        let flow = flow.prop_map(|(uses, penalty, bound)| (uses.into_iter().collect(), penalty, bound));
        (prop::collection::vec(1.0..1000.0_f64, 6), prop::collection::vec(flow, 1..25))
    }

    fn wanted((uses, penalty, bound): &Spec, bytes: f64) -> Wanted {
        Wanted { uses: uses.clone(), penalty: *penalty, bound: *bound, factor: 1.0, bytes }
    }

    fn rates(flows: &Flows<usize>) -> Vec<(usize, f64)> {
        let mut all: Vec<_> = flows.flows.iter().flatten().map(|flow| (flow.what, flow.rate)).collect();
        all.sort_by_key(|(what, _)| *what);
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// No link is above its capacity, and no flow could have more: its bound is reached, or a full link is on its way, on which
        /// no flow has more for its penalty.
        #[test]
        fn rates_are_max_min_fair((capacities, specs) in any_case()) {
            let mut flows = Flows::new(capacities.iter().copied());
            for (number, spec) in specs.iter().enumerate() {
                flows.start(0, wanted(spec, 1e6), number);
            }
            flows.share(0);
            let rates = rates(&flows);
            let weight = |number: usize, link: u32| specs[number].0.iter().find(|(of, _)| *of == link).map_or(0.0, |use_of| use_of.1);
            let load = |link: u32| rates.iter().map(|(number, rate)| rate * weight(*number, link)).sum::<f64>();
            for link in 0..6 {
                prop_assert!(load(link) <= capacities[link as usize] * (1.0 + 1e-9), "link {link}: {}", load(link));
            }
            for (number, rate) in &rates {
                let (uses, penalty, bound) = &specs[*number];
                let largest = |link: u32| {
                    let of = rates.iter().filter(|(other, _)| weight(*other, link) > 0.0);
                    of.map(|(other, rate)| rate * specs[*other].1).fold(0.0, f64::max)
                };
                let is_held = |link: u32| {
                    load(link) >= capacities[link as usize] * (1.0 - 1e-9) && rate * penalty >= largest(link) * (1.0 - 1e-9)
                };
                prop_assert!(*rate > 0.0 && *rate <= bound * (1.0 + 1e-9));
                prop_assert!(*rate >= bound * (1.0 - 1e-9) || uses.iter().any(|(link, _)| is_held(*link)), "flow {number}: {rate}");
            }
        }

        /// After any starts and ends rates are those of a new sharing of what is left, and all bytes have been sent.
        #[test]
        fn a_part_is_shared_as_the_whole((capacities, specs) in any_case(), sizes in prop::collection::vec(1.0..5000.0_f64, 25)) {
            let mut flows = Flows::new(capacities.iter().copied());
            let mut now_ns = 0;
            let mut ended = 0;
            for number in 0..specs.len() * 3 {
                if let Some((spec, size)) = specs.get(number).zip(sizes.get(number)) {
                    flows.start(now_ns, wanted(spec, *size), number);
                    flows.share(now_ns);
                }
                if let Some(next_ns) = flows.next_end_ns().filter(|_| number % 3 != 0) {
                    now_ns = next_ns;
                    while flows.ended(now_ns).is_some() {
                        ended += 1;
                    }
                    flows.share(now_ns);
                }
                let mut whole = Flows::new(capacities.iter().copied());
                let left = rates(&flows);
                left.iter().for_each(|(number, _)| whole.start(0, wanted(&specs[*number], 1.0), *number));
                whole.share(0);
                for ((_, part), (_, all)) in left.iter().zip(super::tests::rates(&whole)) {
                    prop_assert!((part / all - 1.0).abs() < 1e-9, "{part} {all}");
                }
            }
            prop_assert_eq!(ended + rates(&flows).len(), specs.len());
        }
    }
}
