//! The properties of a graph that its watchers need, copied before it starts.

use cosched_core::stage::Resource;

use crate::graph::{Graph, Kind, StageId};
use crate::priority::Settings;

/// The properties of a graph.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(super) name: String,
    pub(super) stages: Vec<StageFacts>,
    /// The stages in the order of flow: each after all stages that feed it.
    pub(super) flow: Vec<usize>,
    /// The last stage of each path.
    pub(super) sinks: Vec<usize>,
}

/// The properties of a stage.
#[derive(Debug)]
pub(crate) struct StageFacts {
    pub(super) name: String,
    pub(super) resource: Resource,
    pub(super) kind: Kind,
    /// The scheduling that it requests itself.
    pub(super) settings: Settings,
    /// True if only stages of the same resource run on its threads and it is the first of them: changes of it apply to
    /// all of them.
    pub(super) owns_threads: bool,
    /// The number of its incarnations at the start.
    pub(super) incarnations: u32,
    /// The maximum number of its incarnations; 1 if it cannot be replicated.
    pub(super) replicable_to: u32,
    /// The maximum number of buffers that can wait for it: those of the paths that lead to it.
    pub(super) queue_max: u32,
}

/// Collects the facts of a graph.
pub(crate) fn facts(graph: &Graph) -> Facts {
    let sinks = graph.paths.iter().filter_map(|path| path.stages.last()).map(|id| id.0).collect();
    let stages = (0..graph.stages.len()).map(|index| stage_facts(graph, index)).collect();
    Facts { name: graph.name.clone(), stages, flow: flow(graph), sinks }
}

fn stage_facts(graph: &Graph, index: usize) -> StageFacts {
    let stage = &graph.stages[index];
    let leads_to = |stages: &[StageId]| stages.iter().position(|id| id.0 == index).is_some_and(|place| place > 0);
    let queue_max: usize = graph.paths.iter().filter(|path| leads_to(&path.stages)).map(|path| path.buffers).sum();
    let shares = |other: &crate::Stage| stage.thread.is_some() && other.thread == stage.thread;
    let owns = match &stage.thread {
        _ if stage.kind == Kind::Worker => false,
        None => true,
        Some(_) => {
            let first = graph.stages.iter().position(shares) == Some(index);
            first && graph.stages.iter().filter(|other| shares(other)).all(|other| other.resource == stage.resource)
        }
    };
    StageFacts {
        name: stage.name.clone(),
        resource: stage.resource,
        kind: stage.kind,
        settings: stage.settings.clone(),
        owns_threads: owns,
        incarnations: (stage.incarnations() - stage.reserve) as u32,
        replicable_to: stage.incarnations() as u32,
        queue_max: queue_max as u32,
    }
}

/// First the stages that are fed by no other, then those whose predecessors are all in the order already. A graph in
/// which paths cross in opposite directions has no such order; its remaining stages follow in the order in which they
/// were added.
fn flow(graph: &Graph) -> Vec<usize> {
    let feeds = |from: usize, to: usize| {
        graph.paths.iter().any(|path| path.stages.windows(2).any(|pair| (pair[0].0, pair[1].0) == (from, to)))
    };
    let count = graph.stages.len();
    let mut order: Vec<usize> = Vec::with_capacity(count);
    while order.len() < count {
        let left: Vec<usize> = (0..count).filter(|stage| !order.contains(stage)).collect();
        let free = left.iter().copied().find(|&to| !left.iter().any(|&from| feeds(from, to)));
        order.extend(free.or(left.first().copied()));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Path, Stage};

    fn blocking(name: &str, resource: Resource) -> Stage {
        Stage::blocking(name, resource, |_| Ok(()))
    }

    #[test]
    fn the_order_of_flow_is_not_that_of_making() {
        let mut graph = Graph::new("g");
        let write = graph.stage(blocking("write", Resource::Io).on_thread("disk"));
        let sort = graph.stage(Stage::compute("sort", |_| Ok(())));
        let read = graph.stage(blocking("read", Resource::Io).on_thread("disk"));
        let log = graph.stage(blocking("log", Resource::Io));
        graph.path(Path::new("main").buffers(3, 8).through([read, sort, write]));
        graph.path(Path::new("side").buffers(2, 8).through([read, log]));
        let facts = facts(&graph);
        assert_eq!(facts.flow, [read.0, sort.0, write.0, log.0]);
        assert_eq!(facts.sinks, [write.0, log.0]);
        let queue_max: Vec<u32> = facts.stages.iter().map(|stage| stage.queue_max).collect();
        assert_eq!(queue_max, [3, 3, 0, 2]);
        let owns: Vec<bool> = facts.stages.iter().map(|stage| stage.owns_threads).collect();
        assert_eq!(owns, [true, false, false, true], "write is the first on its thread, sort is on the workers");
    }

    #[test]
    fn a_thread_of_two_resources_belongs_to_none() {
        let mut graph = Graph::new("g");
        let read = graph.stage(blocking("read", Resource::Io).on_thread("both"));
        let send = graph.stage(blocking("send", Resource::Communicate).on_thread("both"));
        graph.path(Path::new("main").buffers(3, 8).through([read, send]));
        assert!(facts(&graph).stages.iter().all(|stage| !stage.owns_threads));
    }
}
