//! The rule's behaviour in a simulated world whose rates can be computed.

use super::*;
use crate::stage::{Class, Resource, StageView};
use Resource::{Compute, Io};
use alloc::vec;

const MS: u64 = 1_000_000;

/// A pipeline whose rate is a function of its settings, and whose stages divide their time in a given way.
struct World {
    rule: Autotune,
    /// The settings in force, as the host knows them.
    settings: Vec<Setting>,
    /// (resource, CPU, delay, blocked) of each stage, in parts of a thread's time.
    stages: Vec<(Resource, f64, f64, f64)>,
    others: f64,
    cpus: u32,
    replicable_to: u32,
    /// The rate, of 1000 a second, by the settings.
    rate: fn(&[Setting]) -> f64,
    /// The relative deviations of the windows' rates, in turn.
    noise: Vec<f64>,
    refuses: fn(usize, &Change) -> bool,
    turn: usize,
    now_ns: u64,
    /// All requested changes, with the time in ms.
    told: Vec<(u64, Action)>,
}

impl World {
    fn new(config: Config, stages: &[(Resource, f64, f64, f64)]) -> World {
        let info = |(resource, ..): &(Resource, f64, f64, f64)| StageInfo {
            resource: *resource,
            own_threads: true,
            replicable_to: 1,
            start: Setting::default(),
        };
        let infos: Vec<StageInfo> = stages.iter().map(info).collect();
        World {
            rule: Autotune::new(config, &infos),
            settings: vec![Setting::default(); stages.len()],
            stages: stages.to_vec(),
            others: 0.0,
            cpus: 2,
            replicable_to: 1,
            rate: |_| 1.0,
            noise: vec![0.001, -0.002, 0.0, 0.003, -0.001],
            refuses: |_, _| false,
            turn: 0,
            now_ns: 0,
            told: Vec::new(),
        }
    }

    fn replicable_to(mut self, most: u32) -> World {
        self.replicable_to = most;
        let config = self.rule.config.clone();
        let mut infos = self.rule.stages.clone();
        infos.iter_mut().for_each(|info| info.replicable_to = most);
        self.rule = Autotune::new(config, &infos);
        self
    }

    fn window(&mut self) -> Window {
        let length_ns = self.rule.window_ns();
        self.turn += 1;
        self.now_ns += length_ns;
        let noise = self.noise[self.turn % self.noise.len()];
        let rounds = (1000.0 * (self.rate)(&self.settings) * (1.0 + noise) * length_ns as f64 / 1e9) as u64;
        let view = |((resource, cpu, delay, blocked), setting): (&(Resource, f64, f64, f64), &Setting)| {
            let threads = setting.incarnations.unwrap_or(1);
            // More threads share the same work.
            let ns = |part: f64| (part * length_ns as f64) as u64;
            StageView {
                threads,
                rounds,
                busy_ns: ns(cpu + delay + blocked),
                cpu_ns: ns(*cpu),
                delay_ns: ns(*delay),
                queue_in_max: 8,
                replicable_to: self.replicable_to,
                ..StageView::idle(*resource)
            }
        };
        let stages = self.stages.iter().zip(&self.settings).map(view).collect();
        let others_ns = Some((self.others * length_ns as f64 * f64::from(self.cpus)) as u64);
        Window { length_ns, cpus: self.cpus, rounds, stages, others_ns }
    }

    /// Adds the incarnations that the rule requests before the first window.
    fn begun(mut self) -> World {
        let actions = self.rule.begin(self.cpus);
        self.obey(actions);
        self
    }

    fn run(&mut self, seconds: u64) {
        let until_ns = self.now_ns + seconds * 1000 * MS;
        while self.now_ns < until_ns {
            let window = self.window();
            let actions = self.rule.window(&window);
            self.obey(actions);
        }
    }

    fn obey(&mut self, actions: Vec<Action>) {
        for action in actions {
            if (self.refuses)(action.stage, &action.change) {
                self.rule.refused(action.stage, &action.change);
            } else {
                self.settings[action.stage].apply(&action.change);
            }
            self.told.push((self.now_ns / MS, action));
        }
        let agree = self.rule.settings().iter().zip(&self.settings).all(|(rule, host)| rule.means(host));
        assert!(agree, "the rule says {:?}, and it is {:?}", self.rule.settings(), self.settings);
    }

