//! Users' rights (DESIGN.md, chapter 5, Rights).
//!
//! Users may only change their own jobs. They may lower a class, not raise it, and cannot choose express. What an administrator has decided
//! about another user's job binds its owner. Administrators may do everything. The member that plans checks the rights again.

use crate::Node;
use crate::request::{ForAll, Refusal};
use cosched_cluster::wire::{By, Decided};
use cosched_core::cluster::LocalJob;
use cosched_core::{Asker, Bound, Class, Decisions, JobId, Policy, SlotShare};

/// The properties of a job on which rights depend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whose {
    /// The job.
    pub job: JobId,
    /// Its owner.
    pub owner: u32,
    /// Its class.
    pub class: Class,
    /// Its own policy.
    pub policy: Option<Policy>,
    /// The largest part of the slots that it may have.
    pub share: Option<SlotShare>,
    /// What administrators have decided about it.
    pub decided: Decided,
}

impl Whose {
    /// Checks whether a user may change this job.
    ///
    /// # Errors
    /// It belongs to another user.
    pub fn change(&self, by: By) -> Result<(), Refusal> {
        let yes = by.admin || by.uid == self.owner;
        if yes { Ok(()) } else { Err(Refusal::NotYours { job: self.job, owner: self.owner, by: by.uid }) }
    }

    /// Checks whether a user may move this job to another class.
    ///
    /// # Errors
    /// It belongs to another user, or the class is above the present one.
    pub fn reclass(&self, by: By, to: Class) -> Result<(), Refusal> {
        self.change(by)?;
        let yes = by.admin || to >= self.class;
        if yes { Ok(()) } else { Err(Refusal::StaysInClass { job: self.job, class: self.class, wanted: to }) }
    }

    /// Checks whether a user may change what an administrator may have decided otherwise.
    ///
    /// # Errors
    /// It belongs to another user, or an administrator has decided otherwise.
    pub fn decide(
        &self,
        by: By,
        change: impl FnOnce(&mut Decisions, Asker) -> Result<(), Bound>,
    ) -> Result<(), Refusal> {
        self.change(by)?;
        let asker = Asker { uid: by.uid, admin: by.admin };
        change(&mut self.decided.into(), asker).map_err(|bound| Refusal::Decided(self.job, bound))
    }
}

/// Checks whether a user may submit a job of this class.
///
/// # Errors
/// The class is express, and the user is not an administrator.
pub fn submit(by: By, class: Class) -> Result<(), Refusal> {
    if class != Class::Express || by.admin { Ok(()) } else { Err(Refusal::Express) }
}

/// The owner of a job that a user submits: the user, or the owner that an administrator has requested.
///
/// # Errors
/// Only administrators may submit jobs for other users, and no job can be for user ID -1.
pub fn owner(by: By, wanted: Option<u32>) -> Result<u32, Refusal> {
    match wanted {
        Some(u32::MAX) => Err(Refusal::InvalidOwner),
        Some(owner) if owner != by.uid && !by.admin => Err(Refusal::NotFor { owner, by: by.uid }),
        wanted => Ok(wanted.unwrap_or(by.uid)),
    }
}

/// Checks whether a user may change what affects all users.
///
/// # Errors
/// The user is not an administrator.
pub fn for_all(by: By, what: ForAll) -> Result<(), Refusal> {
    if by.admin { Ok(()) } else { Err(Refusal::ForAll { what, by: by.uid }) }
}

impl Node {
    /// A job's owner and other properties: as the store has them, or, until the store was reached, as the last daemon has left them on this node.
    ///
    /// # Errors
    /// There is no such job.
    pub fn whose(&self, job: JobId) -> Result<Whose, Refusal> {
        if let Some(known) = self.member.job(job) {
            let (class, policy) = (known.ask.class.into(), known.ask.policy.map(Into::into));
            let share = known.ask.share_permille.and_then(SlotShare::new);
            return Ok(Whose { job, owner: known.owner.uid, class, policy, share, decided: known.decided });
        }
        let local_part = self.part(job).filter(|_| !self.has_read_store());
        local_part.map(|(of, local)| Whose::of_part(job, of, local)).ok_or(Refusal::NoSuchJob(job))
    }

