//! A model of what users asked for: which jobs were killed and suspended, as they were told, and which processes show nothing of it.

use super::{MS, World};
use crate::host::{Lingering, Local};
use crate::invariants::{ALIVE, OBEYS, RUNS, Seen};
use cosched_cluster::wire::{Ask, KillHow};
use cosched_core::cluster::Stage;
use cosched_core::{Disposition, JobId};
use cosched_node::{Request, SIGKILL};
use std::collections::{BTreeMap, BTreeSet};

/// What users were told is done.
#[derive(Debug, Default)]
pub(super) struct Told {
    killed: BTreeMap<JobId, KillHow>,
    suspended: BTreeSet<JobId>,
}

impl World {
    /// Users were told that these requests are done, in this order.
    pub(super) fn are_told(&mut self, asks: &[Ask]) {
        for ask in asks {
            match ask {
                Ask::Kill { job, how } => self.is_told_of_kill(JobId(*job), *how),
                Ask::Suspend { job } => drop(self.are_done.suspended.insert(JobId(*job))),
                Ask::Resume { job } => drop(self.are_done.suspended.remove(&JobId(*job))),
                _ => (),
            }
        }
    }

    /// A kill in another way than before counts from now on.
    fn is_told_of_kill(&mut self, job: JobId, how: KillHow) {
        if self.are_done.killed.insert(job, how) != Some(how) {
            self.hosts.iter_mut().for_each(|host| host.lingering.retain(|(of, what), _| *of != job || *what == RUNS));
        }
    }

    /// A store with other data knows nothing of it.
    pub(super) fn nothing_is_told(&mut self) {
        self.are_done = Told::default();
        self.hosts.iter_mut().for_each(|host| host.lingering.clear());
    }

    /// A user was told by a node that cannot reach the store that a job is killed there.
    pub(super) fn is_told_here(&mut self, node: usize, what: &Request) {
        let Request::Kill { job, how: KillHow::FORCE, .. } = what else { return };
        let out = self.hosts[node].member().is_some_and(|member| !member.is_joined());
        if let Some(part) = self.hosts[node].processes.parts.get(job).filter(|part| out && part.is_alive()) {
            let of = (part.store_life, *job, part.of.attempt);
            self.hosts[node].killed_here.insert(of);
        }
    }

    /// Whether anything may keep a node from doing what its store says.
    fn is_troubled(&self, node: usize) -> bool {
        let (host, now) = (&self.hosts[node], self.now);
        let store = [self.store_stops_until, self.store_away_until, self.no_room_until, self.refuses_until];
        let own = [host.cut_until, host.deaf_until, host.blind_until, host.denied_until, host.hung_until];
        let disk = [host.disk.full_until, host.disk.errs_until, host.disk.slow_until];
        let until = store.into_iter().chain(own).chain(disk).max().unwrap_or(0);
        let joined = host.member().is_some_and(|member| member.is_joined() && member.alarm().is_none());
        now < until || (self.lossy, self.slow) != (0, 0) || !joined
    }

    /// Reports the processes that do not do what users were told.
    pub(super) fn look_at_effects(&mut self, node: usize) {
        let (now, troubled) = (self.now, self.is_troubled(node));
        let host = &mut self.hosts[node];
        if host.node.is_none() || now < host.hung_until {
            host.lingering.clear();
            return;
        }
        let told = &self.are_done;
        let ends = |id: &JobId| {
            let record = self.state.as_ref().and_then(|state| state.jobs.get(id));
            record.is_none_or(|record| matches!(record.stage, Stage::Ending(_) | Stage::Clearing))
        };
        let mut lingering = Lingering::new();
        for (id, part) in host.processes.parts.iter().filter(|(_, part)| part.is_alive() && !part.forgotten) {
            let here = host.killed_here.contains(&(part.store_life, *id, part.of.attempt)).then_some(KillHow::FORCE);
            let killed = here.or_else(|| told.killed.get(id).copied().filter(|_| !troubled));
            let suspended = !troubled && told.suspended.contains(id) && !ends(id) && part.to != Disposition::Stop;
            let due = [killed.and_then(|how| ends_by(how, part)), suspended.then_some((RUNS, 0))];
            for (what, after_ns) in due.into_iter().flatten() {
                let from = host.lingering.get(&(*id, what)).copied().unwrap_or(now + after_ns);
                lingering.insert((*id, what), from);
            }
        }
        host.lingering = lingering.clone();
        for ((job, what), since) in lingering {
            self.see(&Seen::Lingers { node, job, what, for_ns: now.saturating_sub(since) });
        }
    }
}

/// What a part with processes does that was killed in this way, and after which time it should not; `None` if it may.
fn ends_by(how: KillHow, part: &Local) -> Option<(&'static str, u64)> {
    match how {
        KillHow { signal: SIGKILL, .. } => Some((ALIVE, 0)),
        _ if !part.ignores_kill => Some((OBEYS, 0)),
        KillHow { grace_ms, .. } => grace_ms.map(|ms| (ALIVE, ms * MS)),
    }
}
