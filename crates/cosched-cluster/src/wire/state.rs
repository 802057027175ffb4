//! The planner's state in its serialised form.

use super::Stored;
use super::config::Config;
use super::names::{Class, OnNodeLoss, Policy, Reason, Standing};
use super::terms::{Suspended, Terms};
use cosched_core::cluster::{
    Capacity, Cells as CoreCells, JobRecord, JobSpec, NodeRecord, NodeWant as CoreNodeWant, Part as CorePart,
    Place as CorePlace, Span, Stage as CoreStage, State as Core, Usage as CoreUsage, Want as CoreWant,
};
use cosched_core::{JobId, NodeId, SlotShare, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The body of `state`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    config: Config,
    generation: u64,
    from_slot: u64,
    start: u32,
    row_turns_ns: Vec<u64>,
    early: Vec<u64>,
    next_order: u64,
    nodes: Vec<Node>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    drained_away: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    usage: Vec<Usage>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    silent: Vec<Silent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kept: Vec<Kept>,
    jobs: Vec<Job>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Usage {
    user: u32,
    cpu_ms: u64,
    at_ns: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    id: u32,
    cpus: u32,
    memory_bytes: u64,
    disk_bytes: u64,
    drains: bool,
    other_threads_seen: u32,
    other_threads: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    id: u64,
    #[serde(default)]
    owner: u32,
    class: Class,
    policy: Option<Policy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    share_permille: Option<u32>,
    want: Want,
    queue: u32,
    on_node_loss: OnNodeLoss,
    order: u64,
    standing: Standing,
    choice: Policy,
    stage: Stage,
    place: Option<Place>,
    ready_since_ns: u64,
    #[serde(default, skip_serializing_if = "Terms::is_none")]
    terms: Terms,
    #[serde(default, skip_serializing_if = "Suspended::is_none")]
    suspended: Suspended,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Want {
    PerNode(Vec<NodeWant>),
    Total { cpus: u32, memory_per_cpu_bytes: u64, disk_bytes: u64 },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeWant {
    node: u32,
    cpus: u32,
    cpus_min: u32,
    memory_bytes: u64,
    disk_bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Stage {
    Waiting(Reason),
    Ready,
    Clearing,
    Ending(Reason),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    parts: Vec<Part>,
    row: Option<u32>,
    cells: Vec<Cells>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    node: u32,
    cpus: u32,
    memory_bytes: u64,
    disk_bytes: u64,
}

/// A node whose lease has expired.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Silent {
    node: u32,
    since_ns: u64,
}

/// A job's part on a dead node.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    job: u64,
    part: Part,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cells {
    node: u32,
    first: u32,
    count: u32,
}

impl Stored for Core {
    const FORMAT: &'static str = "cosched-state";
    const VERSION: u32 = 1;
    type Body = State;

    fn to_body(&self) -> State {
        let Core { config, generation, from_slot, start, row_turns, early, next_order, nodes, .. } = self;
        let Core { drained_away, silent, kept, usage, jobs, .. } = self;
        let kept = kept.values().flatten().map(|(job, part)| Kept { job: job.0, part: part.into() });
        let used = |(user, usage): (&u32, &CoreUsage)| Usage { user: *user, cpu_ms: usage.cpu_ms, at_ns: usage.at.0 };
        State {
            config: config.into(),
            generation: *generation,
            from_slot: *from_slot,
            start: *start,
            row_turns_ns: row_turns.iter().map(|t| t.0).collect(),
            early: early.iter().map(|id| id.0).collect(),
            next_order: *next_order,
            nodes: nodes.iter().map(|(id, node)| Node::new(*id, node)).collect(),
            drained_away: drained_away.iter().map(|id| id.0).collect(),
            usage: usage.iter().map(used).collect(),
            silent: silent.iter().map(|(id, since)| Silent { node: id.0, since_ns: since.0 }).collect(),
            kept: kept.collect(),
            jobs: jobs.iter().map(|(id, job)| Job::new(*id, job)).collect(),
        }
    }

    fn from_body(body: State) -> Result<Core, String> {
        let State { config, generation, from_slot, start, row_turns_ns, early, next_order, nodes, .. } = body;
        let State { drained_away, silent, kept: of_body, usage, jobs, .. } = body;
        let used = |usage: Usage| (usage.user, CoreUsage { cpu_ms: usage.cpu_ms, at: Time(usage.at_ns) });
        let mut kept: BTreeMap<NodeId, BTreeMap<JobId, CorePart>> = BTreeMap::new();
        for Kept { job, part } in of_body {
            let part = CorePart::from(part);
            kept.entry(part.node).or_default().insert(JobId(job), part);
        }
        let (many_nodes, many_jobs) = (nodes.len(), jobs.len());
        let state = Core {
            config: config.into(),
            generation,
            from_slot,
            start,
            row_turns: row_turns_ns.into_iter().map(Time).collect(),
            early: early.into_iter().map(JobId).collect(),
            next_order,
            nodes: nodes.into_iter().map(Node::known).collect(),
            drained_away: drained_away.into_iter().map(NodeId).collect(),
            usage: usage.into_iter().map(used).collect(),
            silent: silent.into_iter().map(|silent| (NodeId(silent.node), Time(silent.since_ns))).collect(),
            kept,
            jobs: jobs.into_iter().map(Job::known).collect(),
        };
        if state.nodes.len() < many_nodes || state.jobs.len() < many_jobs {
            return Err("a node or a job is listed twice".to_owned());
        }
        Ok(state)
    }
}

impl Node {
    fn new(id: NodeId, node: &NodeRecord) -> Node {
        let NodeRecord { capacity, drains, other_threads_seen, other_threads } = *node;
        let Capacity { cpus, memory_bytes, disk_bytes } = capacity;
        Node { id: id.0, cpus, memory_bytes, disk_bytes, drains, other_threads_seen, other_threads }
    }

    fn known(self) -> (NodeId, NodeRecord) {
        let Node { id, cpus, memory_bytes, disk_bytes, drains, other_threads_seen, other_threads } = self;
        let capacity = Capacity { cpus, memory_bytes, disk_bytes };
        (NodeId(id), NodeRecord { capacity, drains, other_threads_seen, other_threads })
    }
}

impl Job {
    fn new(id: JobId, job: &JobRecord) -> Job {
        let JobRecord { spec, order, standing, choice, stage, place, ready_since, suspended } = job;
        // The job's number is the spec's id.
        let JobSpec { id: _, owner, class, policy, slot_share, want, queue, on_node_loss, terms } = spec;
        Job {
            id: id.0,
            owner: *owner,
            class: (*class).into(),
            policy: policy.map(Policy::from),
            share_permille: slot_share.map(SlotShare::permille),
            want: want.into(),
            queue: *queue,
            on_node_loss: (*on_node_loss).into(),
            order: *order,
            standing: (*standing).into(),
            choice: (*choice).into(),
            stage: (*stage).into(),
            place: place.as_ref().map(Place::from),
            ready_since_ns: ready_since.0,
            terms: terms.into(),
            suspended: (*suspended).into(),
        }
    }

    fn known(self) -> (JobId, JobRecord) {
        let Job { id, owner, class, policy, share_permille, want, queue, on_node_loss, .. } = self;
        let Job { order, standing, choice, stage, place, ready_since_ns, terms, suspended, .. } = self;
        let spec = JobSpec {
            id: JobId(id),
            owner,
            class: class.into(),
            policy: policy.map(Into::into),
            slot_share: share_permille.and_then(SlotShare::new),
            want: want.into(),
            queue,
            on_node_loss: on_node_loss.into(),
            terms: terms.into(),
        };
        let record = JobRecord {
            spec,
            order,
            standing: standing.into(),
            choice: choice.into(),
            stage: stage.into(),
            place: place.map(Into::into),
            ready_since: Time(ready_since_ns),
            suspended: suspended.into(),
        };
        (JobId(id), record)
    }
}

impl From<&CoreWant> for Want {
    fn from(want: &CoreWant) -> Want {
        let per_node = |want: &CoreNodeWant| {
            let CoreNodeWant { node, cpus, cpus_min, memory_bytes, disk_bytes } = *want;
            NodeWant { node: node.0, cpus, cpus_min, memory_bytes, disk_bytes }
        };
        match *want {
            CoreWant::PerNode(ref wants) => Want::PerNode(wants.iter().map(per_node).collect()),
            CoreWant::Total { cpus, memory_per_cpu_bytes, disk_bytes } => {
                Want::Total { cpus, memory_per_cpu_bytes, disk_bytes }
            }
        }
    }
}

impl From<Want> for CoreWant {
    fn from(want: Want) -> CoreWant {
        let per_node = |want: NodeWant| {
            let NodeWant { node, cpus, cpus_min, memory_bytes, disk_bytes } = want;
            CoreNodeWant { node: NodeId(node), cpus, cpus_min, memory_bytes, disk_bytes }
        };
        match want {
            Want::PerNode(wants) => CoreWant::PerNode(wants.into_iter().map(per_node).collect()),
            Want::Total { cpus, memory_per_cpu_bytes, disk_bytes } => {
                CoreWant::Total { cpus, memory_per_cpu_bytes, disk_bytes }
            }
        }
    }
}

impl From<CoreStage> for Stage {
    fn from(stage: CoreStage) -> Stage {
        match stage {
            CoreStage::Waiting(reason) => Stage::Waiting(reason.into()),
            CoreStage::Ready => Stage::Ready,
            CoreStage::Clearing => Stage::Clearing,
            CoreStage::Ending(reason) => Stage::Ending(reason.into()),
        }
    }
}

impl From<Stage> for CoreStage {
    fn from(stage: Stage) -> CoreStage {
        match stage {
            Stage::Waiting(reason) => CoreStage::Waiting(reason.into()),
            Stage::Ready => CoreStage::Ready,
            Stage::Clearing => CoreStage::Clearing,
            Stage::Ending(reason) => CoreStage::Ending(reason.into()),
        }
    }
}

impl From<&CorePart> for Part {
    fn from(part: &CorePart) -> Part {
        let CorePart { node, cpus, memory_bytes, disk_bytes } = *part;
        Part { node: node.0, cpus, memory_bytes, disk_bytes }
    }
}

impl From<Part> for CorePart {
    fn from(part: Part) -> CorePart {
        let Part { node, cpus, memory_bytes, disk_bytes } = part;
        CorePart { node: NodeId(node), cpus, memory_bytes, disk_bytes }
    }
}

impl From<&CorePlace> for Place {
    fn from(place: &CorePlace) -> Place {
        let cells = |cells: &CoreCells| {
            let CoreCells { node, cpus: Span { first, count } } = *cells;
            Cells { node: node.0, first, count }
        };
        let CorePlace { parts, home } = place;
        Place {
            parts: parts.iter().map(Part::from).collect(),
            row: home.as_ref().map(|(row, _)| *row),
            cells: home.iter().flat_map(|(_, of_home)| of_home.iter().map(cells)).collect(),
        }
    }
}

impl From<Place> for CorePlace {
    fn from(place: Place) -> CorePlace {
        let cells = |cells: Cells| {
            let Cells { node, first, count } = cells;
            CoreCells { node: NodeId(node), cpus: Span { first, count } }
        };
        let Place { parts, row, cells: of_home } = place;
        let home = row.map(|row| (row, of_home.into_iter().map(cells).collect()));
        CorePlace { parts: parts.into_iter().map(CorePart::from).collect(), home }
    }
}
