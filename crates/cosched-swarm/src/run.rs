//! One seed: creates a world, runs it through a storm, lets it become idle, and checks how it ended.

use crate::world::{Broken, Counts, Log, MS, S, Violation, World};
use cosched_core::cluster::{Capacity, Packing, Queue};
use cosched_core::{Policy, Sharing};
use serde::Serialize;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How long a cluster may take, after all faults are over, until the last job has ended.
const END_NS_MAX: u64 = 3600 * S;

/// For how long it is then checked that the cluster is idle.
const QUIET_NS: u64 = 300 * S;

/// One seed of this many is a single machine, if the number of nodes is left to the seed.
const SINGLE_ONE_IN: u64 = 10;

/// One seed of this many has a machine that is given another one's name.
const TWIN_ONE_IN: u64 = 6;

/// The options of a world; everything else is derived from the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of nodes; `None` leaves it to the seed: 2 to 5.
    pub nodes: Option<usize>,
    /// The number of jobs.
    pub jobs: u64,
    /// How long users and faults are active, in minutes of simulated time.
    pub minutes: u64,
    /// How the world is broken on purpose.
    pub broken: Option<Broken>,
}

impl Default for Options {
    fn default() -> Options {
        Options { nodes: None, jobs: 40, minutes: 2, broken: None }
    }
}

/// The result of a seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The invariant that was violated.
    pub violation: Option<Violation>,
    /// What happened, counted.
    pub counts: Counts,
    /// How long the world ran, in nanoseconds of its time.
    pub simulated_ns: u64,
    /// While idle: renewals of leases in an hour, by all nodes.
    pub renewals_per_h: u64,
    /// While idle: all other requests to the store, in an hour.
    pub others_per_h: u64,
}

thread_local! {
    /// The last panic message of this thread.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps panic messages for [`seed`] instead of printing them.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| SAID.with(|said| *said.borrow_mut() = Some(info.to_string()))));
}

/// Runs one seed.
pub fn seed(seed: u64, options: &Options) -> Outcome {
    replay(seed, options, None).0
}

/// Runs one seed and logs what happens; also returns the last lines of the log.
pub fn replay(seed: u64, options: &Options, log: Option<Log>) -> (Outcome, Vec<String>) {
    let mut world = make(seed, options);
    world.log = log;
    let lived = catch_unwind(AssertUnwindSafe(|| live(&mut world, options)));
    let quiet = lived.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let what = SAID.with(|said| said.borrow_mut().take()).or(text).unwrap_or_default();
        world.violation.get_or_insert(Violation { invariant: "panic", what, at_ns: world.now });
        (0, 0)
    });
    let per_h = |many: u64| many * 3600 * S / QUIET_NS;
    let last = world.log.take().map(|log| log.last.into()).unwrap_or_default();
    let outcome = Outcome {
        seed,
        violation: world.violation.take(),
        counts: world.counts,
        simulated_ns: world.now,
        renewals_per_h: per_h(quiet.0),
        others_per_h: per_h(quiet.1),
    };
    (outcome, last)
}

fn make(seed: u64, options: &Options) -> World {
    let mut world = World::new(seed, 0);
    let several = options.nodes.unwrap_or_else(|| world.dice.between(2, 5) as usize);
    let nodes = if options.nodes.is_none() && world.more.one_in(SINGLE_ONE_IN) { 1 } else { several };
    world.is_single = nodes == 1;
    let alike = world.dice.one_in(2);
    for node in 0..nodes {
        let cpus = if alike { 4 } else { world.dice.between(1, 8) as u32 };
        world.add_host(&format!("n{node}"));
        let host = &mut world.hosts[node];
        host.set_capacity(Capacity { cpus, memory_bytes: 1 << 30, disk_bytes: 1 << 30 });
    }
    world.lively = true;
    world.broken = options.broken;
    world.agent.idle_after_ns = 4 * S;
    world.agent.drop_after_ns = 12 * S;
    let config = {
        let dice = &mut world.dice;
        let mut config = cosched_core::cluster::Config {
            slot_length_ns: dice.pick(&[50, 100, 100, 250]) * MS,
            policy: dice.pick(&[Policy::Gang, Policy::Gang, Policy::Gang, Policy::Auto]),
            sharing: dice.pick(&[Sharing::Strict, Sharing::Strict, Sharing::Paired, Sharing::Soft]),
            packing: dice.pick(&[Packing::FirstFit, Packing::BestFit, Packing::Buddy]),
            rows_max: dice.pick(&[1, 2, 4, 64]),
            ..cosched_core::cluster::Config::default()
        };
        let [normal, short, alone] = crate::world::QUEUES.map(str::to_owned);
        config.queues = vec![
            Queue { name: normal, ..Queue::default() },
            Queue { name: short, time_ns_max: Some(crate::world::SHORT_NS), ..Queue::default() },
            Queue { name: alone, exclusive: true, ..Queue::default() },
        ];
        config
    };
    for host in &mut world.hosts {
        host.settings.initial = config.clone();
        host.settings.initial.node_dead_after_ns = [6, 12, 40][(seed % 3) as usize] * S;
        // Where all planners of a cluster are eager, they conflict more.
        host.settings.rank_delay_ns = if seed.is_multiple_of(7) { 1 } else { 300 * MS };
        host.settings.rebalance_ns = 20 * S;
        host.settings.load_period_ns = 10 * S;
        (host.settings.is_shared, host.settings.fences) = (!world.is_single, !world.is_single);
    }
    world
}

