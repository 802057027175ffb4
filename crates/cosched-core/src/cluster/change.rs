//! The effect of each input on the state. A refused input changes nothing.

use super::input::{Input, ROWS_MAX, Refusal};
use super::planner::Planner;
use super::queue::Queue;
use super::state::{JobRecord, JobSpec, NEVER, NodeWant, Stage, Want};
use super::terms::Suspended;
use crate::id::{JobId, NodeId};
use crate::job::Policy;
use crate::plan::Standing;
use crate::policy::SLOT_LENGTH_NS;
use crate::policy::share::SlotShare;
use crate::reason::Reason;
use crate::time::Time;
use alloc::vec::Vec;

/// The permitted range of the silence after which a node counts as dead, in nanoseconds: 5 s, so at least some leases, to a year.
pub(super) const NODE_DEAD_AFTER_NS: core::ops::RangeInclusive<u64> = 5_000_000_000..=31_536_000_000_000_000;

impl Planner {
    pub(super) fn take(&mut self, now: Time, input: Input) -> Result<Reason, Refusal> {
        match input {
            Input::Join(id, capacity) => self.join(id, capacity).map(|()| Reason::NodeJoined),
            Input::Resize(id, capacity) => self.resize(id, capacity).map(|()| Reason::NodeJoined),
            Input::Silent(id) => self.set_silent(id, Some(now)).map(|()| Reason::LeaseOut),
            Input::Heard(id) => self.set_silent(id, None).map(|()| Reason::NodeJoined),
            Input::Leave(id) => self.leave(id).map(|()| Reason::NodeLost),
            Input::LosePart(id, node) => {
                self.job(id)?;
                self.lose_part(id, node);
                self.rebuild();
                Ok(Reason::NodeLost)
            }
            Input::Restarted(id) => {
                self.restarted(id);
                Ok(Reason::NodeLost)
            }
            Input::Drain(id, drains) => {
                self.drain(id, drains);
                Ok(Reason::UserRequest)
            }
            Input::Load(id, threads) => {
                self.state.nodes.get_mut(&id).ok_or(Refusal::UnknownNode(id))?.other_threads_seen = threads;
                Ok(Reason::SampleDue)
            }
            Input::Submit(spec) => self.submit(now, spec).map(|()| Reason::Arrival),
            Input::End(id) => self.forget(now, id).map(|()| Reason::Departure),
            Input::MainLost(id) => self.lose_main(id).map(|()| Reason::NodeLost),
            Input::Cleared(id) => self.cleared(now, id).map(|()| Reason::Departure),
            Input::Memory(id, node, bytes) => {
                self.job(id)?;
                self.note_memory(id, node, bytes);
                Ok(Reason::MemoryGrew)
            }
            Input::Rebalance => {
                self.rebalance();
                Ok(Reason::Rebalanced)
            }
            Input::Kill(id) => self.kill(now, id).map(|()| Reason::UserRequest),
            Input::Failed(id) => {
                self.failed(id);
                Ok(Reason::Departure)
            }
            Input::Suspend(_)
            | Input::Resume(_)
            | Input::Class(..)
            | Input::JobPolicy(..)
            | Input::Share(..)
            | Input::Choice(..)
            | Input::Asleep(_)
            | Input::Awake(_) => self.change_job(now, input),
            Input::Period(_)
            | Input::ClusterPolicy(_)
            | Input::ClusterSharing(_)
            | Input::SlotLength(_)
            | Input::Ceiling(_)
            | Input::NodeDeadAfter(_)
            | Input::Packing(_)
            | Input::RowsMax(_)
            | Input::FairShare(_)
            | Input::Shares(..) => self.change_settings(&input),
            Input::Resources(id, want) => self.change_resources(now, id, want).map(|()| Reason::UserRequest),
            Input::Queues(queues) => self.change_queues(queues).map(|()| Reason::Settings),
        }
    }

