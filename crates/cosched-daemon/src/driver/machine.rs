//! What holds for the whole machine: policy, sharing, slot length; and the wire's words in core's.

use super::Driver;
use crate::config::SLOT_LENGTH_MS;
use crate::refuse::{Answer, refuse};
use cosched_api::{ErrorCode, PolicyRequest};

impl Driver {
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

/// Whether a request changes what all jobs have in common.
pub(super) fn is_for_all(request: &PolicyRequest) -> bool {
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
pub(crate) fn core_class(class: cosched_api::Class) -> cosched_core::Class {
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