/// The whole life of a world; returns the requests to the store while it was idle: renewals and all others.
fn live(world: &mut World, options: &Options) -> (u64, u64) {
    for node in 0..world.hosts.len() {
        world.start(node);
        let wait = world.dice.below(300) * MS;
        world.run(wait);
    }
    if options.broken.is_none() && !world.is_single && world.twins.one_in(TWIN_ONE_IN) {
        world.will_have_twin(options.minutes * 60 * S);
    }
    storm(world, options);
    world.all_is_well_again();
    let end = world.now + END_NS_MAX;
    while world.now < end && world.violation.is_none() {
        world.release_all();
        world.run(20 * S);
        if world.is_over() {
            break;
        }
    }
    // Gives nodes that were out of touch time to recover.
    world.run(30 * S);
    if world.violation.is_none() {
        world.see_over();
    }
    if world.violation.is_some() {
        return (0, 0);
    }
    world.quiet(QUIET_NS)
}

/// The active period: users and faults.
fn storm(world: &mut World, options: &Options) {
    let end = world.now + options.minutes * 60 * S;
    // Most faults come alone: the first seconds after one are the most revealing.
    let fault_gap_s = world.dice.pick(&[0, 60, 20, 20, 8, 3]);
    let change_gap_s = world.dice.pick(&[30, 6, 2]);
    // Half of the seeds are without refusals, and half without late freezers.
    let refusal_gap_s = world.more.pick(&[0, 0, 40, 10]);
    world.freezers.late_one_in = world.more.pick(&[0, 0, 100, 10]);
    let (mut submitted, mut next_fault, mut next_change) = (0, world.now + 2 * S, world.now);
    let mut next_refusal = if refusal_gap_s > 0 { world.now + 2 * S } else { end };
    while world.now < end && world.violation.is_none() {
        let left_ns = end - world.now;
        let next_submit = match options.jobs - submitted {
            0 => end,
            left => world.now + world.dice.below(2 * (left_ns / left) + 1),
        };
        let until = next_submit.min(next_fault.max(world.now)).min(next_change.max(world.now)).min(end);
        let until = until.min(next_refusal.max(world.now));
        world.run(until - world.now);
        if world.now >= next_submit && submitted < options.jobs {
            submitted += 1;
            world.submit_random(submitted);
        }
        if world.now >= next_fault {
            if fault_gap_s > 0 {
                world.something_breaks();
            }
            next_fault = world.now + world.dice.between(S / 10, 2 * fault_gap_s.max(1) * S);
        }
        if world.now >= next_refusal && refusal_gap_s > 0 {
            world.something_is_refused();
            next_refusal = world.now + world.more.between(S / 10, 2 * refusal_gap_s * S);
        }
        if world.now >= next_change {
            world.change_random();
            next_change = world.now + world.dice.between(1, 2 * change_gap_s * S);
        }
    }
}

/// Whether the named invariant notices a broken world, in one of a few seeds. For the tests of the invariants.
#[cfg(test)]
pub(crate) fn is_noticed(broken: Broken, by: &str) -> bool {
    let options = Options { nodes: Some(3), jobs: 30, minutes: 4, broken: Some(broken) };
    let whole = Options { broken: None, ..options };
    let violation = |seed, options| self::seed(seed, options).violation;
    (0..500).any(|seed| {
        let noticed = violation(seed, &options).is_some_and(|violation| violation.invariant == by);
        // It is the breakage that is noticed, not something else.
        noticed && violation(seed, &whole).is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_says_everything() {
        let options = Options { minutes: 1, jobs: 15, ..Options::default() };
        let log = || Some(Log::default());
        let (first, second) = (replay(5, &options, log()), replay(5, &options, log()));
        assert_eq!(first, second);
        assert_ne!(first.0.counts, seed(6, &options).counts);
        assert_eq!(first.0, seed(5, &options), "a log changes nothing");
    }
}
