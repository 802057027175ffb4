//! The node's own planner is told of what the cluster knows about jobs of this node alone, and of the cluster's settings.

use super::super::{Driver, machine};
use super::words;
use crate::clock::{now, unix_ms};
use crate::record::Record;
use cosched_cluster::wire::Decided;
use cosched_core::cluster::{JobRecord, Stage};
use cosched_core::{Class, JobId, NodeId, PlannerInput, Policy, Shares, Sharing, Standing};

/// What the node's own planner was told of a job last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mirrored {
    class: Class,
    policy: Option<Policy>,
    suspended: bool,
    asleep: bool,
    /// CPUs at a time here, and the memory that it says it needs.
    cpus: Option<u32>,
    declared_bytes: u64,
    decided: Decided,
}

impl Mirrored {
    fn of(record: &JobRecord, node: Option<NodeId>, decided: Decided) -> Mirrored {
        let part = record.place.as_ref().and_then(|place| place.parts.iter().find(|part| Some(part.node) == node));
        let declared_bytes = part.map_or(0, |part| record.spec.want.memory_bytes(part.node, part.cpus));
        let cpus = part.map(|part| part.cpus);
        // What is to end must be able to.
        let ends = matches!(record.stage, Stage::Ending(_) | Stage::Clearing);
        let suspended = record.standing == Standing::Suspended && !ends;
        let asleep = record.standing == Standing::Asleep;
        let (class, policy) = (record.spec.class, record.spec.policy);
        Mirrored { class, policy, suspended, asleep, cpus, declared_bytes, decided }
    }
}

impl Mirrored {
    /// What the own planner was told when the job began or was found.
    fn of_record(record: &Record) -> Mirrored {
        let policy = record.own_policy.map(machine::core_policy);
        Mirrored {
            class: machine::core_class(record.class),
            policy,
            suspended: record.suspended,
            asleep: false,
            cpus: Some(record.cpus),
            declared_bytes: record.mem_bytes.unwrap_or(0),
            decided: record.decided,
        }
    }

    /// What the record of the job says of it, too.
    fn kept(&self) -> (Class, Option<Policy>, bool, Decided) {
        (self.class, self.policy, self.suspended, self.decided)
    }
}

/// The cluster's settings, as far as a node plans by them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Common {
    slot_length_ns: u64,
    policy: Policy,
    sharing: Sharing,
    shares: Shares,
}

impl Driver {
    /// Brings the own planner into step.
    pub(super) fn mirror(&mut self) {
        let cluster = &self.cluster;
        let Some(state) = cluster.member.state() else { return };
        let node = cluster.member.id();
        let config = &state.config;
        let ceiling = config.ceiling_permille;
        let common = Common {
            slot_length_ns: config.slot_length_ns,
            policy: config.policy,
            sharing: config.sharing,
            shares: *config.shares(),
        };
        let mirrored = |id: &u64| {
            let decided = cluster.member.job(JobId(*id)).map(|job| job.decided).unwrap_or_default();
            let new = Mirrored::of(state.jobs.get(&JobId(*id))?, node, decided);
            (cluster.mirrored.get(id) != Some(&new)).then_some((*id, new))
        };
        let jobs: Vec<(u64, Mirrored)> = self.live.keys().filter_map(mirrored).collect();
        if std::mem::replace(&mut self.cluster.ceiling, ceiling) != ceiling {
            self.plan_is_stale = true;
        }
        self.mirror_settings(common);
        for (id, mirrored) in jobs {
            self.mirror_resources(id, mirrored);
            if self.is_own(id) {
                self.mirror_job(id, mirrored);
            }
        }
    }

    /// Whether the node's own planner plans this job.
    pub(in super::super) fn is_own(&self, id: u64) -> bool {
        self.state.jobs.get(&id).is_some_and(|record| record.part.is_none_or(|part| !part.spans))
    }

    fn mirror_settings(&mut self, common: Common) {
        let own = &self.own_plan;
        let mut inputs = Vec::new();
        if own.slot_length_ns != common.slot_length_ns {
            inputs.push(PlannerInput::SlotLength(common.slot_length_ns));
        }
        if own.policy != common.policy {
            inputs.push(PlannerInput::MachinePolicy(common.policy));
        }
        if own.sharing != common.sharing {
            inputs.push(PlannerInput::MachineSharing(common.sharing));
        }
        if self.shares != common.shares {
            self.shares = common.shares;
            inputs.push(PlannerInput::Shares(common.shares));
        }
        let sharing = own.sharing != common.sharing;
        inputs.into_iter().for_each(|input| self.own_input(input));
        if sharing {
            self.mechanism_is_stale = true;
        }
    }

    /// What a job wants from now on, as far as it has a part here.
    fn mirror_resources(&mut self, id: u64, new: Mirrored) {
        let (Some(cpus), Some(record)) = (new.cpus, self.state.jobs.get(&id)) else { return };
        let mem_bytes = Some(new.declared_bytes).filter(|bytes| *bytes > 0);
        let other_cpus = record.cpus != cpus;
        if !other_cpus && record.mem_bytes == mem_bytes {
            return;
        }
        self.remember(id, |record| {
            (record.cpus, record.mem_bytes) = (cpus, mem_bytes);
            record.event(unix_ms(), "resources", format!("{cpus} CPUs here"));
        });
        if other_cpus && self.is_own(id) {
            self.own_input(PlannerInput::Cpus(JobId(id), cpus));
        }
    }

    fn mirror_job(&mut self, id: u64, new: Mirrored) {
        let (job, known) = (JobId(id), self.state.jobs.get(&id).map(Mirrored::of_record));
        let old = self.cluster.mirrored.insert(id, new).or(known);
        if old.map(|old| old.class) != Some(new.class) {
            self.own_input(PlannerInput::Class(job, new.class));
        }
        if old.map(|old| old.policy) != Some(new.policy) {
            self.own_input(PlannerInput::JobPolicy(job, new.policy));
        }
        match (old.is_some_and(|old| old.suspended), new.suspended) {
            (false, true) => self.own_input(PlannerInput::Suspend(job)),
            (true, false) => self.own_input(PlannerInput::Resume(job)),
            _ => (),
        }
        if known.map(|known| known.kept()) != Some(new.kept()) {
            // So that it is scheduled the same before the store answers, or without one.
            self.remember(id, |record| {
                record.class = words::api_class(new.class.into());
                record.own_policy = new.policy.map(machine::wire_policy);
                record.suspended = new.suspended;
                record.decided = new.decided;
            });
        }
        // A user has resumed it, maybe on another node.
        let woken = old.is_some_and(|old| old.asleep) && !new.asleep;
        if woken && self.live.get(&id).is_some_and(|live| live.asleep) {
            self.awake(job, "resumed".to_owned());
        }
    }

    pub(super) fn own_input(&mut self, input: PlannerInput) {
        if let Err(e) = self.planner.handle(now(), input) {
            tracing::error!("the node's own planner refused what the cluster says: {e}");
        }
    }
}