    fn change_job(&mut self, now: Time, input: Input) -> Result<Reason, Refusal> {
        match input {
            Input::Suspend(id) => Planner::note_standing(self.job(id)?, now, Standing::Suspended),
            Input::Resume(id) => Planner::note_standing(self.job(id)?, now, Standing::Scheduled),
            Input::Class(id, class) => self.job(id)?.spec.class = class,
            Input::JobPolicy(id, policy) => self.job(id)?.spec.policy = policy,
            Input::Share(id, share) => {
                self.job(id)?;
                self.check_share(share)?;
                self.job(id)?.spec.slot_share = share;
            }
            Input::Choice(id, policy, reason) => {
                self.job(id)?.choice = if policy == Policy::Auto { Policy::Gang } else { policy };
                return Ok(reason);
            }
            Input::Asleep(id) => return self.set_asleep(id, Standing::Asleep).map(|()| Reason::NoCpuUsed),
            Input::Awake(id) => return self.set_asleep(id, Standing::Scheduled).map(|()| Reason::CpuUsed),
            _ => (),
        }
        Ok(Reason::UserRequest)
    }

    fn change_settings(&mut self, input: &Input) -> Result<Reason, Refusal> {
        let config = &mut self.state.config;
        match *input {
            Input::Period(period) => {
                config.period = period;
                return Ok(Reason::PeriodBegins);
            }
            Input::ClusterPolicy(policy) => config.policy = policy,
            Input::ClusterSharing(sharing) => config.sharing = sharing,
            Input::SlotLength(ns) if !SLOT_LENGTH_NS.contains(&ns) => return Err(Refusal::SlotLength(ns)),
            Input::SlotLength(ns) => config.slot_length_ns = ns,
            Input::Ceiling(permille) if !(1..=1000).contains(&permille) => return Err(Refusal::Ceiling(permille)),
            Input::Ceiling(permille) => config.ceiling_permille = permille,
            Input::NodeDeadAfter(ns) if !NODE_DEAD_AFTER_NS.contains(&ns) && ns != NEVER => {
                return Err(Refusal::NodeDeadAfter(ns));
            }
            Input::NodeDeadAfter(ns) => config.node_dead_after_ns = ns,
            Input::Packing(packing) => config.packing = packing,
            Input::RowsMax(rows) if !(1..=ROWS_MAX).contains(&rows) => return Err(Refusal::Rows(rows)),
            Input::RowsMax(rows) => config.rows_max = rows,
            Input::FairShare(fair) => config.fair_share = fair,
            Input::Shares(working, off) => (config.working, config.off) = (working, off),
            _ => (),
        }
        Ok(Reason::Settings)
    }

    /// A job refers to its queue by index, so jobs are moved to the new index of the same name.
    fn change_queues(&mut self, queues: Vec<Queue>) -> Result<(), Refusal> {
        let at = |name: &str| queues.iter().position(|queue| queue.name == name);
        if queues.is_empty() || queues.iter().enumerate().any(|(n, queue)| at(&queue.name) != Some(n)) {
            return Err(Refusal::Queues);
        }
        let old = &self.state.config.queues;
        let moved = |(id, job): (&JobId, &JobRecord)| {
            let to = at(&old[job.spec.queue as usize].name).ok_or(Refusal::QueueInUse(*id))?;
            Ok((*id, to as u32))
        };
        let moved: Vec<(JobId, u32)> = self.state.jobs.iter().map(moved).collect::<Result<_, Refusal>>()?;
        for (id, to) in moved {
            self.job(id)?.spec.queue = to;
        }
        self.state.config.queues = queues;
        self.rebuild();
        Ok(())
    }

    fn job(&mut self, id: JobId) -> Result<&mut JobRecord, Refusal> {
        self.state.jobs.get_mut(&id).ok_or(Refusal::UnknownJob(id))
    }

    /// A suspended job stays suspended, whatever its CPU use is.
    fn set_asleep(&mut self, id: JobId, standing: Standing) -> Result<(), Refusal> {
        let job = self.job(id)?;
        if job.standing != Standing::Suspended {
            job.standing = standing;
        }
        Ok(())
    }

    fn submit(&mut self, now: Time, mut spec: JobSpec) -> Result<(), Refusal> {
        spec.want.sort();
        if self.state.jobs.contains_key(&spec.id) {
            return Err(Refusal::DuplicateJob(spec.id));
        }
        self.check_want(spec.queue, &spec.want)?;
        self.check_share(spec.slot_share)?;
        self.check_terms(&spec)?;
        let (id, order) = (spec.id, self.state.next_order);
        self.state.next_order += 1;
        self.waiting.insert((spec.queue, order, id));
        let job = JobRecord {
            spec,
            order,
            standing: Standing::Scheduled,
            choice: Policy::Gang,
            // `settle` decides whether it can start at once.
            stage: Stage::Waiting(Reason::Arrival),
            place: None,
            ready_since: now,
            suspended: Suspended::default(),
        };
        self.state.jobs.insert(id, job);
        Ok(())
    }

