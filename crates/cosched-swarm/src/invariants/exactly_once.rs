//! Every acknowledged request is applied exactly once: no acknowledged job is lost, and none is doubled.
//!
//! Why: a user who was told a number relies on it, and one whose daemon died in the middle must not find his job twice.
//! A request comes into the store once and goes once. A name stands for one job at most, an acknowledged one for exactly
//! the number that was told, and the processes of a job are begun once on each of its nodes in each of its lives: neither
//! a daemon that was started anew nor a machine that lost everything begins them again.

use super::{Invariant, Seen};
use cosched_cluster::wire::Answer;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct ExactlyOnce {
    /// Requests that are there (`true`) or were.
    requests: BTreeMap<String, bool>,
    /// Jobs by name.
    jobs: BTreeMap<String, u64>,
    told: BTreeMap<String, Answer>,
    begun: BTreeSet<(usize, u64, u32)>,
}

impl Invariant for ExactlyOnce {
    fn name(&self) -> &'static str {
        "exactly_once"
    }

    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::Request { id, came: true } if self.requests.insert((*id).to_owned(), true).is_some() => {
                return Err(format!("request {id} is written twice"));
            }
            Seen::Request { id, came: false } if self.requests.insert((*id).to_owned(), false) != Some(true) => {
                return Err(format!("request {id} is carried out twice"));
            }
            Seen::Record(job) => {
                let known = *self.jobs.entry(job.ask.name.clone()).or_insert(job.id);
                if known != job.id {
                    return Err(format!("{} is job {known} and job {}", job.ask.name, job.id));
                }
            }
            Seen::Answered { name, answer } => {
                if let Some(known) = self.told.insert((*name).to_owned(), (*answer).clone()) {
                    return Err(format!("{name} is answered twice: {known:?}, {answer:?}"));
                }
                return self.fits(name, answer);
            }
            Seen::Begun { node, job, attempt } if !self.begun.insert((*node, job.0, *attempt)) => {
                return Err(format!("job {job}, life {attempt}, is begun twice on node {node}"));
            }
            Seen::Over(_) => {
                return self.told.iter().try_for_each(|(name, answer)| self.fits(name, answer));
            }
            _ => (),
        }
        Ok(())
    }
}

impl ExactlyOnce {
    /// Whether what was told is what is.
    fn fits(&self, name: &str, answer: &Answer) -> Result<(), String> {
        match (answer, self.jobs.get(name)) {
            (Answer::Submitted { job }, known) if known != Some(job) => {
                Err(format!("{name} was said to be job {job}, and is {known:?}"))
            }
            (Answer::Refused { .. }, Some(job)) => Err(format!("{name} was said to be refused, and is job {job}")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::invariants::is_noticed;
    use crate::world::Broken;

    #[test]
    fn a_store_that_does_not_look_at_conditions_is_noticed() {
        assert!(is_noticed(Broken::NoConditions, "exactly_once"));
    }
}
