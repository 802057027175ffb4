//! Members in bad weather: whatever is lost, late, cut off or killed, every request is applied exactly once, generations
//! rise by one, every job ends, and all have the same plan when it is over.
//!
//! `COSCHED_SEEDS=1000 cargo test -p cosched-cluster --test storms` runs more; `COSCHED_SEED=7` runs one, and with
//! `COSCHED_TRACE=1` it tells everything.

mod world;

use cosched_cluster::wire::{Answer, Ask, Class, KillHow, OnNodeLoss, Policy};
use world::{MS, ROOT, S, World, job, submit, user};

fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("COSCHED_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("COSCHED_SEEDS").unwrap_or(usual),
    }
}

/// Says which seed failed.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed was {}", self.0);
        }
    }
}

fn somebody_asks(world: &mut World, n: u64) {
    let node = world.dice.below(world.hosts.len() as u64) as usize;
    let known = world.state().map_or(1, |state| state.next_order.max(1));
    let id = 1 + world.dice.below(known);
    let ask = match world.dice.below(10) {
        0..=4 => {
            let mut ask = job(&format!("job {n}"), 1 + world.dice.below(14) as u32);
            ask.on_node_loss = [OnNodeLoss::Kill, OnNodeLoss::Keep, OnNodeLoss::Requeue][world.dice.below(3) as usize];
            ask.lead = (world.dice.below(3) == 0).then(|| "n0".to_owned());
            ask.class = [Class::Interactive, Class::Batch][world.dice.below(2) as usize];
            submit(ask)
        }
        5 => Ask::Kill { job: id, how: KillHow::FORCE },
        6 => Ask::Class { job: id, class: Class::Standby },
        7 => Ask::Policy { job: id, policy: [None, Some(Policy::Local)][world.dice.below(2) as usize] },
        8 => Ask::Ceiling { permille: 500 + world.dice.below(501) as u32 },
        _ => Ask::Resume { job: id },
    };
    world.ask(node, ROOT, ask);
}

fn something_breaks(world: &mut World) {
    let node = world.dice.below(world.hosts.len() as u64) as usize;
    let long = world.dice.below(15) * S;
    match world.dice.below(9) {
        0 => world.hosts[node].cut_until = world.now + long,
        1 => world.store_stops_until = world.now + long,
        2 => world.crash(node),
        3 => world.power_off(node),
        4 => world.lossy = world.dice.below(60),
        5 => world.slow = world.dice.below(60),
        6 => world.compacts = !world.compacts,
        7 => world.store.extend_leases(cosched_core::Time(world.now)),
        _ if world.hosts[node].member.is_none() => world.start(node),
        _ => (),
    }
}

/// All is well again, and everything comes to its end.
fn calm_down(world: &mut World) {
    (world.lossy, world.slow, world.compacts) = (0, 0, false);
    for node in 0..world.hosts.len() {
        if world.hosts[node].member.is_none() {
            world.start(node);
        }
    }
    // Stopped jobs go on; the others end by themselves.
    world.run(60 * S);
    world.run(60 * S);
    world.check_end();
}

#[test]
fn whatever_breaks_every_request_is_applied_once_and_every_job_ends() {
    for seed in seeds(30) {
        let _named = Named(seed);
        let mut world = World::new(seed, 2 + seed as usize % 4);
        (0..world.hosts.len()).for_each(|node| world.start(node));
        for n in 0..120 {
            let wait = world.dice.below(800) * MS;
            world.run(wait);
            if world.dice.below(3) > 0 {
                somebody_asks(&mut world, n);
            }
            if world.dice.below(4) == 0 {
                something_breaks(&mut world);
            }
        }
        calm_down(&mut world);
    }
}

/// All plan at once all the time: there are no ranks to speak of, and nothing waits for acknowledgements.
#[test]
fn storms_of_conflicts_lose_nothing() {
    for seed in seeds(3) {
        let _named = Named(seed);
        let mut world = World::new(1000 + seed, 5);
        for host in &mut world.hosts {
            (host.settings.rank_delay_ns, host.settings.ack_wait_ns) = (1, 0);
        }
        (0..5).for_each(|node| world.start(node));
        world.run(S);
        for n in 0..100 {
            let wait = world.dice.below(20) * MS;
            world.run(wait);
            somebody_asks(&mut world, n);
        }
        world.run(S);
        let conflicts = world.hosts.iter().flat_map(|host| &host.notices);
        let conflicts = conflicts.filter(|notice| **notice == cosched_cluster::Notice::Conflict).count();
        assert!(conflicts > 10, "seed {seed}: only {conflicts} conflicts");
        calm_down(&mut world);
    }
}

/// Jobs of several users by several daemons: each is answered once, and numbers are given without a gap.
#[test]
fn numbers_of_jobs_have_no_gaps() {
    let mut world = World::new(77, 3);
    (0..3).for_each(|node| world.start(node));
    world.run(S);
    for n in 0..90 {
        world.ask(n % 3, user(n as u32), submit(job(&format!("{n}"), 1 + n as u32 % 5)));
        world.run(3 * MS);
    }
    world.run(S);
    let mut numbers: Vec<u64> = Vec::new();
    for answer in world.told.values() {
        let Answer::Submitted { job } = answer else { panic!("{answer:?}") };
        numbers.push(*job);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=90).collect::<Vec<u64>>());
    calm_down(&mut world);
}
