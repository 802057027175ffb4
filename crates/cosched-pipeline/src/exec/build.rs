//! Turns a graph into what runs: the queues and their ends, the filled pools, and the threads with their
//! work.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use super::shared::{Hop, Next, Shared, StageState};
use super::thread::{Lane, Unit};
use super::worker::Crew;
use crate::buffer::Buffer;
use crate::counters::Counters;
use crate::error::GraphError;
use crate::graph::{Graph, Kind, Path, PathId, Stage, StageId, Work};
use crate::monitor::{self, Watch};
use crate::options::Options;
use crate::queue::{Awake, Bell, End, Gate, Inbox, Join, Plan, Working};

/// What puts buffers into a queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Putter {
    /// A thread, by the first stage on it.
    Thread(usize),
    /// For one path, the join after the incarnations of a stage, or the workers after it: one at a time.
    Join(usize, usize),
    /// Workers that return empty buffers, in any order.
    Crowd,
}

/// Creates the queues, fills the pools, and assigns the work to threads.
pub(crate) fn build(mut graph: Graph, options: &Options) -> Result<(Shared, Vec<Lane>), GraphError> {
    let watch = Watch::new(monitor::facts(&graph), options);
    let awake = Arc::new(Awake::default());
    let mut stages = Vec::with_capacity(graph.stages.len());
    let bells: Vec<Arc<Bell>> = graph.stages.iter().map(|_| Arc::default()).collect();
    for (index, stage) in graph.stages.iter().enumerate() {
        let bell = &bells[thread_of(&graph.stages, index)];
        let counters = watch.counters(index);
        stages.push(state(&graph, StageId(index), stage, counters, bell, &awake));
    }
    let crew = Crew::new(&mut graph, options.workers, &watch);
    lead_to_workers(&graph, &mut stages, &crew);
    for (index, path) in graph.paths.iter().enumerate() {
        let pool = &mut stages[path.stages[0].0].empty;
        for _ in 0..path.buffers {
            let buffer = Buffer::new(PathId(index), path.size_bytes).map_err(|error| GraphError::Memory {
                path: path.name.clone(),
                buffers: path.buffers,
                size_bytes: path.size_bytes,
                why: error.to_string(),
            })?;
            match crew.station_at(index, 0) {
                Some(station) => crew.enter(&awake, station, buffer),
                None => pool.fill(buffer),
            }
        }
    }
    let memory_bytes = graph.memory_bytes();
    let lanes = lanes(graph.stages);
    let shared = Shared {
        name: graph.name,
        stages,
        path_names: graph.paths.into_iter().map(|path| path.name).collect(),
        memory_bytes,
        watch,
        stopping: AtomicBool::new(false),
        failure: Mutex::new(None),
        gate: Gate::new(lanes.iter().filter(|lane| !lane.reserve).count() as u32 + crew.len() as u32),
        crew,
        awake,
    };
    Ok((shared, lanes))
}

/// Directs buffers from threads to stations, wherever a path's next stage or its pool is on workers.
fn lead_to_workers(graph: &Graph, stages: &mut [StageState], crew: &Crew) {
    for (index, path) in graph.paths.iter().enumerate() {
        for (place, id) in path.stages.iter().enumerate() {
            let next = (place + 1) % path.stages.len();
            if let (Some(hop), Some(station)) = (&mut stages[id.0].hops[index], crew.station_at(index, next)) {
                hop.next = Next::Workers(station);
            }
        }
    }
}

/// The index of the first of the stages that share this stage's thread.
fn thread_of(stages: &[Stage], index: usize) -> usize {
    let shares = |other: &Stage| other.thread.is_some() && other.thread == stages[index].thread;
    stages.iter().position(shares).unwrap_or(index)
}

