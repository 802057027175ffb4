//! Decisions of an administrator about another user's job bind its owner: whether it is suspended, its class, its policy, its share of the slots.
//!
//! Owners may change their jobs as they like until an administrator decides. From then on an owner's change of that is refused,
//! and the refusal names the administrator. Any administrator can take the decision back: by resuming the job, or by giving it the class,
//! policy or share that it had before. What administrators decide about their own jobs binds no one. The owner may always end a job.

use crate::class::Class;
use crate::job::Policy;
use crate::policy::share::SlotShare;
use core::fmt;

/// The user who requests a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The user ID.
    pub uid: u32,
    /// Whether the user is an administrator.
    pub admin: bool,
}

/// A decision, and the value before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<T> {
    /// The administrator's user ID.
    pub by: u32,
    /// The value that the owner had chosen.
    pub before: T,
}

/// What administrators have decided about a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// The administrator who suspended it.
    pub suspended_by: Option<u32>,
    /// Its class.
    pub class: Option<Decision<Class>>,
    /// Its own policy, or that it follows the cluster's.
    pub policy: Option<Decision<Option<Policy>>>,
    /// The largest part of the slots that it may have.
    pub share: Option<Decision<Option<SlotShare>>>,
}

/// What an administrator can decide about a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matter {
    /// That it is suspended.
    Suspension,
    /// Its class.
    Class,
    /// Its policy.
    Policy,
    /// The largest part of the slots that it may have.
    Share,
}

impl Matter {
    const ALL: [Matter; 4] = [Matter::Suspension, Matter::Class, Matter::Policy, Matter::Share];
}

impl fmt::Display for Matter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Matter::Suspension => "suspension",
            Matter::Class => "class",
            Matter::Policy => "policy",
            Matter::Share => "share",
        })
    }
}

/// A change is refused because of an administrator's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The administrator's user ID.
    pub by: u32,
    /// What was decided.
    pub matter: Matter,
}

impl Decisions {
    /// A user suspends a job.
    pub fn suspend(&mut self, owner: u32, asker: Asker) {
        if asker.admin && asker.uid != owner {
            self.suspended_by.get_or_insert(asker.uid);
        }
    }

    /// A user resumes the job.
    ///
    /// # Errors
    /// An administrator has suspended it, and `asker` is not an administrator.
    pub fn resume(&mut self, asker: Asker) -> Result<(), Bound> {
        self.check(Matter::Suspension, asker)?;
        self.suspended_by = None;
        Ok(())
    }

    /// A user changes its class.
    ///
    /// # Errors
    /// An administrator has decided it, and `asker` is not an administrator.
    pub fn reclass(&mut self, owner: u32, asker: Asker, from: Class, to: Class) -> Result<(), Bound> {
        self.check(Matter::Class, asker)?;
        decide(&mut self.class, owner, asker, from, to);
        Ok(())
    }

    /// A user changes its policy.
    ///
    /// # Errors
    /// An administrator has decided it, and `asker` is not an administrator.
    pub fn repolicy(
        &mut self,
        owner: u32,
        asker: Asker,
        from: Option<Policy>,
        to: Option<Policy>,
    ) -> Result<(), Bound> {
        self.check(Matter::Policy, asker)?;
        decide(&mut self.policy, owner, asker, from, to);
        Ok(())
    }

    /// A user changes its share of the slots.
    ///
    /// # Errors
    /// An administrator has decided it, and `asker` is not an administrator.
    pub fn reshare(
        &mut self,
        owner: u32,
        asker: Asker,
        from: Option<SlotShare>,
        to: Option<SlotShare>,
    ) -> Result<(), Bound> {
        self.check(Matter::Share, asker)?;
        decide(&mut self.share, owner, asker, from, to);
        Ok(())
    }

    /// Whether a process may be moved out of the job, where none of these decisions would apply to it.
    ///
    /// # Errors
    /// An administrator has decided something about the job, and `asker` is not an administrator.
    pub fn leave(&self, asker: Asker) -> Result<(), Bound> {
        Matter::ALL.into_iter().try_for_each(|matter| self.check(matter, asker))
    }

    /// All decisions, with the administrators who made them.
    pub fn all(&self) -> impl Iterator<Item = Bound> {
        let decided = *self;
        Matter::ALL.into_iter().filter_map(move |matter| decided.by(matter).map(|by| Bound { by, matter }))
    }