    /// The same for a part that is on this node.
    ///
    /// # Errors
    /// There is no part on this node.
    pub fn whose_local(&self, job: JobId) -> Result<Whose, Refusal> {
        let known = self.whose(job);
        let local_part = || self.part(job).map(|(of, local)| Whose::of_part(job, of, local));
        known.or_else(|error| local_part().ok_or(error))
    }
}

impl Whose {
    fn of_part(job: JobId, of: &crate::PartOf, local: &LocalJob) -> Whose {
        let LocalJob { owner, class, policy, slot_share: share, .. } = *local;
        Whose { job, owner, class, policy, share, decided: of.decided }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADMIN: By = By { uid: 0, gid: 0, admin: true };
    const OWNER: By = By { uid: 1000, gid: 1000, admin: false };
    const OTHER: By = By { uid: 1001, gid: 1001, admin: false };

    fn whose(decided: Decisions) -> Whose {
        Whose { job: JobId(7), owner: 1000, class: Class::Batch, policy: None, share: None, decided: decided.into() }
    }

    #[test]
    fn a_job_is_its_owners_and_the_administrators() {
        let job = whose(Decisions::default());
        assert_eq!((job.change(OWNER), job.change(ADMIN)), (Ok(()), Ok(())));
        assert_eq!(job.change(OTHER), Err(Refusal::NotYours { job: JobId(7), owner: 1000, by: 1001 }));
        // A process that the kernel cannot attribute to a user owns nothing.
        assert!(job.change(By { uid: u32::MAX, ..OTHER }).is_err());
    }

    #[test]
    fn users_lower_a_class_and_do_not_raise_it() {
        let job = whose(Decisions::default());
        assert_eq!((job.reclass(OWNER, Class::Standby), job.reclass(OWNER, Class::Batch)), (Ok(()), Ok(())));
        let stays = Refusal::StaysInClass { job: JobId(7), class: Class::Batch, wanted: Class::Interactive };
        assert_eq!(job.reclass(OWNER, Class::Interactive), Err(stays));
        assert_eq!(job.reclass(ADMIN, Class::Express), Ok(()));
        assert!(matches!(job.reclass(OTHER, Class::Standby), Err(Refusal::NotYours { .. })), "whose it is comes first");
        assert_eq!((submit(OWNER, Class::Express), submit(ADMIN, Class::Express)), (Err(Refusal::Express), Ok(())));
        assert_eq!(submit(OWNER, Class::Interactive), Ok(()));
    }

    #[test]
    fn only_administrators_submit_for_others_and_nobody_for_nobody() {
        assert_eq!(
            (owner(OWNER, None), owner(OWNER, Some(1000)), owner(ADMIN, Some(1000))),
            (Ok(1000), Ok(1000), Ok(1000))
        );
        assert_eq!(owner(OTHER, Some(1000)), Err(Refusal::NotFor { owner: 1000, by: 1001 }));
        assert_eq!(owner(ADMIN, Some(u32::MAX)), Err(Refusal::InvalidOwner));
        assert!(for_all(OWNER, ForAll::Queues).is_err() && for_all(ADMIN, ForAll::Queues).is_ok());
    }

    #[test]
    fn what_an_administrator_has_decided_binds_the_owner() {
        let mut decided = Decisions::default();
        decided.suspend(1000, Asker { uid: 0, admin: true });
        let job = whose(decided);
        let refused = job.decide(OWNER, |decided, asker| decided.resume(asker));
        assert!(matches!(refused, Err(Refusal::Decided(JobId(7), Bound { by: 0, .. }))), "{refused:?}");
        assert_eq!(job.decide(ADMIN, |decided, asker| decided.resume(asker)), Ok(()));
        assert!(matches!(job.decide(OTHER, |_, _| Ok(())), Err(Refusal::NotYours { .. })));
    }
}