fn state(
    graph: &Graph,
    id: StageId,
    stage: &Stage,
    counters: Arc<Counters>,
    bell: &Arc<Bell>,
    awake: &Arc<Awake>,
) -> StageState {
    let paths: Vec<PathId> =
        (0..graph.paths.len()).map(PathId).filter(|path| graph.paths[path.0].stages.contains(&id)).collect();
    let (begins, comes): (Vec<PathId>, Vec<PathId>) =
        paths.iter().copied().partition(|path| graph.paths[path.0].stages[0] == id);
    let inbox = |paths: &[PathId]| {
        let by_path = matches!(stage.work, Work::Body(_));
        Inbox::new(Plan {
            paths: paths.iter().map(|path| (*path, graph.paths[path.0].buffers)).collect(),
            by_path,
            put: put_end(graph, id, paths, by_path),
            take: if stage.incarnations() > 1 { End::many() } else { End::one() },
            bell: bell.clone(),
            awake: awake.clone(),
        })
    };
    if stage.incarnations() == 1 {
        counters.count_one_at_a_time();
    }
    StageState {
        name: stage.name.clone(),
        resource: stage.resource,
        kind: stage.kind,
        incarnations: stage.incarnations(),
        working: Working::new(stage.incarnations() - stage.reserve),
        has_reserve: stage.reserve > 0,
        incoming: inbox(&comes),
        empty: inbox(&begins),
        hops: graph.paths.iter().map(|path| hop(path, id, stage)).collect(),
        source: comes.is_empty(),
        paths,
        begins,
        counters,
    }
}

/// What puts buffers into a stage's queues: the stages before it and, into pools, the last stages of their
/// paths.
fn put_end(graph: &Graph, id: StageId, paths: &[PathId], by_path: bool) -> End {
    let before = |path: &PathId| {
        let stages = &graph.paths[path.0].stages;
        let place = stages.iter().position(|one| *one == id).unwrap_or(0);
        let index = stages[if place == 0 { stages.len() - 1 } else { place - 1 }].0;
        let stage = &graph.stages[index];
        if stage.on_workers() && place == 0 && stage.incarnations() > 1 {
            Putter::Crowd
        } else if stage.on_workers() || stage.incarnations() > 1 {
            Putter::Join(index, path.0)
        } else {
            Putter::Thread(thread_of(&graph.stages, index))
        }
    };
    let putters: BTreeSet<Putter> = paths.iter().map(before).collect();
    match putters.first() {
        Some(Putter::Thread(_)) if putters.len() == 1 => End::one(),
        Some(Putter::Join(..)) if putters.len() == 1 => End::Serial,
        // Each path has a queue of its own, which only the preceding stage on that path fills.
        _ if by_path => End::Serial,
        _ => End::many(),
    }
}

fn hop(path: &Path, id: StageId, stage: &Stage) -> Option<Hop> {
    let place = path.stages.iter().position(|one| *one == id)?;
    Some(Hop {
        next: path.stages.get(place + 1).map_or(Next::Pool(path.stages[0].0), |next| Next::Stage(next.0)),
        begins: place == 0,
        counts: place == 0 || matches!(stage.work, Work::Body(_)),
        conveyed: AtomicU64::new(0),
        join: (stage.incarnations() > 1).then(|| Join::new(stage.ordered, path.buffers)),
    })
}

/// One lane per incarnation, and one for each group of stages that share a thread.
fn lanes(stages: Vec<Stage>) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    for (index, stage) in stages.into_iter().enumerate() {
        match stage.work {
            Work::Each(_) if stage.kind == Kind::Worker && stage.thread.is_none() => {}
            Work::Body(body) => lanes.push(Lane::body(stage.name, index, body)),
            Work::Each(all) => {
                let at_work = all.len() - stage.reserve;
                for (incarnation, each) in all.into_iter().enumerate() {
                    let unit = Unit::new(index, incarnation, each, stage.repeat);
                    let lane = lanes.iter_mut().find(|lane| stage.thread.is_some() && lane.shared == stage.thread);
                    match lane {
                        Some(lane) => lane.add(unit),
                        None => {
                            let reserve = incarnation >= at_work;
                            lanes.push(Lane::units(stage.name.clone(), stage.thread.clone(), reserve, unit));
                        }
                    }
                }
            }
        }
    }
    lanes
}
