//! The simulator. Its public interface is `cosched/sim.py`.

use crate::table::Table;
use crate::workload::Jobs;
use cosched_sim::general::Config;
use cosched_sim::sweep::{self, Description, Hooks, Journal, Plan, Simulated, Wanted};
use cosched_sim::workload::TypeMix;
use cosched_sim::{JobSpec, Params, Progress, SimError, Strategy};
use cosched_study::engine::simulate;
use cosched_study::workload::{Source, generated};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a simulation checks for signals, and reports its progress.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
/// The default number of nodes: the paper's.
const NODES: u32 = 32;

/// Costs that sweeps do not vary; the default is the paper's.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Costs {
    spin_us: Option<f64>,
    check_us: Option<f64>,
    qmove_us: Option<f64>,
}

impl Costs {
    fn params(&self, strategy: Strategy, nodes: Option<u32>) -> Params {
        let paper = Params::paper(strategy, nodes.unwrap_or(NODES));
        // Casts saturate, and `Params::check` refuses values that are too large.
        let ns = |us: Option<f64>, or: u64| us.map_or(or, |us| (us * 1e3).round() as u64);
        Params {
            spin_ns: ns(self.spin_us, paper.spin_ns),
            check_ns: ns(self.check_us, paper.check_ns),
            queue_move_ns: ns(self.qmove_us, paper.queue_move_ns),
            ..paper
        }
    }
}

fn plan(description: &Description, costs: &Costs) -> PyResult<Plan> {
    Plan::new(description, &|strategy, nodes| Config::paper(costs.params(strategy, nodes)))
        .map_err(|e| PyValueError::new_err(e.to_string()))
}

/// The only setting of a description.
pub(crate) fn single(description: &Description, costs: &Costs) -> PyResult<Config> {
    match &plan(description, costs)?.cells[..] {
        [cell] => Ok(cell.config),
        cells => {
            let why = format!("{} stands for {} of them", description.strategies.join(", "), cells.len());
            let hint = "name one, or use cosched.sim.compare";
            Err(PyValueError::new_err(format!("a run has one strategy\n  why: {why}\n  hint: {hint}")))
        }
    }
}

/// Parses the request, given as JSON.
pub(crate) fn asked(description: &str, costs: &str) -> PyResult<(Description, Costs)> {
    let wrong = |e: serde_json::Error| PyValueError::new_err(e.to_string());
    let costs: Costs = serde_json::from_str(costs).map_err(wrong)?;
    for (name, us) in [("spin_us", costs.spin_us), ("check_us", costs.check_us), ("qmove_us", costs.qmove_us)] {
        if let Some(us) = us.filter(|us| !(0.0..=1e12).contains(us)) {
            return Err(PyValueError::new_err(format!(
                "{name} is {us}\n  why: no simulation can have that\n  hint: give 0 or more"
            )));
        }
    }
    let description: Description = serde_json::from_str(description).map_err(wrong)?;
    if description.nodes.contains(&0) {
        return Err(PyValueError::new_err("nodes is 0\n  why: no job could run\n  hint: give 1 or more"));
    }
    Ok((description, costs))
}

