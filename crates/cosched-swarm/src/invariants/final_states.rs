//! Every job reaches a final state once faults are over and its processes have ended.
//!
//! That includes jobs whose program runs, or ran, outside their nodes and whose program, launcher or node no longer exists: none
//! stays open without a process.
//! Why: a job that is never over keeps its memory, disk space and cells for ever, and its user waits for ever. At the end all
//! nodes are well, know the same plan and have answered every request, and only records of past jobs are left in the store.

use super::{Invariant, Seen};

pub(super) struct FinalStates;

impl Invariant for FinalStates {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        let Seen::Over(over) = seen else { return Ok(()) };
        if let Some(open) = over.open.first() {
            return Err(format!("{} jobs have no end; the first: {open}", over.open.len()));
        }
        if let Some((node, job)) = over.alive.first() {
            return Err(format!("{} parts are alive; the first: job {job} on node {node}", over.alive.len()));
        }
        match over.nodes.first().or(over.litter.first()) {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::run::is_noticed;
    use crate::world::Broken;

    #[test]
    fn ends_that_are_not_told_are_noticed() {
        assert!(is_noticed(Broken::EndsUntold, "final_states"));
    }

    #[test]
    fn jobs_without_a_process_are_noticed() {
        assert!(is_noticed(Broken::MainsUntold, "final_states"));
    }
}