    fn asked(&self, change: &Change) -> usize {
        self.told.iter().filter(|(_, action)| action.change == *change).count()
    }

    fn reasons(&self, name: &str) -> usize {
        self.told.iter().filter(|(_, action)| action.why.name() == name).count()
    }
}

/// A reader that the disk keeps busy for most of the time, and that waits for a CPU when the disk is done.
fn reader_waits() -> Vec<(Resource, f64, f64, f64)> {
    vec![(Io, 0.05, 0.20, 0.70), (Compute, 0.50, 0.10, 0.0), (Io, 0.05, 0.10, 0.30)]
}

fn has_short_slices(settings: &[Setting]) -> bool {
    settings[0].slice_us == Some(100)
}

const ALL_RIGHTS: Rights = Rights { lower_nice: true, real_time: true };

#[test]
fn short_slices_that_help_are_kept_and_others_are_not_tried_again_soon() {
    let mut world = World::new(Config::default(), &reader_waits());
    world.rate = |settings| if has_short_slices(settings) { 1.1 } else { 1.0 };
    world.run(20);
    assert!(has_short_slices(&world.settings), "{:?}", world.told);
    assert_eq!(world.settings[1].slice_us.unwrap_or(0), 0, "long slices did not help");
    assert_eq!(world.rule.state(), State::Resting);
    let Some((_, Action { why: Reason::Helped { gain_ppm }, .. })) =
        world.told.iter().find(|(_, action)| action.why.name() == "helped")
    else {
        panic!("{:?}", world.told)
    };
    assert!((90_000..110_000).contains(gain_ppm), "{gain_ppm}");
}

#[test]
fn what_does_not_help_is_taken_back_to_the_last_bit() {
    let start = Setting { nice: Some(3), slice_us: Some(5_000), class: Some(Class::Batch), ..Setting::default() };
    let mut world = World::new(Config { rights: ALL_RIGHTS, ..Config::default() }, &reader_waits());
    let mut infos = world.rule.stages.clone();
    infos.iter_mut().for_each(|info| info.start = start.clone());
    world.rule = Autotune::new(world.rule.config.clone(), &infos);
    world.settings = vec![start.clone(); 3];
    world.run(20);
    assert!(world.told.len() > 10, "it did try");
    assert_eq!(world.rule.state(), State::Resting);
    assert!(world.settings.iter().all(|setting| setting.means(&start)), "{:?}", world.settings);
}

#[test]
fn where_nothing_can_be_gained_nothing_is_tried() {
    let disk = [(Io, 0.02, 0.0, 0.97), (Compute, 0.50, 0.01, 0.0), (Io, 0.02, 0.0, 0.50)];
    let one_stage = [(Io, 0.05, 0.01, 0.20), (Compute, 0.99, 0.01, 0.0), (Io, 0.05, 0.01, 0.20)];
    let quiet = [(Io, 0.02, 0.0, 0.90), (Compute, 0.20, 0.0, 0.0), (Io, 0.02, 0.0, 0.90)];
    for stages in [disk, one_stage, quiet] {
        let mut world = World::new(Config { rights: ALL_RIGHTS, cpus: vec![0, 1], ..Config::default() }, &stages);
        world.run(60);
        assert_eq!((world.told.len(), world.rule.state()), (0, State::Resting), "{stages:?}");
    }
}

#[test]
fn the_stage_that_limits_alone_gets_threads_until_it_does_not() {
    let heavy = [(Io, 0.05, 0.0, 0.20), (Compute, 0.98, 0.0, 0.0), (Io, 0.05, 0.0, 0.20)];
    let mut world = World::new(Config::default(), &heavy).replicable_to(8);
    world.cpus = 8;
    world.rate = |settings| [1.0, 1.9, 2.5, 2.51][settings[1].incarnations.unwrap_or(1).min(4) as usize - 1];
    // The stage stays busy with any number of incarnations: only the gain shows when to stop.
    world.stages[1].1 = 0.98 * 3.0;
    world.run(30);
    assert_eq!(world.settings[1].incarnations, Some(3), "{:?}", world.told);
    assert_eq!(world.told[0].1.why, Reason::LimitsAlone);
    assert_eq!(world.asked(&Change::Incarnations(5)), 0);
}

