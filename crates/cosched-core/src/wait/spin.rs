//! How long to spin for a message before yielding or blocking.
//!
//! Problem: spinning wastes the CPU, blocking costs the block and the wake-up, and the time until the next message
//! is unknown. Rule: begin with a little more than the latency of a message, which is the paper's spin time. Then keep
//! a histogram of the waits, with old ones decaying, and take the spin time `s` that would have cost least for them:
//! E[min(w, s)] + P(w > s) · C, where `w` is the length of a wait and `C` the cost of a block and its wake-up. A new
//! spin time is taken only if it is better by an eighth, so that noise does not make it flap.
//!
//! Whatever the distribution, the best `s` costs at most twice what one would pay with each wait known beforehand, because `s` = C
//! does so already. Source: Zhang et al. 2000, §2.3 (the start); Karlin, Li, Manasse, Owicki 1991, "Empirical studies of
//! competitive spinning" (the cost, and the fit to observed waits). Units: nanoseconds.

/// The first octave of the histogram begins at 2^9 = 512 ns.
const OCTAVE_FIRST: u32 = 9;
/// The number of octaves, up to 1.07 s.
const OCTAVES: usize = 21;
/// The parts of an octave, so that the spin time is right within an eighth.
const PARTS: usize = 8;
/// One bucket below the first octave, the parts of all octaves, and one above the last.
const BUCKETS: usize = OCTAVES * PARTS + 2;
/// The weight of one wait, so that halving keeps rare waits for a while.
const WEIGHT: u16 = 64;
/// When the total weight of the waits reaches this, all are halved: about 256 to 512 of them count.
const WEIGHT_MAX: u32 = 512 * WEIGHT as u32;
/// Spin times and blocks are counted as at most this, so that sums do not overflow.
const LONGEST_NS: u64 = 1 << (OCTAVE_FIRST + OCTAVES as u32);
/// The number of waits between two searches for a better spin time, and before the first.
const LOOK_EVERY: u32 = 16;

/// The parameters, known before the first wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinConfig {
    /// The spin time until enough waits were observed: a little above the latency of a message.
    pub start_ns: u64,
    /// The cost of a block and its wake-up.
    pub block_cost_ns: u64,
    /// The longest spin time; at most 1.07 s.
    pub max_ns: u64,
}

impl SpinConfig {
    /// For a live node: the latency of a message over TCP between two hosts and a block with its wake-up, both rounded up.
    pub const LIVE: Self = Self { start_ns: 50_000, block_cost_ns: 25_000, max_ns: 1_000_000 };
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The message arrived while the process spun.
    Spinning,
    /// The message arrived while the process was blocked, and woke it.
    Blocked,
    /// The process was blocked and continued without having been woken: what it waited for arrived in another way.
    TimedOut,
}

/// The spin time of one process or thread, adapted to its waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpinRule {
    config: SpinConfig,
    spin_ns: u64,
    until_look: u32,
    weight: u32,
    buckets: [u16; BUCKETS],
}

impl SpinRule {
    /// A rule without observed waits.
    #[must_use]
    pub const fn new(mut config: SpinConfig) -> Self {
        config.max_ns = least(config.max_ns, LONGEST_NS);
        config.block_cost_ns = least(config.block_cost_ns, LONGEST_NS);
        let spin_ns = least(config.start_ns, config.max_ns);
        Self { config, spin_ns, until_look: LOOK_EVERY, weight: 0, buckets: [0; BUCKETS] }
    }

    /// The spin time in force.
    #[must_use]
    pub const fn spin_ns(&self) -> u64 {
        self.spin_ns
    }

