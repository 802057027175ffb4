//! No process stays stopped for longer than a bound, whatever single fault occurs.
//!
//! Why: a job that is never thawed is lost to its user (DESIGN.md, chapter 5: "whatever dies … no job stays stopped"). A job
//! that its user has suspended, or that waits for memory, stays stopped for as long as that lasts; on a node that is out of
//! touch, no job waits for memory that no other job there uses. All others wait only for their turn: twice the longest cycle
//! of the node, and [`REST_NS`] for a new plan to take effect and for a guard or a new daemon to notice a dead one.

use super::{Invariant, Seen};

/// In addition to two cycles, in nanoseconds: a lease (5 s) and its uncertainty, a plan's lead time, a check of the clock.
pub(crate) const REST_NS: u64 = 12_000_000_000;

pub(super) struct BoundedStop;

impl Invariant for BoundedStop {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::Stopped { node, job, for_ns, most_ns } if for_ns > most_ns => {
                let ms = |ns: &u64| ns / 1_000_000;
                Err(format!("job {job} is stopped on node {node} for {} ms, at most {} ms", ms(for_ns), ms(most_ns)))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::host::Phase;
    use crate::world::{Broken, MS, ROOT, S, World, job, job_on, submit};
    use cosched_cluster::wire::{Ask, Sharing};
    use cosched_core::{Disposition, JobId};

    /// Two gangs take turns, and a daemon dies while one of them is stopped.
    fn dies_in_a_slot(broken: Option<Broken>) -> Option<&'static str> {
        let mut world = World::new(1, 2);
        (world.broken, world.job_ns_max) = (broken, 1000 * S);
        (0..2).for_each(|node| world.start(node));
        world.run(S);
        world.ask(0, ROOT, Ask::ClusterSharing { sharing: Sharing::Strict });
        for name in ["a", "b"] {
            world.ask(0, ROOT, submit(job(name, 8)));
        }
        world.run(10 * S + 30 * MS);
        let parts = world.hosts[1].processes.parts.values();
        assert_eq!(parts.filter(|part| part.to == Disposition::Stop).count(), 1, "one waits for its turn");
        assert!(world.hosts[1].processes.parts.values().all(|part| matches!(part.phases[0], Phase::Sleeps(_))));
        world.crash(1);
        world.run(60 * S);
        world.violation.map(|violation| violation.invariant)
    }

    #[test]
    fn a_guard_that_thaws_nobody_is_noticed() {
        assert_eq!(dies_in_a_slot(None), None);
        assert_eq!(dies_in_a_slot(Some(Broken::NoThaw)), Some("bounded_stop"));
    }

    /// One of two jobs is held for want of memory; the store goes away, and while it is away the other job ends.
    fn held_without_a_store(broken: Option<Broken>) -> Option<&'static str> {
        let mut world = World::new(2, 1);
        (world.broken, world.job_ns_max) = (broken, 1000 * S);
        world.start(0);
        world.run(3 * S);
        let bytes = world.state()?.nodes.values().next()?.capacity.memory_bytes;
        for name in ["a", "b"] {
            world.ask(0, ROOT, submit(job_on(name, "n0", bytes / 4)));
            world.run(S);
        }
        world.tell(0, |member, now| member.memory(now, JobId(2), bytes));
        world.run(5 * S);
        let stopped = world.hosts[0].processes.parts.values().filter(|part| part.to == Disposition::Stop);
        assert_eq!(stopped.count(), 1, "one is held");
        world.store_away_until = world.now + 100 * S;
        let end = world.now + 20 * S;
        world.hosts[0].processes.parts.get_mut(&JobId(1))?.sleeps_until = Some(end);
        world.run(90 * S);
        world.violation.map(|violation| violation.invariant)
    }

    #[test]
    fn a_daemon_that_holds_for_nobody_is_noticed() {
        assert_eq!(held_without_a_store(None), None);
        assert_eq!(held_without_a_store(Some(Broken::HoldsOn)), Some("bounded_stop"));
    }
}