#[test]
fn a_stage_that_may_not_be_replicated_is_not() {
    let heavy = [(Io, 0.05, 0.0, 0.20), (Compute, 0.98, 0.0, 0.0), (Io, 0.05, 0.0, 0.20)];
    let mut world = World::new(Config::default(), &heavy);
    world.run(30);
    assert_eq!(world.told, []);
}

#[test]
fn without_the_right_it_says_what_it_would_have_done() {
    let mut world = World::new(Config::default(), &reader_waits());
    world.run(20);
    assert!(world.told.iter().all(|(_, action)| matches!(action.change, Change::SliceUs(_) | Change::Class(_))));
    let would: Vec<_> = world.rule.refusals().iter().map(|one| (one.stage, one.change.clone(), one.why)).collect();
    let why = Reason::BlocksAndWaitsForCpu;
    assert!(would.contains(&(0, Change::Nice(-10), why)) && would.contains(&(2, Change::Class(Class::Fifo(1)), why)));
    assert!(would.len() < 10, "each is noted once: {would:?}");
}

#[test]
fn a_refused_change_is_not_asked_for_again_and_its_companions_go() {
    let mut world = World::new(Config { rights: ALL_RIGHTS, ..Config::default() }, &reader_waits());
    world.rate = |settings| if settings[0].nice == Some(-10) { 1.2 } else { 1.0 };
    world.refuses = |stage, change| stage == 2 && matches!(change, Change::Nice(_) | Change::Class(_));
    world.run(60);
    let refused =
        |change: &Change| world.told.iter().filter(|(_, one)| one.stage == 2 && one.change == *change).count();
    assert_eq!((refused(&Change::Nice(-10)), refused(&Change::Class(Class::Fifo(1)))), (1, 1), "{:?}", world.told);
    assert_eq!(world.settings[0].nice.unwrap_or(0), 0, "half of it is not kept");
    assert_eq!(world.reasons("part-refused"), 2);
    assert_eq!(world.rule.refusals().len(), 4, "what was refused, and what was not even asked for");
}

#[test]
fn what_gives_way_goes_when_others_come() {
    let crowded =
        [(Io, 0.10, 0.10, 0.20), (Compute, 0.88, 0.12, 0.0), (Compute, 0.88, 0.12, 0.0), (Io, 0.10, 0.10, 0.20)];
    let mut world = World::new(Config::default(), &crowded);
    world.rate = |settings| if settings[0].class == Some(Class::Batch) { 1.03 } else { 1.0 };
    world.run(10);
    assert_eq!(world.settings[0].class, Some(Class::Batch), "{:?}", world.told);
    let before = world.told.len();
    world.others = 0.3;
    let window = world.window();
    let actions = world.rule.window(&window);
    assert!(actions.iter().all(|action| action.why == Reason::OthersCame) && actions.len() == 2, "{actions:?}");
    world.obey(actions);
    world.run(20);
    assert!(world.told[before..].iter().all(|(_, action)| action.change != Change::Class(Class::Batch)));
}

#[test]
fn what_is_kept_is_doubted_when_something_else_limits() {
    let mut world = World::new(Config::default(), &reader_waits());
    world.rate = |settings| if has_short_slices(settings) { 1.1 } else { 1.0 };
    world.run(20);
    assert!(has_short_slices(&world.settings));
    world.stages = vec![(Io, 0.05, 0.20, 0.10), (Compute, 0.80, 0.10, 0.0), (Io, 0.05, 0.10, 0.10)];
    world.rate = |_| 1.0;
    world.run(20);
    assert!(world.reasons("doubted") > 0, "{:?}", world.told);
    assert!(!has_short_slices(&world.settings), "it is of no use any more");
}

