//! What an administrator decides about somebody else's job binds its owner: whether it is suspended, its class, its policy, its share of the slots.
//!
//! The owner may do with his job what he likes until an administrator decides. From then on he is refused what would change
//! that, and told whose decision it is. Any administrator takes it back: by resuming the job, or by giving it the class, policy or share that
//! it had before. What an administrator decides about a job of his own binds nobody. Ending a job is always its owner's.

use crate::class::Class;
use crate::job::Policy;
use crate::policy::share::SlotShare;
use core::fmt;

/// Who asks for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The user.
    pub uid: u32,
    /// Whether he is an administrator.
    pub admin: bool,
}

/// A decision, and what was before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<T> {
    /// The administrator.
    pub by: u32,
    /// What the owner had.
    pub before: T,
}

/// What administrators have decided about a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Who suspended it.
    pub suspended_by: Option<u32>,
    /// Its class.
    pub class: Option<Decision<Class>>,
    /// Its own policy, or that it follows the common one.
    pub policy: Option<Decision<Option<Policy>>>,
    /// The part of the slots that it has at most.
    pub share: Option<Decision<Option<SlotShare>>>,
}

/// What can be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matter {
    /// That it stands still.
    Suspension,
    /// Its class.
    Class,
    /// Its policy.
    Policy,
    /// The part of the slots that it has at most.
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

/// An administrator has decided otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The administrator.
    pub by: u32,
    /// What about.
    pub matter: Matter,
}

impl Decisions {
    /// Somebody suspends a job.
    pub fn suspend(&mut self, owner: u32, asker: Asker) {
        if asker.admin && asker.uid != owner {
            self.suspended_by.get_or_insert(asker.uid);
        }
    }

    /// Somebody resumes it.
    ///
    /// # Errors
    /// An administrator has suspended it, and `asker` is none.
    pub fn resume(&mut self, asker: Asker) -> Result<(), Bound> {
        self.check(Matter::Suspension, asker)?;
        self.suspended_by = None;
        Ok(())
    }

    /// Somebody gives it another class.
    ///
    /// # Errors
    /// An administrator has decided it, and `asker` is none.
    pub fn reclass(&mut self, owner: u32, asker: Asker, from: Class, to: Class) -> Result<(), Bound> {
        self.check(Matter::Class, asker)?;
        decide(&mut self.class, owner, asker, from, to);
        Ok(())
    }

    /// Somebody gives it another policy.
    ///
    /// # Errors
    /// An administrator has decided it, and `asker` is none.
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

    /// Somebody gives it another share of the slots.
    ///
    /// # Errors
    /// An administrator has decided it, and `asker` is none.
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

    /// Whether a process may be taken out of the job: outside nothing of this would hold for it.
    ///
    /// # Errors
    /// An administrator has decided something about the job, and `asker` is none.
    pub fn leave(&self, asker: Asker) -> Result<(), Bound> {
        Matter::ALL.into_iter().try_for_each(|matter| self.check(matter, asker))
    }

    /// What is decided, and by whom.
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

/// An administrator's change of another's job is a decision, until the job has again what its owner gave it.
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
