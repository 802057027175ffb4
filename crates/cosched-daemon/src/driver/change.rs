//! Signals to what is here of a job, and what may be changed of one.

use super::{Driver, machine};
use crate::clock::unix_ms;
use crate::record::Record;
use crate::refuse::{Answer, internal, refuse};
use crate::rights::Peer;
use cosched_api::{ErrorCode, Job, KillRequest, PolicyRequest};
use cosched_cluster::wire::KillHow;
use cosched_core::JobId;

pub(super) const SIGKILL: i32 = 9;

/// Whether a signal asks a program to end: after these, and only these, a grace period makes sense.
pub(super) fn asks_to_end(signal: i32) -> bool {
    [1, 2, 3, 15].contains(&signal)
}

/// Whether there is such a signal, for whatever job.
pub(super) fn check_signal(signal: i32) -> Answer<()> {
    if (1..=64).contains(&signal) {
        return Ok(());
    }
    let (what, hint) = (format!("there is no signal {signal}"), "Use 15 (TERM) to ask, 9 (KILL) to force.");
    Err(refuse(ErrorCode::Invalid, what, "signals are 1 to 64", hint))
}

impl Driver {
    /// Sends a signal to every process of a job.
    pub(super) fn kill(&mut self, peer: Peer, id: u64, request: KillRequest) -> Answer<Job> {
        let KillRequest { signal, grace_ms, here: _ } = request;
        let record = self.changeable(peer, id)?;
        let bound = record.decided.suspended_by.is_some() && !self.rights.is_admin(peer);
        // A stopped process takes no polite signal: let it run to its end.
        if asks_to_end(signal) && record.suspended {
            // Also when the disk is full.
            self.remember(id, |r| r.event(unix_ms(), "resumed", by(peer)));
            self.cluster.node.suspend(JobId(id), false);
            self.settle(false);
        }
        let Some(live) = self.live.get_mut(&id) else { return self.view_here(id) };
        let sent = if signal == SIGKILL { live.cgroup.kill() } else { live.cgroup.signal_all(signal).map(drop) };
        sent.map_err(|e| internal(format!("job {id} could not be signalled"), e))?;
        if asks_to_end(signal) {
            // What an administrator has suspended is let run to end, not to ignore the signal and go on.
            let grace_ms = grace_ms.or(bound.then_some(KillHow::GRACE_MS));
            let now = self.cluster.moment().steady;
            let node = &mut self.cluster.node;
            let after = |ms: u64| now + ms.saturating_mul(1_000_000);
            let (at, latest) = (grace_ms.map(after), after(KillHow::GRACE_MS));
            let at = if bound { [at, node.kills_at(JobId(id)), Some(latest)].into_iter().flatten().min() } else { at };
            node.kill_at(JobId(id), at);
        }
        self.remember(id, |r| r.event(unix_ms(), "signal", format!("signal {signal} {}", by(peer))));
        // A job without a process has none whose end would end it.
        if record.pid == 0 && (signal == SIGKILL || asks_to_end(signal)) {
            self.cluster.node.close(JobId(id));
            self.settle(false);
        }
        self.view_here(id)
    }

    /// The record of a job that runs and that `peer` may change.
    pub(super) fn changeable(&self, peer: Peer, id: u64) -> Answer<Record> {
        let record = self.record(id)?;
        self.rights.change_job(peer, record)?;
        if record.ended() {
            return Err(refuse(
                ErrorCode::Conflict,
                format!("job {id} has ended"),
                "It has no processes any more",
                "`cosched ps` lists the jobs that run.",
            ));
        }
        Ok(record.clone())
    }
}

/// What a job has of its own is a policy alone.
pub(super) fn check_own_policy(request: &PolicyRequest) -> Answer<()> {
    let common = request.sharing.is_some() || request.slot_length_ms.is_some() || request.ceiling.is_some();
    if common || machine::is_for_all(request) {
        return Err(refuse(
            ErrorCode::Invalid,
            "sharing and slot length are not a job's own",
            "all gangs of a machine share one matrix",
            "Set them for the machine: `cosched policy gang --sharing soft --slot 100ms`.",
        ));
    }
    Ok(())
}

pub(super) fn by(peer: Peer) -> String {
    format!("by {}", crate::users::user_name(peer.uid))
}
