//! What holds for the whole machine: policy, sharing, slot length; and the wire's words in core's.

use super::Driver;
use crate::clock::now;
use crate::config::SLOT_LENGTH_MS;
use crate::refuse::{Answer, internal, refuse, unwritten};
use crate::rights::Peer;
use cosched_api::{ErrorCode, PolicyRequest};
use cosched_core::PlannerInput;

impl Driver {
    /// Changes the machine's policy while jobs run.
    pub(super) fn machine_policy(&mut self, peer: Peer, request: PolicyRequest) -> Answer<()> {
        self.rights.change_machine(peer)?;
        check_slot_length(request.slot_length_ms)?;
        if request.ceiling.is_some() {
            return Err(refuse(
                ErrorCode::Unsupported,
                "there is no ceiling here",
                "this machine plans without one",
                "Set `ceiling` in the configuration (1.0 for none yet) and start the daemon again; then it can be changed.",
            ));
        }
        if is_for_clusters(&request) {
            return Err(refuse(
                ErrorCode::Unsupported,
                "packing, rows and shares cannot be changed here",
                "this daemon serves one machine, which has them from its configuration",
                "Set `packing`, [shares] and [off_hours] in cosched.toml, and restart the daemon; jobs go on meanwhile.",
            ));
        }
        let mut settings = self.state.settings.clone();
        settings.policy = request.policy.or(settings.policy);
        settings.sharing = request.sharing.or(settings.sharing);
        settings.slot_length_ms = request.slot_length_ms.or(settings.slot_length_ms);
        self.store.settings(&mut self.state, settings).map_err(|e| unwritten(self.store.dir(), &e))?;
        let inputs = [
            request.policy.map(|p| PlannerInput::MachinePolicy(core_policy(p))),
            request.sharing.map(|s| PlannerInput::MachineSharing(core_sharing(s))),
            request.slot_length_ms.map(|ms| PlannerInput::SlotLength(ms * 1_000_000)),
        ];
        for input in inputs.into_iter().flatten() {
            self.planner.handle(now(), input).map_err(|e| internal("the planner refused the change", e))?;
        }
        self.settle(false);
        self.apply_mechanism().map_err(|e| internal("the mechanism of the switch could not be changed", e))
    }

    /// Gives the slot thread the mechanism that the present sharing asks for.
    pub(super) fn apply_mechanism(&mut self) -> anyhow::Result<()> {
        let soft = self.plan.sharing != cosched_core::Sharing::Strict;
        let wanted = Some(self.config.mechanism.as_str()).filter(|m| *m != "auto");
        let mechanism = cosched_linux::mechanism::choose(&self.machinery.tree, soft, wanted)?;
        tracing::info!(mechanism = mechanism.name(), "switching");
        self.mechanism = mechanism.name();
        self.machinery.slots.set_mechanism(mechanism);
        self.settle(true);
        Ok(())
    }
}

/// Whether a request changes what only a cluster keeps in its store.
pub(super) fn is_for_clusters(request: &PolicyRequest) -> bool {
    request.packing.is_some() || request.rows_max.is_some() || request.shares.is_some() || request.off_hours.is_some()
}

/// Whether a slot can be so long.
pub(super) fn check_slot_length(ms: Option<u64>) -> Answer<()> {
    match ms.filter(|ms| !SLOT_LENGTH_MS.contains(ms)) {
        None => Ok(()),
        Some(ms) => Err(refuse(
            ErrorCode::Invalid,
            format!("a slot cannot be {ms} ms long"),
            format!("slots are {} to {} ms", SLOT_LENGTH_MS.start(), SLOT_LENGTH_MS.end()),
            "100 ms is the default; 20 ms answers faster and costs a little more.",
        )),
    }
}

/// The wire's class in core's words.
pub(super) fn core_class(class: cosched_api::Class) -> cosched_core::Class {
    match class {
        cosched_api::Class::Express => cosched_core::Class::Express,
        cosched_api::Class::Interactive => cosched_core::Class::Interactive,
        cosched_api::Class::Batch => cosched_core::Class::Batch,
        cosched_api::Class::Standby => cosched_core::Class::Standby,
    }
}

/// The wire's policy in core's words.
pub(crate) fn core_policy(policy: cosched_api::Policy) -> cosched_core::Policy {
    match policy {
        cosched_api::Policy::Gang => cosched_core::Policy::Gang,
        cosched_api::Policy::Local => cosched_core::Policy::Local,
        cosched_api::Policy::Pb => cosched_core::Policy::Pb,
        cosched_api::Policy::Dcs => cosched_core::Policy::Dcs,
        cosched_api::Policy::Auto => cosched_core::Policy::Auto,
    }
}

/// The wire's sharing in core's words.
pub(crate) fn core_sharing(sharing: cosched_api::Sharing) -> cosched_core::Sharing {
    match sharing {
        cosched_api::Sharing::Strict => cosched_core::Sharing::Strict,
        cosched_api::Sharing::Paired => cosched_core::Sharing::Paired,
        cosched_api::Sharing::Soft => cosched_core::Sharing::Soft,
    }
}

/// Core's policy in the wire's words.
pub(super) fn wire_policy(policy: cosched_core::Policy) -> cosched_api::Policy {
    match policy {
        cosched_core::Policy::Gang => cosched_api::Policy::Gang,
        cosched_core::Policy::Local => cosched_api::Policy::Local,
        cosched_core::Policy::Pb => cosched_api::Policy::Pb,
        cosched_core::Policy::Dcs => cosched_api::Policy::Dcs,
        cosched_core::Policy::Auto => cosched_api::Policy::Auto,
    }
}

/// Core's sharing in the wire's words.
pub(super) fn wire_sharing(sharing: cosched_core::Sharing) -> cosched_api::Sharing {
    match sharing {
        cosched_core::Sharing::Strict => cosched_api::Sharing::Strict,
        cosched_core::Sharing::Paired => cosched_api::Sharing::Paired,
        cosched_core::Sharing::Soft => cosched_api::Sharing::Soft,
    }
}