    fn by(&self, matter: Matter) -> Option<u32> {
        match matter {
            Matter::Suspension => self.suspended_by,
            Matter::Class => self.class.map(|decision| decision.by),
            Matter::Policy => self.policy.map(|decision| decision.by),
            Matter::Share => self.share.map(|decision| decision.by),
        }
    }

    fn check(&self, matter: Matter, asker: Asker) -> Result<(), Bound> {
        match self.by(matter).filter(|_| !asker.admin) {
            Some(by) => Err(Bound { by, matter }),
            None => Ok(()),
        }
    }
}

/// An administrator's change of another user's job is a decision, until the job has the value again that its owner had chosen.
fn decide<T: PartialEq + Copy>(held: &mut Option<Decision<T>>, owner: u32, asker: Asker, from: T, to: T) {
    if !asker.admin {
        return;
    }
    let before = held.map_or(from, |decision| decision.before);
    *held = Some(Decision { by: asker.uid, before }).filter(|_| asker.uid != owner && to != before);
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Asker = Asker { uid: 1000, admin: false };
    const ROOT: Asker = Asker { uid: 0, admin: true };
    const ADMIN: Asker = Asker { uid: 42, admin: true };

    #[test]
    fn what_an_administrator_suspends_only_an_administrator_resumes() {
        let mut decided = Decisions::default();
        decided.suspend(1000, OWNER);
        assert_eq!(decided.resume(OWNER), Ok(()));
        decided.suspend(1000, ROOT);
        decided.suspend(1000, OWNER);
        decided.suspend(1000, ADMIN);
        assert_eq!(decided.resume(OWNER), Err(Bound { by: 0, matter: Matter::Suspension }), "the first one counts");
        assert_eq!(decided.leave(OWNER), Err(Bound { by: 0, matter: Matter::Suspension }));
        assert_eq!((decided.leave(ADMIN), decided.resume(ADMIN)), (Ok(()), Ok(())));
        assert_eq!(decided, Decisions::default());
    }

    #[test]
    fn a_class_is_taken_back_by_the_class_of_before() {
        let mut decided = Decisions::default();
        decided.reclass(1000, OWNER, Class::Interactive, Class::Batch).unwrap();
        decided.reclass(1000, ROOT, Class::Batch, Class::Standby).unwrap();
        decided.reclass(1000, ADMIN, Class::Standby, Class::Express).unwrap();
        let bound = Err(Bound { by: 42, matter: Matter::Class });
        assert_eq!(decided.reclass(1000, OWNER, Class::Express, Class::Standby), bound);
        assert_eq!((decided.leave(OWNER), decided.resume(OWNER)), (bound, Ok(())));
        decided.reclass(1000, ROOT, Class::Express, Class::Batch).unwrap();
        assert_eq!(decided, Decisions::default());
    }

    #[test]
    fn a_policy_binds_also_when_it_is_the_common_one() {
        let mut decided = Decisions::default();
        decided.repolicy(1000, OWNER, None, Some(Policy::Local)).unwrap();
        decided.repolicy(1000, ROOT, Some(Policy::Local), None).unwrap();
        let bound = Bound { by: 0, matter: Matter::Policy };
        assert_eq!(decided.repolicy(1000, OWNER, None, Some(Policy::Local)), Err(bound));
        assert_eq!(decided.all().collect::<alloc::vec::Vec<_>>(), [bound]);
        decided.repolicy(1000, ROOT, None, Some(Policy::Local)).unwrap();
        assert_eq!(decided.repolicy(1000, OWNER, Some(Policy::Local), None), Ok(()));
    }

    #[test]
    fn a_share_that_an_administrator_gives_is_not_the_owners_to_lift() {
        let mut decided = Decisions::default();
        let [half, all] = [500, 1000].map(SlotShare::new);
        decided.reshare(1000, OWNER, None, all).unwrap();
        decided.reshare(1000, ROOT, all, half).unwrap();
        let bound = Bound { by: 0, matter: Matter::Share };
        assert_eq!((decided.reshare(1000, OWNER, half, None), decided.leave(OWNER)), (Err(bound), Err(bound)));
        decided.reshare(1000, ADMIN, half, all).unwrap();
        assert_eq!(decided, Decisions::default());
    }

    #[test]
    fn who_decides_about_a_job_of_his_own_binds_nobody() {
        let mut decided = Decisions::default();
        decided.suspend(42, ADMIN);
        decided.reclass(42, ADMIN, Class::Batch, Class::Express).unwrap();
        decided.repolicy(42, ADMIN, None, Some(Policy::Gang)).unwrap();
        assert_eq!(decided, Decisions::default());
    }
}
