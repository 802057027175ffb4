//! `[limits]`: a user's present use of this daemon, and refusals beyond the limits. Administrators have no limits.
//!
//! Decided by the daemon that receives the request, from what it knows: in a cluster the jobs of all nodes, and its own processes, records and
//! connections. The planner's own limit of waiting jobs applies in addition.

use super::{Driver, Live, annex};
use crate::call::Op;
use crate::record::Record;
use crate::refuse::{Answer, refuse};
use crate::rights::Peer;
use cosched_api::{self as api, ErrorCode};

/// A user's present use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Used {
    pub(super) jobs: u64,
    pub(super) waiting: u64,
    pub(super) memory_bytes: u64,
    pub(super) processes: u64,
    pub(super) record_bytes: u64,
    /// The number of the job that has the most.
    pub(super) tasks_per_job: u64,
}

impl Driver {
    /// Refuses a request that would exceed its user's limits.
    pub(super) fn check_limits(&self, peer: Peer, op: &Op) -> Answer<()> {
        let uid = match op {
            // Only an administrator registers for another user, without limits; the job counts for its owner from then on.
            Op::Register(_) | Op::AddProcess(..) | Op::AddCgroup(..) | Op::Resources(..)
                if !self.rights.is_admin(peer) =>
            {
                peer.uid
            }
            _ => return Ok(()),
        };
        let limits = &self.config.limits;
        let over = |name: &str, have: u64, more: u64, max: u64| match have.saturating_add(more) > max {
            true => Err(over(name, have, max)),
            false => Ok(()),
        };
        let memory = |have: u64, total: Option<u64>, nodes: &[api::NodeResources]| {
            let nodes = nodes.iter().filter_map(|node| node.memory_bytes).fold(0, u64::saturating_add);
            let wanted = total.unwrap_or(0).saturating_add(nodes);
            limits.memory_bytes.filter(|_| wanted > 0).map_or(Ok(()), |max| over("memory", have, wanted, max))
        };
        match op {
            Op::Register(request) => {
                let used = self.used_by(uid);
                over("jobs", used.jobs, 1, limits.jobs)?;
                over("waiting_jobs", used.waiting, 1, limits.waiting_jobs)?;
                over("processes", used.processes, 1, limits.processes)?;
                over("record_bytes", used.record_bytes, 0, limits.record_bytes)?;
                memory(used.memory_bytes, request.mem_bytes, &request.nodes)
            }
            Op::AddCgroup(..) => {
                let used = self.used_by(uid);
                over("jobs", used.jobs, 1, limits.jobs)?;
                over("record_bytes", used.record_bytes, 0, limits.record_bytes)
            }
            // One for each rank: the user's jobs need not be counted for it.
            Op::AddProcess(..) => over("processes", self.processes_of(uid), 1, limits.processes),
            Op::Resources(id, request) => {
                let others = self.jobs_of(uid).into_iter().filter(|(of, ..)| of != id);
                let have = others.map(|(_, _, bytes)| bytes).fold(0, u64::saturating_add);
                memory(have, request.mem_bytes, &request.nodes)
            }
            _ => Ok(()),
        }
    }

    /// `GET /v1/limits`
    pub(super) fn view_limits(&self, peer: Peer) -> api::LimitList {
        let tasks_per_job = self.live_of(peer.uid).filter_map(|live| live.cgroup.tasks()).max().unwrap_or(0);
        let (limits, used) = (&self.config.limits, Used { tasks_per_job, ..self.used_by(peer.uid) });
        let exempt = self.rights.is_admin(peer);
        let (places, budget) = &self.identity.inside;
        let (connections, connections_max) = places.of_user(peer.uid);
        let (buffered, buffered_max) = budget.of_user(peer.uid);
        let limit = |name: &str, used: u64, max: Option<u64>| api::Limit { name: name.to_owned(), used, max };
        let limits = vec![
            limit("jobs", used.jobs, Some(limits.jobs)),
            limit("waiting_jobs", used.waiting, Some(limits.waiting_jobs)),
            limit("processes", used.processes, Some(limits.processes)),
            limit("tasks_per_job", used.tasks_per_job, Some(limits.tasks_per_job)),
            limit("memory_bytes", used.memory_bytes, limits.memory_bytes),
            limit("record_bytes", used.record_bytes, Some(limits.record_bytes)),
            limit("connections", connections as u64, Some(connections_max as u64)),
            limit("buffered_bytes", buffered, Some(buffered_max)),
        ];
        let user = crate::users::user_name(peer.uid);
        api::LimitList { uid: peer.uid, user, exempt, limits }
    }

    /// Counts a process that was put into a job, or taken out of one.
    pub(super) fn count_process(&mut self, id: u64, added: bool) {
        if let Some(live) = self.live.get_mut(&id) {
            live.registered = if added { live.registered.saturating_add(1) } else { live.registered.saturating_sub(1) };
        }
    }

    pub(super) fn used_by(&self, uid: u32) -> Used {
        let mut used = Used::default();
        for (_, waits, memory_bytes) in self.jobs_of(uid) {
            used.jobs += 1;
            used.waiting += u64::from(waits);
            used.memory_bytes = used.memory_bytes.saturating_add(memory_bytes);
        }
        // What is adopted costs as much in a job as alone.
        for annexes in self.live_of(uid).map(|live| live.cgroup.annexes()) {
            used.jobs += annexes.len() as u64;
            used.record_bytes += annex::paths_bytes(&annexes);
        }
        let own = |record: &&Record| record.uid == uid;
        used.processes = self.processes_of(uid);
        let living = self.state.jobs.values().filter(own).filter(|record| !record.ended());
        used.record_bytes += living.map(Record::bytes).sum::<u64>();
        used
    }

    fn processes_of(&self, uid: u32) -> u64 {
        self.live_of(uid).map(|live| u64::from(live.registered)).sum()
    }

    fn live_of(&self, uid: u32) -> impl Iterator<Item = &Live> {
        let own = move |id: &u64| self.state.jobs.get(id).is_some_and(|record| record.uid == uid);
        self.live.iter().filter(move |(id, _)| own(id)).map(|(_, live)| live)
    }
}

fn over(name: &str, have: u64, max: u64) -> api::ErrorBody {
    refuse(
        ErrorCode::Limit,
        format!("the limit of {name} of one user is reached"),
        format!("you have {have}, and the maximum is {max}"),
        "Let some of your jobs end; `cosched limits` shows what you have. An administrator can raise it in [limits].",
    )
}
