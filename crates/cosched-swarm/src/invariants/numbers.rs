//! New jobs have higher numbers than any that a node knows from an earlier life of the store.
//!
//! Why: a store that has lost its data counts from 1, and nodes still have processes, cgroups and files of the jobs of
//! before. Whatever comes by a number that was given twice would become part of somebody else's job
//! (docs/decisions/0021). Nodes that take no part when a number is given cannot be asked.

use super::{Invariant, Seen};

pub(super) struct Numbers;

impl Invariant for Numbers {
    fn name(&self) -> &'static str {
        "numbers"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::Numbered { job, node, known } if job.0 <= *known => {
                Err(format!("there is a new job {job}, and node {node} has known job {known} for long"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::invariants::is_noticed_in;
    use crate::world::Broken;

    #[test]
    fn nodes_that_do_not_say_which_jobs_they_know_are_noticed() {
        assert!(is_noticed_in(2570..2580, Broken::NumbersUntold, "numbers"));
    }
}
