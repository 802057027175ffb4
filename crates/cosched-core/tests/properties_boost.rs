//! The guarantees of the booster: no job starves, shares hold over a second, and a boost lasts as long as it should.

use cosched_core::{Boost, BoostConfig, BoostView, Booster, Endpoint, JobId, OnArrival, Reason, Time};
use proptest::prelude::*;
use proptest::test_runner::Config;

const MS: u64 = 1_000_000;

/// The behaviour of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Habit {
    /// Its messages always wait.
    Served,
    /// It always computes.
    Computes,
    /// Alternates randomly between the two.
    Mixed,
    /// Any state: at times it is not a candidate.
    Any,
    /// A candidate in one second, and asleep in the next.
    Phases,
}

impl Habit {
    fn always_candidate(self) -> bool {
        matches!(self, Habit::Served | Habit::Computes | Habit::Mixed)
    }

    fn endpoint(self, now: Time, draw: u8) -> Endpoint {
        match (self, draw % 4) {
            (Habit::Served, _) | (Habit::Mixed, 0 | 1) | (Habit::Any, 0) => Endpoint::Served,
            (Habit::Computes, _) | (Habit::Mixed, _) | (Habit::Any, 1) => Endpoint::Computing,
            (Habit::Any, 2) => Endpoint::Waiting,
            (Habit::Phases, _) if (now.0 / 1_000_000_000).is_multiple_of(2) => Endpoint::Served,
            (Habit::Any | Habit::Phases, _) => Endpoint::Blocked,
        }
    }
}

fn habits() -> impl Strategy<Value = Vec<(Habit, u32)>> {
    let habit = prop_oneof![
        Just(Habit::Served),
        Just(Habit::Computes),
        Just(Habit::Mixed),
        Just(Habit::Any),
        Just(Habit::Phases),
    ];
    prop::collection::vec((habit, 1..5_u32), 1..9)
}

/// A node with one CPU, which the boosted job has.
struct Node {
    config: BoostConfig,
    booster: Booster,
    jobs: Vec<(Habit, u32)>,
    used_ns: Vec<u64>,
    current: Option<usize>,
    now: Time,
    random: u64,
}

impl Node {
    fn new(config: BoostConfig, jobs: Vec<(Habit, u32)>, seed: u64) -> Node {
        let used_ns = vec![0; jobs.len()];
        Node { config, booster: Booster::new(config), jobs, used_ns, current: None, now: Time(0), random: seed }
    }

    /// A simple generator that is good enough for habits (Knuth's constants).
    fn draw(&mut self) -> u8 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 56) as u8
    }

    /// A period passes, then `look` is called; under DCS messages arrive before it.
    fn step(&mut self) -> (Boost, Vec<BoostView>) {
        let period_ns = MS + u64::from(self.draw() % 4) * MS / 4;
        self.now = self.now + period_ns;
        if let Some(current) = self.current {
            self.used_ns[current] += period_ns;
        }
        let mut table = Vec::new();
        for i in 0..self.jobs.len() {
            let (habit, share) = self.jobs[i];
            let endpoint = habit.endpoint(self.now, self.draw());
            table.push(BoostView { job: JobId(i as u64), endpoint, share, cpu_ns: self.used_ns[i] });
        }
        let mut boost = self.booster.look(self.now, self.current, &table);
        if self.config.on_arrival == OnArrival::Interrupt {
            let served = |i: &usize| table[*i].endpoint == Endpoint::Served;
            for receiver in (0..table.len()).filter(served) {
                let current = boost.candidate;
                boost = self.booster.arrived(self.now, receiver, current, &table).unwrap_or(boost);
            }
            // Without a boost the operating system schedules by itself; here it runs the first job that can run.
            let first = table.iter().position(|view| can_run(view.endpoint));
            boost.candidate = boost.candidate.or(first);
        }
        self.current = boost.candidate;
        (boost, table)
    }
}

fn can_run(endpoint: Endpoint) -> bool {
    matches!(endpoint, Endpoint::Served | Endpoint::Computing)
}

fn configs() -> impl Strategy<Value = BoostConfig> {
    (any::<bool>(), 0..5_u64, 5..25_u64, 50_000..400_000_u32).prop_map(|(demand, hold, quantum, tolerance)| {
        BoostConfig {
            on_arrival: if demand { OnArrival::Interrupt } else { OnArrival::Periodic },
            hold_ns_min: hold * MS,
            quantum_ns: quantum * MS,
            tolerance_ppm: Some(tolerance),
            ..BoostConfig::default()
        }
    })
}

