//! The guarantees of autotune, whatever a pipeline does and whatever the system refuses.

use cosched_core::stage::autotune::{Action, Autotune, Config, Reason, Rights, StageInfo, State};
use cosched_core::stage::{Change, Class, Resource, Setting, StageView, Window, bound, limiting};
use proptest::prelude::*;
use proptest::test_runner::Config as Cases;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

const MS: u64 = 1_000_000;

/// A number in [0, 1) derived from a hash, so that a world need not be written down.
fn unit(of: impl Hash) -> f64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    (hasher.finish() >> 11) as f64 / 9_007_199_254_740_992.0
}

/// A phase of a pipeline: how its stages divide their time, and which others use the CPUs.
#[derive(Clone, Debug)]
struct Phase {
    seed: u64,
    windows: usize,
    others: f64,
    noise: f64,
}

fn phase() -> impl Strategy<Value = Phase> {
    let others = prop_oneof![Just(0.0), 0.0..0.6_f64];
    (any::<u64>(), 1..150_usize, others, 0.0..0.1_f64).prop_map(|(seed, windows, others, noise)| Phase {
        seed,
        windows,
        others,
        noise,
    })
}

fn phases() -> impl Strategy<Value = Vec<Phase>> {
    prop::collection::vec(phase(), 1..8)
}

fn resources() -> impl Strategy<Value = Vec<Resource>> {
    let one = prop_oneof![Just(Resource::Compute), Just(Resource::Communicate), Just(Resource::Io)];
    prop::collection::vec(one, 1..6)
}

fn rights() -> impl Strategy<Value = Rights> {
    (any::<bool>(), any::<bool>()).prop_map(|(lower_nice, real_time)| Rights { lower_nice, real_time })
}

/// The host's observations of a pipeline in this phase; settings change its rate by up to 30 %.
fn window(rule: &Autotune, resources: &[Resource], settings: &[Setting], phase: &Phase, turn: usize) -> Window {
    let length_ns = rule.window_ns();
    let set = settings.iter().map(|setting| format!("{setting:?}")).collect::<String>();
    let gain = 0.7 + 0.6 * unit((phase.seed, set));
    let rate = 1000.0 * gain * (1.0 + phase.noise * (unit((phase.seed, turn, "noise")) - 0.5));
    let rounds = (rate * length_ns as f64 / 1e9) as u64;
    let view = |(stage, resource): (usize, &Resource)| {
        let part = |what: &str| unit((phase.seed, stage, what)) / 3.0;
        let ns = |part: f64| (part * length_ns as f64) as u64;
        StageView {
            threads: settings[stage].incarnations.unwrap_or(1),
            rounds,
            busy_ns: ns(part("cpu") + part("delay") + part("blocked")) * if stage == 0 { 2 } else { 1 },
            cpu_ns: ns(part("cpu") * 2.0),
            delay_ns: ns(part("delay")),
            queue_in: 4.0 * unit((phase.seed, stage)),
            queue_in_max: 4,
            replicable_to: 3,
            ..StageView::idle(*resource)
        }
    };
    let stages = resources.iter().enumerate().map(view).collect();
    let others_ns = Some((phase.others * length_ns as f64 * 2.0) as u64);
    Window { length_ns, cpus: 2, rounds, stages, others_ns }
}

fn rule(resources: &[Resource], rights: Rights, config: Config) -> Autotune {
    let info = |resource: &Resource| StageInfo {
        resource: *resource,
        own_threads: true,
        replicable_to: 3,
        start: Setting::default(),
    };
    let infos: Vec<StageInfo> = resources.iter().map(info).collect();
    Autotune::new(Config { rights, cpus: vec![0, 1], ..config }, &infos)
}

fn means(a: &[Setting], b: &[Setting]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.means(b))
}

/// Whether an action with this reason begins a new trial.
fn begins(why: Reason) -> bool {
    let names = [
        "limits-alone",
        "limits-beside-others",
        "blocks-and-waits-for-cpu",
        "does-not-limit",
        "interrupted",
        "wanders",
    ];
    names.contains(&why.name())
}

