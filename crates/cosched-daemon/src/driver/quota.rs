//! `--share from-quota`: the quota of CPU time of an adopted cgroup becomes a share of the slots, and is lifted while that holds (decision 0065).

use super::Driver;
use super::adopt::Adoption;
use crate::refuse::{Answer, conflict, refuse};
use crate::rights::Peer;
use crate::users::user_name;
use cosched_api::{ErrorBody, ErrorCode};
use cosched_core::{JobId, PlannedJob, SlotShare};
use cosched_linux::{Quota, cpulist};

const GIVE: &str = "Give the share yourself, as `--share 50%`: then the quota holds, too.";

fn refused(code: ErrorCode, why: impl Into<String>, hint: &str) -> ErrorBody {
    refuse(code, "the quota cannot be turned into a share", why, hint)
}

/// The share of this number of CPUs that amounts to the quota, rounded down: never more than the quota.
fn share_of(permille_of_a_cpu: u64, cpus: usize) -> Answer<SlotShare> {
    let permille = permille_of_a_cpu / cpus.max(1) as u64;
    let cpus_of = permille_of_a_cpu as f64 / 1000.0;
    match u32::try_from(permille).ok().filter(|permille| *permille < 1000) {
        None => {
            let why = format!("it is {cpus_of:.2} CPUs of {cpus} that it may use: that is no limit");
            Err(refused(ErrorCode::Conflict, why, "Adopt it without a share."))
        }
        Some(permille) => SlotShare::new(permille).ok_or_else(|| {
            let why = format!("it is {cpus_of:.3} of {cpus} CPUs, which is less than a thousandth of the slots");
            refused(ErrorCode::Conflict, why, GIVE)
        }),
    }
}

/// Whether the quota is lifted: the job has slots, and no larger share of them than the quota is.
fn is_lifted(planned: Option<&PlannedJob>, has_slots: bool, of_quota: u32) -> bool {
    let share = planned.filter(|job| has_slots && job.turns > 0).and_then(|job| job.slot_share);
    share.is_some_and(|share| share.permille() <= of_quota)
}

/// This daemon ends.
pub(super) fn put_back(quota: &Quota) {
    if let Err(e) = quota.put_back() {
        tracing::warn!("the quota of an adopted cgroup could not be put back: {e}");
    }
}

impl Driver {
    /// The share that the quota of what is adopted gives; what is to be put back is kept.
    pub(super) fn share_from_quota(&self, peer: Peer, adoption: Option<&mut Adoption>) -> Answer<SlotShare> {
        let Some(adoption) = adoption else {
            let why = "only what is adopted has its owner's quota; a job of `cosched run` keeps its caller's";
            return Err(refused(ErrorCode::Invalid, why, "Give the share yourself, as `--share 50%`."));
        };
        let Some(adoptee) = &adoption.cgroup else {
            let why = "it has no cgroup of its own: its processes are moved, and the limits of the cgroup that they come from hold in the job";
            return Err(refused(ErrorCode::Conflict, why, GIVE));
        };
        let tree = &self.machinery.tree;
        let quota = tree.quota_of(adoptee).map_err(|p| conflict(p.what, p.why, p.hint))?;
        // A user does not lift a quota that another user has set.
        if !self.rights.is_admin(peer) && quota.owner() != Some(peer.uid) {
            let owner = quota.owner().map_or_else(|| "another user".to_owned(), user_name);
            return Err(refused(ErrorCode::Forbidden, format!("{owner} has set it"), "Ask an administrator."));
        }
        // Its processes are not confined to columns: what they may use is what the kernel lets them.
        let own = tree.caps_left_by(adoption.pid).unwrap_or_default().cpus.and_then(|list| cpulist::parse(&list));
        let share = share_of(quota.permille_of_a_cpu(), own.map_or(self.identity.cpus.len(), |cpus| cpus.len()))?;
        adoption.set_quota(quota, share);
        Ok(share)
    }

    /// Quotas are lifted while shares hold in their place, and else as their owners have set them.
    pub(super) fn heed_quotas(&self) {
        let has_slots = self.cluster.node.local().has_slots();
        for (id, live) in &self.live {
            let Some(quota) = &live.quota else { continue };
            let adopted = self.state.jobs.get(id).and_then(|record| record.adopted.as_ref());
            let of_quota = adopted.and_then(|adopted| adopted.quota_permille).unwrap_or(0);
            let written = match is_lifted(self.plan.jobs.get(&JobId(*id)), has_slots, of_quota) {
                true => quota.lift(),
                false => quota.put_back(),
            };
            if let Err(e) = written {
                tracing::warn!(id, "the quota of an adopted cgroup could not be changed: {e}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::{Class, Policy, Standing};

    #[test]
    fn a_quota_is_the_part_of_the_cpus_that_it_gives_and_never_more() {
        let of = |permille, cpus| share_of(permille, cpus).map(|share| share.permille());
        assert_eq!((of(1000, 2), of(500, 2), of(1000, 3)), (Ok(500), Ok(250), Ok(333)));
        assert!(of(2000, 2).unwrap_err().why.contains("no limit"));
        assert!(of(3000, 2).unwrap_err().why.contains("no limit"));
        assert!(of(1, 2).unwrap_err().why.contains("less than a thousandth"));
    }

    #[test]
    fn it_is_lifted_while_the_job_has_no_more_than_it_would_give() {
        let job = |permille: Option<u32>, turns| PlannedJob {
            class: Class::Batch,
            policy: Policy::Gang,
            auto: false,
            cpus: 2,
            standing: Standing::Scheduled,
            slot_share: permille.and_then(SlotShare::new),
            weight: 100,
            home: None,
            alone_on: None,
            is_placed: false,
            turns,
        };
        assert!(is_lifted(Some(&job(Some(500), 1)), true, 500) && is_lifted(Some(&job(Some(100), 1)), true, 500));
        assert!(!is_lifted(Some(&job(Some(501), 1)), true, 500), "more than its owner has given");
        assert!(!is_lifted(Some(&job(None, 1)), true, 500), "its share was lifted");
        assert!(!is_lifted(Some(&job(Some(500), 0)), true, 500), "it has no slots: suspended, or not planned");
        assert!(!is_lifted(Some(&job(Some(500), 1)), false, 500), "the clock is not good enough for slots");
        assert!(!is_lifted(None, true, 500));
    }
}
