//! Running a graph: its threads, from the start to the last join.

mod build;
mod port;
mod run;
mod shared;
mod thread;
mod turns;
mod wait;
mod watched;

use std::sync::Arc;

use crate::error::{Cause, Failure, GraphError};
use crate::graph::Graph;
use crate::monitor::Watching;
use crate::options::Options;
use crate::report::Report;

pub use port::Port;
pub use run::{Control, Running};

/// Starts all threads of a graph that has been checked.
pub(crate) fn start(graph: Graph, options: &Options) -> Result<Running, GraphError> {
    let _ = options.workers;
    let (shared, lanes) = build::build(graph, options)?;
    let shared = Arc::new(shared);
    let watching = Watching::start(shared.clone(), options).map_err(|error| GraphError::Thread(error.to_string()))?;
    let mut running = Running::new(shared.clone(), watching);
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
    Ok(running)
}

/// The failure of a graph that cannot run.
pub(crate) fn never_began(name: String, error: GraphError) -> Failure {
    let report = Report { format: Report::FORMAT.into(), name, ..Report::default() };
    Failure { stage: None, cause: Cause::Graph(error), report: Box::new(report) }
}
