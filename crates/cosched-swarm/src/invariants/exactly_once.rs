//! Every acknowledged request is applied exactly once: no acknowledged job is lost, and none is doubled.
//!
//! Why: a user who was told a number relies on it, and a user whose daemon died halfway must not find a job twice. A
//! request is written to the store once and carried out once. A name stands for one job at most, an acknowledged one for
//! exactly the number that was told, and the processes of a job are started once on each of its nodes in each of its
//! lives: neither a restarted daemon nor a machine that lost everything starts them again. Of what several launchers
//! request with `once`, one job exists at a time for each owner, name and set of nodes. A store that has lost its data or
//! was restored starts over: what it was told before may be lost or come again; no request gets two answers.

use super::{Invariant, Seen};
use cosched_cluster::wire::{Answer, Job};
use cosched_core::cluster::Stage;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct ExactlyOnce {
    /// Requests that exist in the store (`true`) or have existed.
    requests: BTreeMap<String, bool>,
    /// Jobs by name.
    jobs: BTreeMap<String, u64>,
    told: BTreeMap<String, Answer>,
    /// In this life of the store.
    told_since_restore: BTreeMap<String, Answer>,
    begun: BTreeSet<(usize, u64, u32)>,
    /// Jobs that several launchers request and that are not about to end, by owner, name and resources.
    once: BTreeMap<(u32, String, String), u64>,
    /// Jobs that are being ended for good.
    ending: BTreeSet<u64>,
}

impl Invariant for ExactlyOnce {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::AnotherStore => self.forget(),
            Seen::State { state, .. } => {
                let ending = state.jobs.iter().filter(|(_, job)| matches!(job.stage, Stage::Ending(_)));
                self.ending = ending.map(|(id, _)| id.0).collect();
                self.once.retain(|_, id| !self.ending.contains(id));
            }
            Seen::Request { id, came: true } if self.requests.insert((*id).to_owned(), true).is_some() => {
                return Err(format!("request {id} is written twice"));
            }
            Seen::Request { id, came: false } if self.requests.insert((*id).to_owned(), false) != Some(true) => {
                return Err(format!("request {id} is carried out twice"));
            }
            Seen::Record(job) if job.ask.once => return self.is_alone(job),
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
                self.told_since_restore.insert((*name).to_owned(), (*answer).clone());
                return self.fits(name, answer);
            }
            Seen::Begun { node, job, attempt, .. } if !self.begun.insert((*node, job.0, *attempt)) => {
                return Err(format!("job {job}, attempt {attempt}, is started twice on node {node}"));
            }
            Seen::Over(_) => {
                return self.told_since_restore.iter().try_for_each(|(name, answer)| self.fits(name, answer));
            }
            _ => (),
        }
        Ok(())
    }
}

impl ExactlyOnce {
    /// A store that was lost knows nothing of the past, and a restored one may carry out again what its copy contains.
    fn forget(&mut self) {
        *self = ExactlyOnce { told: std::mem::take(&mut self.told), ..ExactlyOnce::default() };
    }

    fn is_alone(&mut self, job: &Job) -> Result<(), String> {
        let what = (job.owner.uid, job.ask.name.clone(), format!("{:?}", job.ask.want));
        let ends = job.closing || job.end.is_some() || job.killed_by.is_some() || self.ending.contains(&job.id);
        // Its owner may have changed the requested resources.
        self.once.retain(|known, id| *id != job.id || *known == what);
        match self.once.get(&what) {
            Some(known) if *known != job.id && !ends => Err(format!("{what:?} is job {known} and job {}", job.id)),
            Some(known) if *known == job.id && ends => {
                self.once.remove(&what);
                Ok(())
            }
            None if !ends => {
                self.once.insert(what, job.id);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether the answer agrees with the jobs in the store.
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
    use crate::run::is_noticed;
    use crate::world::Broken;

    #[test]
    fn a_store_that_does_not_look_at_conditions_is_noticed() {
        assert!(is_noticed(Broken::NoConditions, "exactly_once"));
    }
}