/// Simulates the jobs with the single setting of a description. Returns a row for each job, the run's results as JSON, and for a sampled run
/// the estimated standard error of the mean response time in s. `progress` is called with a fraction from 0 to 1.
#[pyfunction]
pub(crate) fn simulate_jobs(
    py: Python<'_>,
    jobs: &Bound<'_, Jobs>,
    description: &str,
    costs: &str,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(Table, String, Option<f64>)> {
    let (description, costs) = asked(description, costs)?;
    let config = single(&description, &costs)?;
    let specs = &jobs.get().0;
    let run = watched(
        py,
        |part: &(u64, u64)| {
            progress.as_ref().map_or(Ok(()), |tell| tell.call1((part.0 as f64 / part.1.max(1) as f64,)).map(drop))
        },
        |shared| {
            let mut watch = |now: Progress| shared.tell(now.task_iterations);
            simulate(description.sampled, &config, specs, &mut watch)
        },
    )?;
    let run = run.map_err(failed)?;
    let (table, metrics) = tables(&config.params, specs, &run, description.bound_s)?;
    Ok((table, metrics, run.sampled.and_then(|sampled| sampled.response_ci95_s)))
}

/// A row for each job, and the run's numbers as JSON.
pub(crate) fn tables(params: &Params, jobs: &[JobSpec], run: &Simulated, bound_s: f64) -> PyResult<(Table, String)> {
    let metrics = serde_json::to_string(&run.metrics(params, jobs, bound_s));
    let metrics = metrics.map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    Ok((Table::of_run(jobs, &run.outcome, bound_s)?, metrics))
}

/// Simulates every cell of a description, on this number of threads. Workloads other than WL1 to WL8 are in `lists`. Returns the rows as JSON.
/// `progress` is called with the number of completed cells, the number of all cells, and the completed fraction of the work.
#[pyfunction]
pub(crate) fn sweep_cells(
    py: Python<'_>,
    description: &str,
    costs: &str,
    lists: HashMap<String, Py<Jobs>>,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let (description, costs) = asked(description, costs)?;
    let mut plan = plan(&description, &costs)?;
    let sources: HashMap<String, Source> =
        lists.into_iter().map(|(name, jobs)| (name, Source::Jobs(jobs.get().0.clone()))).collect();
    if let Some(name) =
        description.workloads.iter().find(|name| !sources.contains_key(*name) && name.parse::<TypeMix>().is_err())
    {
        return Err(PyValueError::new_err(format!("no workload '{name}'; give WL1 to WL8, or a Workload")));
    }
    if description.load.is_empty() {
        // One that is given stays as it is, also under the name of a generated one.
        let given = plan.cells.iter_mut().filter(|cell| sources.contains_key(&cell.wanted.workload));
        given.for_each(|cell| cell.wanted.load = None);
    }
    let jobs = |wanted: &Wanted| {
        sources.get(&wanted.workload).map_or_else(|| generated(wanted), |source| source.wanted(wanted))
    };
    let begin = Instant::now();
    let taken = watched(
        py,
        |&(cells, all, work, work_all): &(usize, usize, u64, u64)| {
            let part = if work_all == 0 { 1.0 } else { work as f64 / work_all as f64 };
            progress.as_ref().map_or(Ok(()), |tell| tell.call1((cells, all, part)).map(drop))
        },
        |shared| {
            let hooks = Hooks {
                jobs: &jobs,
                simulate: &|config, jobs, watch| {
                    simulate(plan.sampled, config, jobs, &mut |now| watch(now) && !shared.stop.load(Relaxed))
                },
                now_s: &|| begin.elapsed().as_secs_f64(),
                progress: &|now| {
                    shared.tell((now.cells, now.cells_all, now.work, now.work_all));
                },
            };
            sweep::run_precisely(&plan, &Journal::default(), threads, hooks, &mut |_| Ok(()))
        },
    )?;
    let (plan, taken) = taken.map_err(|e| PyValueError::new_err(e.to_string()))?;
    serde_json::to_string(&sweep::Table::new(&plan, &taken)).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

pub(crate) fn failed(error: SimError) -> PyErr {
    match error {
        SimError::Broken(_) => PyRuntimeError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// The state that a simulation's threads share with the one that waits for them.
struct Shared<P> {
    stop: AtomicBool,
    now: Mutex<Option<P>>,
}

impl<P> Shared<P> {
    /// Reports progress. Returns whether to continue.
    fn tell(&self, now: P) -> bool {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        !self.stop.load(Relaxed)
    }
}

/// Runs `work` on a separate thread, without the interpreter lock; meanwhile this thread checks for signals and reports progress. An exception
/// of either stops the work.
fn watched<P: Send, T: Send>(
    py: Python<'_>,
    mut tell: impl FnMut(&P) -> PyResult<()>,
    work: impl FnOnce(&Shared<P>) -> T + Send,
) -> PyResult<T> {
    let shared = Shared { stop: AtomicBool::new(false), now: Mutex::new(None) };
    let (sender, receiver) = channel();
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| {
        let shared = &shared;
        let worker = scope.spawn(move || {
            // The receiver exists unless this thread panics.
            let _ = sender.send(work(shared));
        });
        let mut raised = None;
        let ended = loop {
            let wait = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK);
            match py.detach(wait) {
                Err(RecvTimeoutError::Timeout) if raised.is_none() => {
                    let now = shared.now.lock().unwrap_or_else(PoisonError::into_inner).take();
                    raised = py.check_signals().and_then(|()| now.as_ref().map_or(Ok(()), &mut tell)).err();
                    shared.stop.store(raised.is_some(), Relaxed);
                }
                Err(RecvTimeoutError::Timeout) => {}
                other => break other.ok(),
            }
        };
        let joined = py.detach(|| worker.join());
        match (raised, ended, joined) {
            (Some(error), ..) => Err(error),
            (None, Some(value), Ok(())) => Ok(value),
            _ => Err(PyRuntimeError::new_err("the simulation failed; standard error says where. Please report it")),
        }
    })
}
