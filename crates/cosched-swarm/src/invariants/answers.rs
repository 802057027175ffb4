//! No user changes another user's job: a request that is answered as done came from the job's owner or an administrator.
//!
//! Why: the planner trusts what a node says about the requesting user, so each node has to check it. A restored store can give a number
//! a second time, and a node that has not heard of that obeys the owner of the job that it knows: everyone who ever owned a number is
//! allowed.

use super::{Invariant, Seen};
use cosched_node::Request;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct Answers {
    owners: BTreeMap<u64, BTreeSet<u32>>,
}

impl Invariant for Answers {
    fn see(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::Record(job) => drop(self.owners.entry(job.id).or_default().insert(job.owner.uid)),
            Seen::Answer { by, what, is_done: true } if !by.admin => {
                let job = match what {
                    Request::Change(..) => return Err(format!("user {} has done {what:?}", by.uid)),
                    Request::Suspend(job) | Request::Resume(job) | Request::Exited(job, _) => job,
                    Request::Class(job, _) | Request::Policy(job, _) | Request::Resources(job, _) => job,
                    Request::Share(job, _) | Request::Kill { job, .. } => job,
                    Request::Submit { .. } | Request::Wait(_) | Request::Loads(_) => return Ok(()),
                };
                match self.owners.get(&job.0) {
                    Some(owners) if !owners.contains(&by.uid) => {
                        return Err(format!("user {} has done {what:?}, and it is of {owners:?}", by.uid));
                    }
                    _ => (),
                }
            }
            _ => (),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_cluster::wire::By;
    use cosched_core::JobId;

    #[test]
    fn a_change_of_what_is_not_ones_own_is_noticed() {
        let owners = BTreeMap::from([(7, [1].into())]);
        let mut answers = Answers { owners };
        let suspend = Request::Suspend(JobId(7));
        let by = |uid, admin| By { uid, gid: uid, admin };
        let mut see = |by, is_done| answers.see(&Seen::Answer { by, what: &suspend, is_done });
        assert!(see(by(1, false), true).is_ok() && see(by(0, true), true).is_ok() && see(by(2, false), false).is_ok());
        assert!(see(by(2, false), true).is_err());
    }
}