#[test]
fn what_proves_itself_again_stays() {
    let config = Config { rest_ns_min: 3_000 * MS, rest_ns_max: 48_000 * MS, ..Config::default() };
    let mut world = World::new(config, &reader_waits());
    world.rate = |settings| if has_short_slices(settings) { 1.1 } else { 1.0 };
    world.run(200);
    assert!(has_short_slices(&world.settings));
    let doubts = world.told.iter().filter(|(_, action)| action.why == Reason::Doubted && action.stage == 0).count();
    // After 3, 6, 12, 24, 48 seconds, and each 48 from then on.
    assert!((5..=8).contains(&doubts), "{doubts}");
}

#[test]
fn trials_that_all_lose_cost_little() {
    let mut world = World::new(Config { rights: ALL_RIGHTS, ..Config::default() }, &reader_waits());
    world.rate = |settings| if settings.iter().all(|setting| setting.means(&SET)) { 1.0 } else { 0.7 };
    world.run(10);
    // Windows with another setting than the default lose 30 % each.
    let mut lost_ms = 0.0;
    let mut since = None;
    for (time_ms, action) in &world.told {
        let tries = !matches!(action.why, Reason::Comparing | Reason::NoGain { .. } | Reason::Harmed { .. });
        match (tries, since) {
            (true, None) => since = Some(*time_ms),
            (false, Some(begin)) => {
                lost_ms += 0.3 * (*time_ms - begin) as f64;
                since = None;
            }
            _ => {}
        }
    }
    assert!(lost_ms > 0.0 && lost_ms < 100.0, "{lost_ms} of 10 000 ms");
}

const SET: Setting = Setting { nice: None, slice_us: None, class: None, cpus: None, incarnations: None };

#[test]
fn the_end_takes_back_what_is_on_trial() {
    let mut world = World::new(Config::default(), &reader_waits());
    while world.rule.state() != State::Trying {
        world.run(0);
        let window = world.window();
        let actions = world.rule.window(&window);
        world.obey(actions);
    }
    let actions = world.rule.finish();
    assert!(actions.iter().all(|action| action.why == Reason::CutShort) && actions.len() == 2, "{actions:?}");
    world.obey(actions);
    assert!(world.settings.iter().all(|setting| setting.means(&SET)));
    assert_eq!(world.rule.finish(), []);
}

#[test]
fn windows_that_say_nothing_change_nothing() {
    let mut world = World::new(Config::default(), &reader_waits());
    let empty = Window { length_ns: 0, ..world.window() };
    let other = Window { stages: Vec::new(), ..world.window() };
    for _ in 0..50 {
        assert_eq!(world.rule.window(&empty), []);
        assert_eq!(world.rule.window(&other), []);
    }
    world.rate = |_| 0.0;
    world.run(20);
    assert!(world.reasons("helped") == 0);
}

#[test]
fn what_computes_begins_wide_and_is_doubted_when_that_is_cheap() {
    let wide = |world: &World| world.settings[1].incarnations == Some(2);
    let sort = [(Io, 0.1, 0.0, 0.2), (Compute, 0.9, 0.0, 0.0), (Io, 0.1, 0.0, 0.2)];
    let mut world = World::new(Config::default(), &sort).replicable_to(3).begun();
    let Action { stage, change, why } = world.told[0].1.clone();
    assert_eq!((stage, change, why), (1, Change::Incarnations(2), Reason::MayLimitAlone));
    assert_eq!(world.told.len(), 1, "one for each CPU, and only what computes");
    world.rate = |settings| if settings[1].incarnations == Some(2) { 1.0 } else { 0.6 };
    world.run(5);
    assert_eq!(world.told.len(), 1, "a run of seconds is not slowed down to learn what is likely");
    world.run(300);
    assert!(wide(&world), "{:?}", world.told);

    let mut useless = World::new(Config::default(), &sort).replicable_to(2).begun();
    useless.run(300);
    assert!(!wide(&useless), "what gains nothing goes: {:?}", useless.told);
}