proptest! {
    #![proptest_config(Config { cases: 48, failure_persistence: None, ..Config::default() })]

    #[test]
    fn nobody_starves_and_shares_hold(config in configs(), jobs in habits(), seed: u64) {
        let (n, total) = (jobs.len() as u64, jobs.iter().map(|(_, share)| share).sum::<u32>());
        let mut node = Node::new(config, jobs.clone(), seed);
        let mut last_ran = vec![Time(0); jobs.len()];
        let warm = Time(5_000 * MS);
        let mut at_warm = Vec::new();
        while node.now < Time(25_000 * MS) {
            node.step();
            if at_warm.is_empty() && node.now >= warm {
                at_warm.clone_from(&node.used_ns);
            }
            for (i, (habit, share)) in jobs.iter().enumerate() {
                if node.current == Some(i) {
                    last_ran[i] = node.now;
                }
                let bound_ns = config.starvation_ns(n, *share, total).unwrap();
                let waits_ns = node.now - last_ran[i];
                prop_assert!(!habit.always_candidate() || waits_ns <= bound_ns, "job {} waits {} of {} ns", i, waits_ns, bound_ns);
            }
        }
        let span_ns = (node.now - warm) as f64;
        for (i, (habit, share)) in jobs.iter().enumerate().filter(|(_, job)| job.0.always_candidate()) {
            let had = (node.used_ns[i] - at_warm[i]) as f64 / span_ns;
            let part = f64::from(*share) / f64::from(total);
            let tolerance = f64::from(config.tolerance_ppm.unwrap()) / 1e6;
            prop_assert!(had >= part * (1.0 - tolerance) * 0.99, "job {} ({:?}) had {} of {}", i, habit, had, part);
        }
    }

    #[test]
    fn a_boost_lasts_as_long_as_it_should(config in configs(), is_fair: bool, jobs in habits(), seed: u64) {
        let tolerance_ppm = config.tolerance_ppm.filter(|_| is_fair);
        let config = BoostConfig { on_arrival: OnArrival::Periodic, tolerance_ppm, ..config };
        let mut node = Node::new(config, jobs, seed);
        let mut begun: Option<(usize, Time)> = None;
        let mut contested_since = Time(0);
        while node.now < Time(3_000 * MS) {
            let before = node.current;
            let (boost, table) = node.step();
            let candidates = table.iter().filter(|view| can_run(view.endpoint)).count();
            if let (Some(place), Some((_, since))) = (before, begun) {
                let held_ns = node.now - since;
                if can_run(table[place].endpoint) && held_ns < config.hold_ns_min {
                    prop_assert_eq!((boost.candidate, boost.reason), (before, Reason::Boosted));
                }
            }
            prop_assert_eq!(boost.candidate.is_some(), candidates > 0, "the CPU is somebody's whenever somebody can use it");
            prop_assert!(boost.candidate.is_none_or(|place| can_run(table[place].endpoint)));
            if boost.candidate != before || candidates < 2 {
                contested_since = node.now;
            }
            if boost.candidate != before {
                begun = boost.candidate.map(|place| (place, node.now));
            }
            // If shares hold, one that is behind keeps the CPUs while all others are ahead.
            let longest_ns = config.quantum_ns.max(config.hold_ns_min);
            prop_assert!(is_fair || node.now - contested_since <= longest_ns + 2 * MS, "held {} ns", node.now - contested_since);
        }
    }

    #[test]
    fn any_table_at_any_time_is_answered(
        fair_over_ns: u64,
        tolerance_ppm in prop::option::of(any::<u32>()),
        looks in prop::collection::vec((any::<u64>(), 0..9_usize, prop::collection::vec((0..7_u64, 0..4_u8, any::<u32>(), any::<u64>()), 0..7)), 1..40),
    ) {
        let config = BoostConfig { fair_over_ns, tolerance_ppm, jobs_max: 5, ..BoostConfig::default() };
        let mut booster = Booster::new(config);
        for (now, current, jobs) in looks {
            let endpoint = |n: u8| [Endpoint::Blocked, Endpoint::Computing, Endpoint::Waiting, Endpoint::Served][n as usize];
            let view = |(job, n, share, cpu_ns): (u64, u8, u32, u64)| BoostView { job: JobId(job), endpoint: endpoint(n), share, cpu_ns };
            let table: Vec<BoostView> = jobs.into_iter().map(view).collect();
            let boost = booster.look(Time(now), Some(current), &table);
            let could = table.iter().take(5).any(|view| can_run(view.endpoint));
            prop_assert_eq!(boost.candidate.is_some(), could);
            let raised = booster.arrived(Time(now), current, boost.candidate, &table);
            prop_assert!(raised.is_none_or(|raised| raised.candidate == Some(current) && table[current].endpoint != Endpoint::Blocked));
        }
    }
}
