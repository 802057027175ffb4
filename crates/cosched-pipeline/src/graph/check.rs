//! Whether a graph can run.

use std::collections::HashSet;

use super::{Graph, Path, Stage, StageId, Work};
use crate::error::GraphError;

/// More buffers than this are a mistake: the queues for them would not fit into memory.
const BUFFERS_MAX: usize = 1 << 20;

pub(super) fn check(graph: &Graph) -> Result<(), GraphError> {
    if graph.paths.is_empty() {
        return Err(GraphError::Empty(graph.name.clone()));
    }
    check_paths(graph)?;
    let mut names = HashSet::new();
    for (index, stage) in graph.stages.iter().enumerate() {
        if !names.insert(stage.name.as_str()) {
            return Err(GraphError::SameName(stage.name.clone()));
        }
        check_stage(graph, StageId(index), stage)?;
    }
    Ok(())
}

fn check_paths(graph: &Graph) -> Result<(), GraphError> {
    for path in &graph.paths {
        let name = || path.name.clone();
        if path.stages.is_empty() {
            return Err(GraphError::NoStages(name()));
        }
        if let Some(id) = path.stages.iter().find(|id| id.0 >= graph.stages.len()) {
            return Err(GraphError::Foreign { path: name(), number: id.0, stages: graph.stages.len() });
        }
        check_pool(graph, path)?;
        let mut seen = HashSet::new();
        for id in &path.stages {
            if !seen.insert(id) {
                return Err(GraphError::Cycle { path: name(), stage: graph.stages[id.0].name.clone() });
            }
        }
    }
    Ok(())
}

fn check_pool(graph: &Graph, path: &Path) -> Result<(), GraphError> {
    let (name, buffers) = (|| path.name.clone(), path.buffers);
    if buffers == 0 {
        return Err(GraphError::NoBuffers(name()));
    }
    if path.size_bytes == 0 {
        return Err(GraphError::NoBytes(name()));
    }
    if buffers > BUFFERS_MAX {
        return Err(GraphError::TooManyBuffers { path: name(), buffers, max: BUFFERS_MAX });
    }
    let held: usize = path.stages.iter().map(|id| graph.stages[id.0].holds).sum();
    if held >= buffers {
        return Err(GraphError::HoldsAll { path: name(), held, buffers });
    }
    Ok(())
}

fn check_stage(graph: &Graph, id: StageId, stage: &Stage) -> Result<(), GraphError> {
    let name = || stage.name.clone();
    let on = graph.paths.iter().filter(|path| path.stages.contains(&id)).count();
    if on == 0 {
        return Err(GraphError::Unused(name()));
    }
    let begins = graph.paths.iter().filter(|path| path.stages[0] == id).count();
    if let Work::Each(all) = &stage.work {
        match all.len() {
            0 => return Err(GraphError::NoIncarnations(name())),
            1 => {}
            _ if begins > 0 => return Err(GraphError::ReplicatedSource(name())),
            _ => {}
        }
        if begins > 0 && begins < on {
            return Err(GraphError::MixedSource(name()));
        }
    }
    stage.settings.check().map_err(|error| GraphError::Settings { stage: name(), error })?;
    if stage.replicable > stage.incarnations() {
        return Err(GraphError::NotReplicable(name()));
    }
    match &stage.thread {
        Some(thread) => check_shared(graph, id, stage, thread),
        None if stage.repeat != 1 => Err(GraphError::RepeatAlone(name())),
        None => Ok(()),
    }
}

fn check_shared(graph: &Graph, id: StageId, stage: &Stage, thread: &str) -> Result<(), GraphError> {
    let refuse = |why| Err(GraphError::SharedThread { stage: stage.name.clone(), thread: thread.to_owned(), why });
    if matches!(stage.work, Work::Body(_)) {
        return refuse("it accepts and conveys by itself, so the thread would never come to the others");
    }
    if stage.incarnations() > 1 {
        return refuse("it has several incarnations, which could not run at once");
    }
    let others = graph.stages.iter().filter(|other| other.thread == stage.thread && !other.settings.is_empty());
    if !stage.settings.is_empty() && others.clone().any(|other| other.settings != stage.settings) {
        return refuse("another stage on it requests other settings, and a thread has one nice value, slice and class");
    }
    if stage.repeat == 0 {
        return refuse("it would do 0 buffers in its turn");
    }
    for path in graph.paths.iter().filter(|path| path.stages.contains(&id)) {
        if path.buffers < stage.repeat {
            return Err(GraphError::RepeatNeedsBuffers {
                thread: thread.to_owned(),
                repeat: stage.repeat,
                path: path.name.clone(),
                buffers: path.buffers,
            });
        }
    }
    Ok(())
}