    /// A wait of `waited_ns` is over.
    pub fn waited(&mut self, waited_ns: u64, ended: Ended) {
        // The measured wait of a process that was woken includes its wake-up; the message arrived before that.
        let wake_ns = if ended == Ended::Blocked { self.config.block_cost_ns / 2 } else { 0 };
        self.buckets[bucket_of(waited_ns.saturating_sub(wake_ns))] += WEIGHT;
        self.weight += u32::from(WEIGHT);
        if self.weight >= WEIGHT_MAX {
            self.fade();
        }
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = LOOK_EVERY;
            self.look();
        }
    }

    fn fade(&mut self) {
        self.weight = 0;
        for bucket in &mut self.buckets {
            *bucket /= 2;
            self.weight += u32::from(*bucket);
        }
    }

    /// Takes the spin time that would have cost least, if it is better by an eighth than the one in force.
    fn look(&mut self) {
        let cost_now = self.cost(self.spin_ns);
        let (best_ns, cost_best) = self.cheapest();
        if cost_best + cost_best / 8 < cost_now {
            self.spin_ns = best_ns;
        }
    }

    /// The cheapest spin time, out of all ends of buckets up to the maximum, and its cost; of equals the shortest.
    fn cheapest(&self) -> (u64, u64) {
        let block_ns = self.config.block_cost_ns;
        let mut best = (0, u64::from(self.weight) * block_ns);
        let (mut spun, mut longer) = (0, u64::from(self.weight));
        for (index, &weight) in self.buckets.iter().enumerate() {
            let end_ns = end_of(index);
            if longer == 0 || end_ns > self.config.max_ns {
                break;
            }
            if weight == 0 {
                continue;
            }
            longer -= u64::from(weight);
            spun += u64::from(weight) * middle_of(index);
            let cost = spun + longer * (end_ns + block_ns);
            if cost < best.1 {
                best = (end_ns, cost);
            }
        }
        best
    }

    /// The cost of the observed waits with this spin time, times their weight.
    fn cost(&self, spin_ns: u64) -> u64 {
        let mut cost = 0;
        for (index, &weight) in self.buckets.iter().enumerate().filter(|(_, weight)| **weight > 0) {
            let one = if end_of(index) <= spin_ns { middle_of(index) } else { spin_ns + self.config.block_cost_ns };
            cost += u64::from(weight) * one;
        }
        cost
    }
}

const fn least(a: u64, b: u64) -> u64 {
    if a < b { a } else { b }
}

fn bucket_of(wait_ns: u64) -> usize {
    let octave = (wait_ns | 1).ilog2();
    if octave < OCTAVE_FIRST {
        return 0;
    }
    let part = (wait_ns >> (octave - PARTS.ilog2())) as usize % PARTS;
    let index = 1 + (octave - OCTAVE_FIRST) as usize * PARTS + part;
    index.min(BUCKETS - 1)
}

/// The end (exclusive) of a bucket, in nanoseconds.
const fn end_of(index: usize) -> u64 {
    if index >= BUCKETS - 1 {
        return u64::MAX;
    }
    // The end of a bucket is the beginning of the next one.
    let (octave, part) = (index / PARTS, index % PARTS);
    ((PARTS + part) as u64) << (octave as u32 + OCTAVE_FIRST - PARTS.ilog2())
}