proptest! {
    #![proptest_config(Cases { cases: 60, failure_persistence: None, ..Cases::default() })]

    #[test]
    fn nothing_is_asked_for_that_was_refused(
        resources in resources(), phases in phases(), rights in rights(), refuses in 0.0..0.7_f64, salt in any::<u64>(),
    ) {
        let mut rule = rule(&resources, rights, Config::default());
        let mut settings = vec![Setting::default(); resources.len()];
        let mut refused: Vec<(usize, Change)> = Vec::new();
        for phase in &phases {
            for turn in 0..phase.windows {
                let actions = rule.window(&window(&rule, &resources, &settings, phase, turn));
                for Action { stage, change, .. } in &actions {
                    prop_assert!(!refused.contains(&(*stage, change.clone())), "{stage} {change:?} again");
                    prop_assert!(!settings[*stage].has(change), "{stage} has {change:?}");
                    if unit((salt, stage, format!("{change:?}"))) < refuses {
                        rule.refused(*stage, change);
                        refused.push((*stage, change.clone()));
                    } else {
                        settings[*stage].apply(change);
                    }
                }
                prop_assert!(means(rule.settings(), &settings), "{:?} {:?}", rule.settings(), settings);
            }
        }
        let noted = |(stage, change): &(usize, Change)| {
            rule.refusals().iter().any(|one| one.stage == *stage && one.change == *change)
        };
        prop_assert!(refused.iter().all(noted), "{refused:?} {:?}", rule.refusals());
    }

    #[test]
    fn rights_and_limits_are_kept(resources in resources(), phases in phases(), rights in rights()) {
        let mut rule = rule(&resources, rights, Config::default());
        let mut settings = vec![Setting::default(); resources.len()];
        for phase in &phases {
            for turn in 0..phase.windows {
                for Action { stage, change, .. } in rule.window(&window(&rule, &resources, &settings, phase, turn)) {
                    match change {
                        Change::Nice(nice) => prop_assert!(rights.lower_nice && (-20..20).contains(&nice)),
                        Change::Class(Class::Fifo(_)) => prop_assert!(rights.real_time),
                        Change::Incarnations(count) => prop_assert!((1..=3).contains(&count)),
                        Change::SliceUs(us) => prop_assert!(us == 0 || (100..=100_000).contains(&us)),
                        Change::Affinity(ref cpus) => prop_assert!(cpus.iter().all(|cpu| *cpu < 2)),
                        Change::Class(_) => {}
                    }
                    settings[stage].apply(&change);
                }
            }
        }
    }

    #[test]
    fn what_fails_is_undone_exactly(resources in resources(), phases in phases(), rights in rights()) {
        let mut rule = rule(&resources, rights, Config::default());
        let mut settings = vec![Setting::default(); resources.len()];
        let mut before = None;
        for phase in &phases {
            for turn in 0..phase.windows {
                let held = settings.clone();
                let actions = rule.window(&window(&rule, &resources, &settings, phase, turn));
                actions.iter().for_each(|action| settings[action.stage].apply(&action.change));
                if actions.iter().any(|action| begins(action.why)) {
                    before = Some(held);
                } else if rule.state() != State::Trying {
                    // The trial is over: either its setting is in force, or the one before it.
                    let helped = actions.iter().any(|action| action.why.name() == "helped");
                    if let Some(before) = before.take().filter(|_| !helped) {
                        prop_assert!(means(&settings, &before), "{:?} is not {:?}", settings, before);
                    }
                }
            }
        }
        rule.finish().iter().for_each(|action| settings[action.stage].apply(&action.change));
        prop_assert!(means(rule.settings(), &settings));
        if let Some(before) = before {
            prop_assert!(means(&settings, &before), "what was on trial at the end");
        }
    }

    #[test]
    fn a_steady_pipeline_is_left_in_peace(resources in resources(), phase in phase(), rights in rights()) {
        let (rest_ns_min, rest_ns_max) = (1_000 * MS, 32_000 * MS);
        let mut rule = rule(&resources, rights, Config { rest_ns_min, rest_ns_max, ..Config::default() });
        let mut settings = vec![Setting::default(); resources.len()];
        let (mut begun, mut time_ns, mut turn) = (0_u64, 0_u64, 0);
        while time_ns < 100_000 * MS {
            turn += 1;
            let window = window(&rule, &resources, &settings, &phase, turn);
            time_ns += window.length_ns;
            let actions = rule.window(&window);
            actions.iter().for_each(|action| settings[action.stage].apply(&action.change));
            begun += u64::from(actions.iter().any(|action| begins(action.why) || action.why == Reason::Doubted));
        }
        // Eight kinds and two more incarnations of each stage, each tried, doubted and tried again in its rests; settings
        // change what limits, so that there are up to three cases.
        let kinds = 8 + 2 * resources.len() as u64;
        let times = 2 + 5 + time_ns / rest_ns_max;
        prop_assert!(begun <= 3 * kinds * times, "{begun} in {time_ns} ns");
        prop_assert!(begun < 100, "{begun} in 100 s");
    }

    #[test]
    fn a_limit_is_always_a_part_of_its_bound(resources in resources(), phase in phase()) {
        let rule = rule(&resources, Rights::default(), Config::default());
        let settings = vec![Setting::default(); resources.len()];
        let window = window(&rule, &resources, &settings, &phase, 0);
        let (limit, bound) = (limiting(&window), bound(&window));
        prop_assert!((0.0..=1.0).contains(&limit.share) && (0.0..=1.0).contains(&limit.delay), "{limit:?}");
        prop_assert!(limit.stage.is_none_or(|stage| stage < resources.len()));
        prop_assert_eq!(bound.ns(), bound.compute_ns.max(bound.communicate_ns).max(bound.io_ns));
    }
}
