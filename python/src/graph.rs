//! Graphs of stages in Python, before they run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::cosched_pipeline::{Class, Kind, Options, Path, Priorities, Resource, Settings, Stage, StageId};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::running::Running;
use crate::stage::{Incarnation, Recipe};

struct Plan {
    graph: ::cosched_pipeline::Graph,
    stages: Vec<StageId>,
}

/// A graph of stages; the names and checks for Python are in `cosched.pipeline.Graph`.
#[pyclass(frozen, module = "cosched._native")]
pub(crate) struct Graph {
    plan: Mutex<Option<Plan>>,
}

/// How to run a stage.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct How {
    resource: String,
    kind: String,
    ordered: bool,
    thread: Option<String>,
    repeat: usize,
    body: bool,
    incarnations: usize,
    replicable: usize,
    nice: Option<i8>,
    slice_us: Option<u32>,
    scheduling: Option<String>,
    fifo_priority: u8,
    cpus: Option<Vec<usize>>,
    holds: Option<usize>,
}

/// How to run a graph.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Run {
    workers: Option<usize>,
    priorities: String,
    stall_limit_s: Option<f64>,
    stall_warning_s: Option<f64>,
    pin_in_turn: bool,
    trace: bool,
    serve: bool,
}

impl Run {
    fn options(&self) -> PyResult<Options> {
        let mut options = Options::default();
        options.workers = self.workers;
        let priorities = self.priorities.parse::<Priorities>();
        options.priorities = priorities.map_err(|error| PyValueError::new_err(error.to_string()))?;
        options.stall_limit = self.stall_limit_s.map(seconds).transpose()?;
        options.stall_warning = self.stall_warning_s.map(seconds).transpose()?;
        (options.pin_in_turn, options.trace, options.serve) = (self.pin_in_turn, self.trace, self.serve);
        Ok(options)
    }
}

fn seconds(time_s: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(time_s).map_err(|_| PyValueError::new_err(format!("{time_s} is not a time in seconds")))
}

impl How {
    fn settings(&self) -> PyResult<Settings> {
        let class = match self.scheduling.as_deref() {
            None => None,
            Some("normal") => Some(Class::Normal),
            Some("batch") => Some(Class::Batch),
            Some("idle") => Some(Class::Idle),
            Some("fifo") => Some(Class::Fifo(self.fifo_priority)),
            Some(other) => return Err(unknown("scheduling class", other, "'normal', 'batch', 'idle' and 'fifo'")),
        };
        Ok(Settings { nice: self.nice, slice_us: self.slice_us, class, cpus: self.cpus.clone() })
    }

    fn resource(&self) -> PyResult<Resource> {
        match self.resource.as_str() {
            "compute" => Ok(Resource::Compute),
            "communicate" => Ok(Resource::Communicate),
            "io" => Ok(Resource::Io),
            other => Err(unknown("resource", other, "'compute', 'communicate' and 'io'")),
        }
    }

    fn kind(&self) -> PyResult<Kind> {
        match self.kind.as_str() {
            "thread" => Ok(Kind::Thread),
            "worker" => Ok(Kind::Worker),
            other => Err(unknown("kind", other, "'thread' and 'worker'")),
        }
    }
}

fn unknown(what: &str, value: &str, there_are: &str) -> PyErr {
    PyValueError::new_err(format!("'{value}' is not a {what} of a stage; valid are {there_are}"))
}

impl Graph {
    fn with<T>(&self, what: impl FnOnce(&mut Plan) -> PyResult<T>) -> PyResult<T> {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        what(plan.as_mut().ok_or_else(|| PyRuntimeError::new_err("the graph was started; it runs once"))?)
    }
}

#[pymethods]
impl Graph {
    #[new]
    fn new(name: String) -> Graph {
        let plan = Plan { graph: ::cosched_pipeline::Graph::new(name), stages: Vec::new() };
        Graph { plan: Mutex::new(Some(plan)) }
    }

    /// Adds a stage. `make` is called with an incarnation's index and returns its callable. Returns the stage's
    /// index.
    fn stage(&self, name: &str, make: Py<PyAny>, how: How) -> PyResult<usize> {
        let (resource, kind, settings) = (how.resource()?, how.kind()?, how.settings()?);
        let own_thread = kind == Kind::Thread || how.body || how.thread.is_some() || !settings.is_empty();
        let recipe = Arc::new(Recipe { make, own_thread });
        let incarnation = move |number| Incarnation::new(recipe.clone(), number);
        let mut stage = match how.body {
            true => Stage::body(name, resource, incarnation(0)),
            false => Stage::replicated(name, how.incarnations, resource, incarnation).kind(kind),
        };
        stage = stage.ordered(how.ordered).repeat(how.repeat).with(settings);
        if how.replicable > how.incarnations {
            stage = stage.replicable(how.replicable);
        }
        if let Some(holds) = how.holds {
            stage = stage.holds(holds);
        }
        if let Some(thread) = how.thread {
            stage = stage.on_thread(thread);
        }
        self.with(|plan| {
            plan.stages.push(plan.graph.stage(stage));
            Ok(plan.stages.len() - 1)
        })
    }

    /// Adds a path. Returns its index.
    fn path(&self, name: String, buffers: usize, size_bytes: usize, stages: Vec<usize>) -> PyResult<usize> {
        self.with(|plan| {
            let known = |number: &usize| {
                let there = plan.stages.len();
                let stage = plan.stages.get(*number).copied();
                stage.ok_or_else(|| PyValueError::new_err(format!("there is no stage {number} of {there}")))
            };
            let stages = stages.iter().map(known).collect::<PyResult<Vec<_>>>()?;
            Ok(plan.graph.path(Path::new(name).buffers(buffers, size_bytes).through(stages)).index())
        })
    }

    /// The memory of all buffers in bytes.
    fn memory_bytes(&self) -> PyResult<u64> {
        self.with(|plan| Ok(plan.graph.memory_bytes()))
    }

    /// Why the graph cannot run, or None.
    fn check(&self) -> PyResult<Option<String>> {
        self.with(|plan| Ok(plan.graph.check().err().map(|error| error.to_string())))
    }

    /// Starts the graph. Returns the running graph, or else why it cannot run.
    fn start(&self, py: Python<'_>, how: Run) -> PyResult<(Option<Py<Running>>, Option<String>)> {
        let options = how.options()?;
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner).take();
        let plan = plan.ok_or_else(|| PyRuntimeError::new_err("the graph was started; it runs once"))?;
        // Without the lock: stages that start at once may need it, and a start that fails waits for them.
        match py.detach(|| plan.graph.start(&options)) {
            Ok(running) => Ok((Some(Py::new(py, Running::new(running)?)?), None)),
            Err(error) => Ok((None, Some(error.to_string()))),
        }
    }
}
