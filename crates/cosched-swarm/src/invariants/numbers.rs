//! New jobs have higher numbers than any that a node knows from an earlier life of the store.
//!
//! Why: a store that has lost its data counts from 1, and nodes still have processes, cgroups and files of earlier jobs. Anything found under a
//! reused number would become part of another user's job (docs/decisions/0021). Nodes that take no part when a number is given cannot be asked.

use super::{Invariant, Seen};

pub(super) struct Numbers;

impl Invariant for Numbers {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::Numbered { job, node, known } if job.0 <= *known => {
                Err(format!("there is a new job {job}, although node {node} already knew job {known}"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::world::{Broken, S, World, job, submit, user};
    use cosched_cluster::store::MemoryStore;

    /// Daemons are away while the store loses its data; one of them has a job, and its files are lost too. Returns the verdict on the next job's
    /// number.
    fn numbered(broken: Option<Broken>) -> Option<&'static str> {
        let mut world = World::started(1, 2);
        (world.broken, world.job_ns_max) = (broken, 1_000_000 * S);
        world.ask(0, user(1), submit(job("a", 1)));
        world.run(3 * S);
        (0..2).for_each(|node| world.crash(node));
        world.put_store(MemoryStore::new());
        world.run(5 * S);
        for node in 0..2 {
            world.hosts[node].settings.kept = None;
            world.start(node);
        }
        world.run(10 * S);
        world.ask(0, user(1), submit(job("b", 1)));
        world.run(3 * S);
        world.violation.map(|violation| violation.invariant)
    }

    #[test]
    fn nodes_that_do_not_say_which_jobs_they_know_are_noticed() {
        assert_eq!(numbered(None), None);
        assert_eq!(numbered(Some(Broken::NumbersUntold)), Some("numbers"));
    }
}
