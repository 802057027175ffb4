//! Running a graph: its threads, from their start until all have been joined.

mod build;
mod port;
mod run;
mod shared;
mod start;
mod thread;
mod turns;
mod wait;
mod watched;
mod worker;

use std::sync::Arc;

use crate::error::GraphError;
use crate::graph::Graph;
use crate::monitor::Watching;
use crate::options::Options;
use crate::queue::prepare_heavy_fence;

pub use port::Port;
pub use run::{Control, Running};
use shared::Shared;
use worker::Crew;

/// Starts all threads of a graph that has been checked.
fn start(graph: Graph, options: &Options) -> Result<Running, GraphError> {
    if options.workers == Some(0) {
        return Err(GraphError::NoWorkers);
    }
    // In a process without other threads this takes microseconds; otherwise the monitor does it
    // later.
    prepare_heavy_fence(false);
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
                // The threads that have been started end when `running` is dropped.
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
                shared.crew.missing(shared, shared.crew.len() - number);
                return Err(GraphError::Thread(error.to_string()));
            }
        }
    }
    Ok(())
}
