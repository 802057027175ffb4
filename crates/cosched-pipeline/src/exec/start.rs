//! Starting a graph: the methods of [`Graph`] and [`Pipeline`] that need threads.

use cosched_linux::thread::Thread;

use super::Running;
use crate::error::{Cause, Failure, GraphError};
use crate::graph::{Graph, Kind, Pipeline};
use crate::options::Options;
use crate::report::Report;

impl Graph {
    /// Starts it and returns.
    ///
    /// # Errors
    /// If the graph cannot run, or memory or threads cannot be allocated.
    pub fn start(mut self, options: &Options) -> Result<Running, GraphError> {
        if options.pin_in_turn {
            let scheduling = Thread::current().and_then(|thread| thread.scheduling());
            pin_in_turn(&mut self, &scheduling.map_err(|error| GraphError::Cpus(error.to_string()))?.cpus);
        }
        self.check()?;
        super::start(self, options)
    }

    /// Runs it until it has ended.
    ///
    /// # Errors
    /// That the graph cannot run, or the first stage that failed or panicked. All threads have ended then, except one
    /// that is stuck in its stage's code.
    pub fn run(self, options: &Options) -> Result<Report, Failure> {
        let name = self.name.clone();
        match self.start(options) {
            Ok(running) => running.wait(),
            Err(error) => Err(never_began(name, error)),
        }
    }
}

impl Pipeline {
    /// Starts it and returns. Errors as for [`Graph::start`].
    ///
    /// # Errors
    /// If the graph cannot run, or memory or threads cannot be allocated.
    pub fn start(self, options: &Options) -> Result<Running, GraphError> {
        self.into_graph().start(options)
    }

    /// Runs it until it has ended.
    ///
    /// # Errors
    /// As for [`Graph::run`].
    pub fn run(self, options: &Options) -> Result<Report, Failure> {
        self.into_graph().run(options)
    }
}

/// Binds each stage that has a thread of its own to one of these CPUs, in turn, unless the stage requests CPUs itself.
fn pin_in_turn(graph: &mut Graph, cpus: &[usize]) {
    let stages = graph.stages.iter_mut().filter(|stage| stage.kind == Kind::Thread && stage.thread.is_none());
    for (stage, cpu) in stages.zip(cpus.iter().cycle()) {
        stage.settings.cpus.get_or_insert_with(|| vec![*cpu]);
    }
}

/// The failure of a graph that was refused before it ran.
fn never_began(name: String, error: GraphError) -> Failure {
    let report = Report { format: Report::FORMAT.into(), name, ..Report::default() };
    Failure { stage: None, cause: Cause::Graph(error), report: Box::new(report) }
}
