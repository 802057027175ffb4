//! Changes of a job: the common checks.

use super::{Driver, machine};
use crate::record::Record;
use crate::refuse::{Answer, invalid};
use crate::rights::Peer;
use cosched_api::PolicyRequest;
use cosched_core::JobId;
use cosched_node::Refusal;

/// Checks the number of a signal, for any job.
pub(super) fn check_signal(signal: i32) -> Answer<()> {
    if (1..=64).contains(&signal) {
        return Ok(());
    }
    let (what, hint) = (format!("there is no signal {signal}"), "Use 15 (TERM) to ask, 9 (KILL) to force.");
    Err(invalid(what, "signals are 1 to 64", hint))
}

impl Driver {
    /// The record of a running job that `peer` may change.
    pub(super) fn changeable(&self, peer: Peer, id: u64) -> Answer<Record> {
        let record = self.record(id)?;
        record.whose().change(self.caller(peer)).map_err(|why| self.refusal(why))?;
        if record.ended() {
            return Err(self.refusal(Refusal::Ended(JobId(id))));
        }
        Ok(record.clone())
    }
}

/// For a single job only the policy can be set.
pub(super) fn check_own_policy(request: &PolicyRequest) -> Answer<()> {
    let common = request.sharing.is_some() || request.slot_length_ms.is_some() || request.ceiling.is_some();
    if common || machine::is_for_all(request) {
        return Err(invalid(
            "a job cannot have its own sharing or slot length",
            "all gangs of a machine share one matrix",
            "Set them for the machine: `cosched policy gang --sharing soft --slot 100ms`.",
        ));
    }
    Ok(())
}
