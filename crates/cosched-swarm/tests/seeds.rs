//! A fixed number of seeds of the swarm; `make swarm` runs as many as fit into a given time.

use cosched_swarm::run::Options;
use cosched_swarm::swarm::{Seeds, swarm};

#[test]
fn these_seeds_hold_what_must_hold() {
    let seeds = Seeds { from: 0, to: 10, for_at_most: None, failures_max: 1 };
    let total = swarm(seeds, &Options::default(), |_| ());
    if let Some(outcome) = total.failures.first() {
        panic!("cosched-swarm --seed {} --verbose: {:?}", outcome.seed, outcome.violation);
    }
    assert_eq!((total.seeds, total.others_per_h_max), (10, 0));
    // A storm in which nothing happens proves nothing.
    let counts = total.counts;
    assert!(counts.jobs > 100 && counts.faults > 50 && counts.slots > 3000, "{counts:?}");
}
