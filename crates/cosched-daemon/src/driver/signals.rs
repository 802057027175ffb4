//! Where jobs are switched by signals: what is refused there.

use super::Driver;
use crate::refuse::{Answer, forbidden, unsupported};
use crate::rights::Peer;
use crate::users::user_name;
use cosched_api::{ErrorBody, JobRequest, OnNodeLoss, Policy};

impl Driver {
    /// Refuses a new job that needs cgroups, where there are none.
    pub(super) fn check_without_cgroups(&self, peer: Peer, owner: u32, request: &JobRequest) -> Answer<()> {
        if !self.machinery.tree.has_keepers() {
            return Ok(());
        }
        let own = rustix::process::geteuid().as_raw();
        if peer.uid != own || owner != own {
            return Err(forbidden(
                "the job is refused",
                format!(
                    "there are no cgroups here, and without them a daemon has jobs of its own user alone, {}",
                    user_name(own)
                ),
                "Start a daemon of your own: `cosched run` without --socket does.",
            ));
        }
        self.check_policy_without_cgroups(request.policy)?;
        let needs = [
            (request.adopt.is_some(), "an adopted job"),
            (request.mem_bytes_max.is_some(), "a memory limit"),
            (request.on_node_loss == Some(OnNodeLoss::Requeue), "a job that is started again"),
            (!request.keeper, "a job that no `cosched run` begins"),
        ];
        match needs.iter().find(|(is_asked, _)| *is_asked) {
            Some((_, what)) => Err(needs_cgroups(what)),
            None => Ok(()),
        }
    }

    /// Boosting looks every few milliseconds, which signals are too slow for.
    pub(super) fn check_policy_without_cgroups(&self, policy: Option<Policy>) -> Answer<()> {
        match policy {
            Some(Policy::Pb | Policy::Dcs) if self.machinery.tree.has_keepers() => {
                Err(needs_cgroups("policy pb or dcs"))
            }
            _ => Ok(()),
        }
    }
}

/// For what cannot be done by signals.
pub(super) fn needs_cgroups(what: &str) -> ErrorBody {
    unsupported(
        format!("{what} needs cgroups"),
        "there are none here, and jobs are switched by signals",
        "`cosched setup` says what to do; docs/waiting.md, chapter 9, what works without.",
    )
}