    fn check_share(&self, share: Option<SlotShare>) -> Result<(), Refusal> {
        let least = SlotShare::least(self.state.config.slot_length_ns);
        match share.filter(|share| *share < least) {
            Some(wanted) => Err(Refusal::Share { wanted, least }),
            None => Ok(()),
        }
    }

    /// Whether a job of this queue could ever run on the present nodes.
    pub(super) fn check_want(&self, at: u32, want: &Want) -> Result<(), Refusal> {
        let queue = self.state.config.queues.get(at as usize).ok_or(Refusal::UnknownQueue(at))?;
        if let Some(limit) = queue.exceeded(want) {
            return Err(Refusal::Queue(at, limit));
        }
        match want {
            Want::PerNode(wants) => {
                if wants.is_empty() {
                    return Err(Refusal::NoCpus);
                }
                if let Some(pair) = wants.windows(2).find(|pair| pair[0].node == pair[1].node) {
                    return Err(Refusal::DuplicateNode(pair[0].node));
                }
                wants.iter().try_for_each(|want| self.check_node(want))
            }
            Want::Total { cpus: 0, .. } => Err(Refusal::NoCpus),
            Want::Total { cpus, memory_per_cpu_bytes, disk_bytes } => {
                let fit = |node: &super::state::NodeRecord| {
                    let capacity = node.capacity;
                    let fit = capacity.memory_bytes.checked_div(*memory_per_cpu_bytes).unwrap_or(u64::MAX);
                    if capacity.disk_bytes < *disk_bytes { 0 } else { fit.min(capacity.cpus.into()) }
                };
                let most = self.state.nodes.values().map(fit).sum();
                if most < u64::from(*cpus) { Err(Refusal::NeverFits { wanted: *cpus, most }) } else { Ok(()) }
            }
        }
    }

    fn check_node(&self, want: &NodeWant) -> Result<(), Refusal> {
        let NodeWant { node, cpus, cpus_min, memory_bytes, disk_bytes } = *want;
        let has = self.state.nodes.get(&node).ok_or(Refusal::UnknownNode(node))?.capacity;
        if cpus == 0 {
            return Err(Refusal::NoCpus);
        }
        if has.cpus < cpus_min {
            return Err(Refusal::FewCpus { node, wanted: cpus_min, has: has.cpus });
        }
        if has.memory_bytes < memory_bytes {
            return Err(Refusal::LittleMemory { node, wanted: memory_bytes, has: has.memory_bytes });
        }
        if has.disk_bytes < disk_bytes {
            return Err(Refusal::LittleDisk { node, wanted: disk_bytes, has: has.disk_bytes });
        }
        Ok(())
    }

    /// A job that is already being killed is not killed again, but one that was being cleared for a restart is.
    fn kill(&mut self, now: Time, id: JobId) -> Result<(), Refusal> {
        if !matches!(self.job(id)?.stage, Stage::Ending(_)) {
            self.end(id, Reason::UserRequest);
            Planner::note_suspended(self.job(id)?, now);
        }
        Ok(())
    }

    /// Removes a job that has ended.
    fn forget(&mut self, now: Time, id: JobId) -> Result<(), Refusal> {
        let JobRecord { spec, order, .. } = self.job(id)?;
        let key = (spec.queue, *order, id);
        self.note_usage(now, id);
        self.evict(id);
        self.count(id, false);
        self.waiting.remove(&key);
        self.is_over(id);
        self.parts.remove(&id);
        self.state.jobs.remove(&id);
        self.forget_kept(id);
        Ok(())
    }

    /// All processes of a job's previous attempt have ended: it waits again.
    fn cleared(&mut self, now: Time, id: JobId) -> Result<(), Refusal> {
        if self.job(id)?.stage != Stage::Clearing {
            return Err(Refusal::Stage(id));
        }
        self.note_usage(now, id);
        self.count(id, false);
        self.parts.remove(&id);
        self.job(id)?.place = None;
        self.forget_kept(id);
        self.set_stage(id, Stage::Waiting(Reason::NodeLost));
        Ok(())
    }

    /// The nodes that a job may use, for hosts that start its processes.
    pub fn nodes_of(&self, id: JobId) -> Vec<NodeId> {
        self.parts.get(&id).map_or_else(Vec::new, |parts| parts.iter().map(|part| part.node).collect())
    }
}
