//! Settings of the whole machine: the mechanism of the switch, the slot length.

use super::Driver;
use crate::config::SLOT_LENGTH_MS;
use crate::refuse::{Answer, invalid};
use cosched_api::PolicyRequest;

impl Driver {
    /// Gives the slot thread the mechanism that the present sharing requires.
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

/// Whether a request changes a setting that all jobs have in common.
pub(super) fn is_for_all(request: &PolicyRequest) -> bool {
    request.packing.is_some() || request.rows_max.is_some() || request.shares.is_some() || request.off_hours.is_some()
}

/// Checks the length of a slot.
pub(super) fn check_slot_length(ms: Option<u64>) -> Answer<()> {
    match ms.filter(|ms| !SLOT_LENGTH_MS.contains(ms)) {
        None => Ok(()),
        Some(ms) => Err(invalid(
            format!("a slot cannot be {ms} ms long"),
            format!("slots are {} to {} ms", SLOT_LENGTH_MS.start(), SLOT_LENGTH_MS.end()),
            "100 ms is the default; 20 ms answers faster and costs a little more.",
        )),
    }
}
