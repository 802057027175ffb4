//! The guarantees of the choice between gang and local, whatever a job does: no flapping, and no missed change either.

use cosched_core::{Auto, AutoConfig, Policy, Reason, Seen, Wait};
use proptest::prelude::*;
use proptest::test_runner::Config;

const MS: u64 = 1_000_000;

/// A job as the host would observe it in a window of 200 ms, half of which was its own.
fn seen(cpu_ms: u64, spin_ms: u64, block_ms: u64, hooked: bool, rivals: u32) -> Seen {
    Seen {
        interval_ns: 200 * MS,
        cpu_ns: cpu_ms * MS,
        offered_ns: 100 * MS,
        waits: 100,
        spin_ns: spin_ms.min(cpu_ms) * MS,
        block_ns: block_ms * MS,
        blocks: 0,
        hooked,
        rivals,
    }
}

fn any_seen() -> impl Strategy<Value = Seen> {
    (0..120_u64, 0..120_u64, 0..200_u64, any::<bool>(), 0..3_u32, 0..1000_u64).prop_map(
        |(cpu, spin, block, hooked, rivals, blocks)| Seen { blocks, ..seen(cpu, spin, block, hooked, rivals) },
    )
}

/// Windows, each with its number of repetitions.
fn phases() -> impl Strategy<Value = Vec<(Seen, usize)>> {
    prop::collection::vec((any_seen(), 1..200_usize), 1..60)
}

/// A hooked job that waits for a part of its time, under either policy, beside `rivals` other jobs.
fn steady(waits_percent: u64, policy: Policy, rivals: u32) -> Seen {
    let busy = 100 - waits_percent;
    match policy {
        Policy::Gang => seen(busy, 0, waits_percent, true, rivals),
        // The other jobs make it wait longer, and it uses all that it is offered, or all that it can.
        _ => seen(100.min(2 * busy), 0, waits_percent * 2 * u64::from(rivals), true, rivals),
    }
}

fn see(auto: &mut Auto, times: usize, seen: Seen) {
    (0..times).for_each(|_| {
        auto.see(&seen);
    });
}

proptest! {
    #![proptest_config(Config { cases: 200, failure_persistence: None, ..Config::default() })]

    #[test]
    fn changes_are_as_rare_as_is_stated(phases in phases(), min_s in 1..4_u64, doublings in 0..7_u32) {
        let (dwell_ns_min, dwell_ns_max) = (min_s * 1000 * MS, (min_s << doublings) * 1000 * MS);
        let mut auto = Auto::new(AutoConfig { dwell_ns_min, dwell_ns_max, ..AutoConfig::default() });
        let (mut changes, mut time_ns, mut since_ns) = (0, 0, u64::MAX);
        for (seen, times) in phases {
            for _ in 0..times {
                let before = auto.choice();
                time_ns += seen.interval_ns;
                since_ns = since_ns.saturating_add(seen.interval_ns);
                let told = auto.see(&seen);
                prop_assert_eq!(told.unwrap_or(before), auto.choice());
                prop_assert!(told != Some(before), "only what changes is told");
                if auto.choice().policy != before.policy {
                    prop_assert!(since_ns >= dwell_ns_min, "{} ns after the last change", since_ns);
                    (changes, since_ns) = (changes + 1, 0);
                }
                let most = 2 + u64::from(doublings) + time_ns / (4 * dwell_ns_min) + time_ns / dwell_ns_max;
                prop_assert!(changes <= most, "{} changes in {} ns, at most {}", changes, time_ns, most);
            }
        }
    }

    #[test]
    fn inputs_that_alternate_change_nothing(a in any_seen(), b in any_seen(), windows in 2..6_u32) {
        let mut auto = Auto::new(AutoConfig { windows, ..AutoConfig::default() });
        // One of the two never is in favour of a change from gang: as soon as the series is broken, counting restarts.
        let calm = seen(100, 0, 0, a.hooked, 1);
        for i in 0..500 {
            auto.see(&[a, calm, b, calm][i % 4]);
            prop_assert_eq!(auto.choice().policy, Policy::Gang);
        }
    }

    #[test]
    fn a_phase_change_is_answered_in_time(before in phases(), waits in 45..95_u64, config_windows in 1..6_u32) {
        let config = AutoConfig { windows: config_windows, ..AutoConfig::default() };
        let mut auto = Auto::new(config);
        for (seen, times) in before {
            see(&mut auto, times, seen);
        }
        // Alone for sixteen of its longest dwells: its history no longer matters.
        let quiet = 16 * config.dwell_ns_max / (200 * MS);
        see(&mut auto, quiet as usize, seen(100, 0, 0, true, 0));
        let most = config.windows as u64 + config.dwell_ns_min / (200 * MS);
        for (wanted, waits) in [(Policy::Local, waits), (Policy::Gang, 3), (Policy::Local, waits)] {
            let mut taken = 0;
            while auto.choice().policy != wanted {
                auto.see(&steady(waits, auto.choice().policy, 1));
                taken += 1;
                prop_assert!(taken <= most, "{:?} after {} windows", wanted, taken);
            }
            // Time passes in the new phase, without a change.
            for _ in 0..quiet {
                auto.see(&steady(waits, auto.choice().policy, 1));
                prop_assert_eq!(auto.choice().policy, wanted);
            }
        }
    }

    #[test]
    fn a_steady_job_is_changed_once_at_most(waits in 0..100_u64, rivals in 1..8_u32) {
        let mut auto = Auto::new(AutoConfig::default());
        let mut policies = vec![auto.choice().policy];
        for _ in 0..5000 {
            auto.see(&steady(waits, auto.choice().policy, rivals));
            policies.push(auto.choice().policy);
        }
        policies.dedup();
        prop_assert!(policies.len() <= 2, "{} % waits: {:?}", waits, policies);
        prop_assert_eq!(policies.len() == 2, waits > 30);
    }

    #[test]
    fn one_that_spins_unseen_is_a_gang(phases in phases()) {
        let mut auto = Auto::new(AutoConfig::default());
        for (window, times) in phases {
            let spins = Seen { hooked: false, cpu_ns: window.offered_ns, blocks: 0, ..window };
            see(&mut auto, times, spins);
            prop_assert_eq!(auto.choice().policy, Policy::Gang);
            prop_assert_eq!(auto.choice().wait, Wait::Busy, "nobody could make it block");
            prop_assert!(matches!(auto.choice().reason, Reason::Alone | Reason::WaitsLittle | Reason::NotSeenYet));
        }
    }
}
