//! Lists of jobs, and models that they are drawn from. The public interface is `cosched/sim.py`.

use crate::table::Table;
use cosched_sim::sweep::Wanted;
use cosched_sim::workload::generate::{ClassModel, FitMethod};
use cosched_sim::workload::{SizeClass, to_specs};
use cosched_sim::{Class, Footprint, JobSpec};
use cosched_study::generate::{Asked, Model, measured};
use cosched_study::workload::{Source, generated};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::HashMap;

/// A list of jobs.
#[pyclass(frozen, module = "cosched._native")]
pub(crate) struct Jobs(pub(crate) Vec<JobSpec>);

#[pymethods]
impl Jobs {
    /// The jobs of a file's content: a job list unchanged; of a trace those that fit on this number of CPUs. Also returns why others are left
    /// out.
    #[staticmethod]
    fn read(content: &[u8], cpus: u32, seed: u64) -> PyResult<(Jobs, HashMap<&'static str, u64>)> {
        let source = Source::read(content, None, &mut |_| ()).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let (jobs, not_taken) = source.jobs(cpus, seed).map_err(PyValueError::new_err)?;
        Ok((Jobs(jobs), not_taken.by_reason().into_iter().filter(|(_, count)| *count > 0).collect()))
    }

    /// Generates WL1 to WL8.
    #[staticmethod]
    fn generate(name: String, count: usize, nodes: u32, mean_exec_s: f64, load: f64, seed: u64) -> PyResult<Jobs> {
        let wanted = Wanted { workload: name, load: Some(load), nodes, seed, jobs: count, mean_exec_s };
        generated(&wanted).map(Jobs).map_err(PyValueError::new_err)
    }

    /// Draws jobs from a model: its name, or the JSON of [`fit_model`]. What is not given is the model's own.
    #[staticmethod]
    fn draw(
        py: Python<'_>,
        model: &str,
        count: u32,
        nodes: u32,
        mean_exec_s: Option<f64>,
        load: Option<f64>,
        seed: u64,
    ) -> PyResult<Jobs> {
        let model = match Model::named(model) {
            Some(model) => model,
            None => Model::Classes(serde_json::from_str(model).map_err(|e| {
                let why = format!("it is no JSON of a model: {e}");
                let hint = format!("valid are {}, or what cosched.sim.fit returns", Model::NAMES);
                PyValueError::new_err(format!("no such model\n  why: {why}\n  hint: {hint}"))
            })?),
        };
        let asked = Asked { jobs: count, nodes, max_tasks: None, mean_exec_s, load, together: false, seed };
        let jobs = py.detach(|| model.generate(&asked)).map_err(PyValueError::new_err)?;
        Ok(Jobs(to_specs(&jobs, model.mix(), seed)))
    }

    /// From rows: arrival and time alone in ns, tasks, type, class.
    #[staticmethod]
    fn of(rows: Vec<(u64, u64, u32, String, String)>) -> PyResult<Jobs> {
        let job = |(arrival_ns, exec_ns, tasks, kind, class): (u64, u64, u32, String, String)| {
            let (kind, class) = (kind.parse()?, class.parse::<Class>()?);
            Ok(JobSpec { arrival_ns, exec_ns, tasks, kind, class, footprint: Footprint::default() })
        };
        rows.into_iter().map(job).collect::<Result<_, String>>().map(Jobs).map_err(PyValueError::new_err)
    }

    /// The number of jobs.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The jobs as columns.
    fn table(&self) -> PyResult<Table> {
        Table::of_jobs(&self.0)
    }
}

/// Fits a model to the jobs of a file's content, by the method "moments" or "em". Returns it as JSON, its load, and the classes of sizes that
/// have no fit.
#[pyfunction]
pub(crate) fn fit_model(
    py: Python<'_>,
    content: &[u8],
    name: &str,
    procs: Option<u32>,
    method: &str,
    max_gap_s: f64,
) -> PyResult<(String, f64, Vec<String>)> {
    let Some(method) = [FitMethod::Moments, FitMethod::Likelihood].into_iter().find(|one| one.name() == method) else {
        let text = format!("no method '{method}'\n  why: there are moments and em\n  hint: leave it out for em");
        return Err(PyValueError::new_err(text));
    };
    let fitted = py.detach(|| {
        let (records, header, _) = Source::read(content, None, &mut |_| ()).map_err(|e| e.to_string())?.into_trace();
        let jobs = measured(&records);
        let Some(largest) = jobs.iter().map(|job| job.size).max() else {
            let why = "no record has a run time and processors above 0";
            return Err(format!("{name}: nothing is usable\n  why: {why}\n  hint: give a trace of jobs that ran"));
        };
        let procs = procs.or_else(|| header.processors()).unwrap_or(largest);
        let (model, left_out) = ClassModel::fit(name, procs, &jobs, method, max_gap_s);
        model.check().map_err(|e| e.to_string())?;
        let json = serde_json::to_string(&model).map_err(|e| e.to_string())?;
        Ok((json, model.rho(procs), left_out.into_iter().map(SizeClass::name).collect()))
    });
    fitted.map_err(PyValueError::new_err::<String>)
}