const fn middle_of(index: usize) -> u64 {
    let begin_ns = if index == 0 { 0 } else { end_of(index - 1) };
    begin_ns.midpoint(end_of(index))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const CONFIG: SpinConfig = SpinConfig { start_ns: 50_000, block_cost_ns: 25_000, max_ns: 1_000_000 };

    fn after(waits: impl IntoIterator<Item = u64>) -> SpinRule {
        let mut rule = SpinRule::new(CONFIG);
        waits.into_iter().for_each(|wait_ns| rule.waited(wait_ns, Ended::Spinning));
        rule
    }

    /// E[min(w, s)] + P(w > s) · C over the waits themselves, without buckets; times their number.
    fn true_cost(waits: &[u64], spin_ns: u64) -> u64 {
        waits.iter().map(|&w| if w <= spin_ns { w } else { spin_ns + CONFIG.block_cost_ns }).sum()
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        for index in 0..BUCKETS - 1 {
            assert_eq!(bucket_of(end_of(index) - 1), index);
            assert_eq!(bucket_of(end_of(index)), index + 1);
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn starts_with_the_papers_rule_and_keeps_it_until_it_has_seen_enough() {
        assert_eq!(after([]).spin_ns(), 50_000);
        assert_eq!(after([900_000; LOOK_EVERY as usize - 1]).spin_ns(), 50_000);
        assert_eq!(SpinRule::new(SpinConfig { max_ns: 7, ..CONFIG }).spin_ns(), 7);
    }

    #[test]
    fn long_waits_are_not_worth_a_spin_and_short_ones_are() {
        assert_eq!(after([5_000_000; 32]).spin_ns(), 0);
        let rule = after([5_000_000; 32].into_iter().chain([12_000; 600]));
        assert!((12_000..14_000).contains(&rule.spin_ns()), "{}", rule.spin_ns());
    }

    #[test]
    fn of_two_kinds_of_waits_it_spins_through_the_short_ones() {
        let rule = after((0..400).map(|i| if i % 4 == 0 { 3_000_000 } else { 8_000 }));
        assert!((8_000..=9_216).contains(&rule.spin_ns()), "{}", rule.spin_ns());
    }

    #[test]
    fn equal_costs_do_not_make_it_flap() {
        // Both cost the same: to spin 25 µs through each wait, or to block at once.
        let mut rule = after([]);
        let mut changes = 0;
        for i in 0..10_000_u64 {
            let before = rule.spin_ns();
            rule.waited(24_000 + (i * 7_919) % 2_500, Ended::Spinning);
            changes += u32::from(rule.spin_ns() != before);
        }
        assert!(changes <= 1, "{changes}");
    }

    #[test]
    fn a_wake_up_is_not_part_of_the_wait() {
        let (mut woken, mut spun) = (SpinRule::new(CONFIG), SpinRule::new(CONFIG));
        woken.waited(30_000, Ended::Blocked);
        spun.waited(30_000 - CONFIG.block_cost_ns / 2, Ended::Spinning);
        assert_eq!(woken, spun);
    }

    fn lengths() -> impl Strategy<Value = u64> {
        prop_oneof![0..2_000_u64, 0..100_000_u64, 0..3_000_000_u64, any::<u64>()]
    }

    fn ends() -> impl Strategy<Value = Ended> {
        prop_oneof![Just(Ended::Spinning), Just(Ended::Blocked), Just(Ended::TimedOut)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn never_above_the_maximum(
            waits in prop::collection::vec((lengths(), ends()), 0..2_000), start_ns: u64, max_ns in 0..2_000_000_u64,
            block_cost_ns in 0..10_000_000_u64,
        ) {
            let mut rule = SpinRule::new(SpinConfig { start_ns, block_cost_ns, max_ns });
            for (wait_ns, ended) in waits {
                rule.waited(wait_ns, ended);
                prop_assert!(rule.spin_ns() <= max_ns);
            }
        }

        /// The waits fit into the rule's memory, so their own cost is the oracle. An eighth is allowed for the buckets
        /// and an eighth for the inertia.
        #[test]
        fn costs_at_most_a_quarter_more_than_the_best(
            kinds in prop::collection::vec(600..4_000_000_u64, 1..6), picks in prop::collection::vec(0..6_usize, 160..=160),
        ) {
            let waits: Vec<u64> = picks.iter().map(|pick| kinds[pick % kinds.len()]).collect();
            let rule = after(waits.iter().copied());
            let best = waits.iter().copied().filter(|w| *w <= CONFIG.max_ns).chain([0]);
            let best = best.map(|spin_ns| true_cost(&waits, spin_ns)).min().unwrap_or(0);
            let cost = true_cost(&waits, rule.spin_ns());
            prop_assert!(cost * 100 <= best * 127, "{} instead of {best} with {}", cost, rule.spin_ns());
        }

        #[test]
        fn follows_a_change_of_phase_within_a_thousand_waits(
            before in prop::collection::vec(lengths(), 0..3_000), short_ns in 1_000..15_000_u64,
        ) {
            let mut rule = after(before.iter().copied());
            (0..1_000).for_each(|_| rule.waited(short_ns, Ended::Spinning));
            prop_assert!(rule.spin_ns() >= short_ns, "{}", rule.spin_ns());
            (0..1_000).for_each(|_| rule.waited(10_000_000, Ended::Blocked));
            prop_assert!(rule.spin_ns() <= CONFIG.block_cost_ns / 4, "{}", rule.spin_ns());
        }

        #[test]
        fn costs_at_most_a_little_over_twice_what_an_oracle_pays(
            waits in prop::collection::vec(600..4_000_000_u64, 160..=160),
        ) {
            let rule = after(waits.iter().copied());
            let oracle: u64 = waits.iter().map(|&w| w.min(CONFIG.block_cost_ns)).sum();
            prop_assert!(true_cost(&waits, rule.spin_ns()) * 100 <= oracle * 255);
        }
    }
}
