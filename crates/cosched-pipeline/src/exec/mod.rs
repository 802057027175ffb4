//! Running a graph: its threads, from the start to the last join.

mod build;
mod clock;
mod port;
mod run;
mod shared;
mod thread;
mod turns;
mod wait;
mod worker;

use std::sync::Arc;
use std::time::Instant;

use crate::error::{Cause, Failure, GraphError};
use crate::graph::Graph;
use crate::report::Report;

pub use port::Port;
pub use run::Running;
use shared::Shared;
use worker::Crew;

/// How to run a graph.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// Workers for the stages that compute; one per CPU that this process may use, unless told otherwise.
    pub workers: Option<usize>,
}

/// Starts all threads of a graph that has been checked.
pub(crate) fn start(graph: Graph, options: &Options) -> Result<Running, GraphError> {
    if options.workers == Some(0) {
        return Err(GraphError::NoWorkers);
    }
    let (shared, lanes) = build::build(graph, options.workers)?;
    let shared = Arc::new(shared);
    let mut running = Running::new(shared.clone());
    for lane in lanes {
        let shared = shared.clone();
        shared.awake.add();
        let spawned = std::thread::Builder::new().name(lane.name()).spawn(move || lane.run(&shared));
        match spawned {
            Ok(handle) => running.add(handle),
            Err(error) => {
                // The ones that run already end when `running` is dropped.
                return Err(GraphError::Thread(error.to_string()));
            }
        }
    }
    start_workers(&shared, &mut running)?;
    Ok(running)
}

fn start_workers(shared: &Arc<Shared>, running: &mut Running) -> Result<(), GraphError> {
    for number in 0..shared.crew.len() {
        let of_worker = shared.clone();
        shared.awake.add();
        let builder = std::thread::Builder::new().name(format!("worker {number}"));
        match builder.spawn(move || Crew::run(&of_worker, number)) {
            Ok(handle) => running.add(handle),
            Err(error) => {
                shared.crew.absent(shared, shared.crew.len() - number);
                return Err(GraphError::Thread(error.to_string()));
            }
        }
    }
    Ok(())
}

/// The failure of a graph that cannot run.
pub(crate) fn never_began(name: String, error: GraphError) -> Failure {
    let report = Report { format: Report::FORMAT.into(), name, elapsed_s: 0.0, memory_bytes: 0, stages: Vec::new() };
    Failure { stage: None, cause: Cause::Graph(error), report: Box::new(report) }
}

/// Seconds since `then`.
fn seconds_since(then: Instant) -> f64 {
    then.elapsed().as_secs_f64()
}
