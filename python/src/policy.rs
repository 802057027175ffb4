//! Strategies written in Python. `cosched/_policy.py` is what users see.

use crate::sim::{LOOK, asked, failed, single, tables};
use crate::table::Table;
use crate::workload::Jobs;
use cosched_sim::general::{Begin, Config, Custom, View, Waiting, Work, simulate_custom};
use cosched_sim::{Progress, Silent, Wait};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::Instant;

/// The hooks of a strategy, and what one of them has raised.
struct Hooks {
    hooks: Py<PyAny>,
    raised: Option<PyErr>,
}

impl Hooks {
    fn ask<T>(&mut self, question: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T, String> {
        Python::attach(|py| question(self.hooks.bind(py))).map_err(|error| {
            self.raised = Some(error);
            "raised an exception".to_owned()
        })
    }
}

impl Custom for Hooks {
    fn arrival(&mut self, view: View) -> Result<Begin, String> {
        // None is "as usual", an empty list "no job".
        let answer: Option<Vec<(u32, usize, Vec<u32>)>> = self.ask(|hooks| {
            let View { now_ns, waiting, rows, row, loads } = view;
            hooks.call_method1("arrival", (now_ns, waiting, rows, row, loads))?.extract()
        })?;
        Ok(match answer.map(|mut start| start.pop()) {
            None => Begin::Usual,
            Some(None) => Begin::NoJob,
            Some(Some((job, row, places))) => Begin::Job { job, row, places },
        })
    }

    fn row_change(&mut self, view: View) -> Result<Option<usize>, String> {
        self.ask(|hooks| {
            let View { now_ns, waiting, rows, row, loads } = view;
            hooks.call_method1("row_change", (now_ns, waiting, rows, row, loads))?.extract()
        })
    }

    fn wait(&mut self, waiting: Waiting) -> Result<Option<(Wait, u64)>, String> {
        let answer: Option<(String, u64)> = self.ask(|hooks| {
            let Waiting { now_ns, job, task, from, node, ready } = waiting;
            hooks.call_method1("wait", (now_ns, job, task, from, node, ready))?.extract()
        })?;
        let wait = |(how, spin_ns): (String, u64)| match how.as_str() {
            "spin" => Ok((Wait::Busy, spin_ns)),
            "block" => Ok((Wait::SpinBlock, spin_ns)),
            "yield" => Ok((Wait::SpinYield, spin_ns)),
            _ => Err(format!("lets a process wait by '{how}': there are spin, block and yield")),
        };
        answer.map(wait).transpose()
    }
}

/// As `simulate_jobs`, with a strategy's hooks; the description names what they are based on. It runs in the caller's thread, so that
/// Ctrl-C interrupts a hook that never returns.
#[pyfunction]
pub(crate) fn simulate_policy(
    py: Python<'_>,
    jobs: &Bound<'_, Jobs>,
    description: &str,
    costs: &str,
    hooks: Py<PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Table, String)> {
    let (description, costs) = asked(description, costs)?;
    if description.sampled {
        let text = "a strategy of one's own is simulated whole\n  why: only the fast engine skips time\n  hint: leave sampled out";
        return Err(PyValueError::new_err(text));
    }
    let params = single(&description, &costs)?.params;
    let specs = &jobs.get().0;
    let works: Vec<Work> = specs.iter().map(|job| Work::Paper(*job)).collect();
    let mut hooks = Hooks { hooks, raised: None };
    let (mut interrupted, mut looked) = (None, Instant::now());
    let mut watch = |now: Progress| {
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            let (done, all) = now.task_iterations;
            let part = done as f64 / all.max(1) as f64;
            let tell = |py: Python<'_>| progress.as_ref().map_or(Ok(()), |tell| tell.call1(py, (part,)).map(drop));
            interrupted = Python::attach(|py| py.check_signals().and_then(|()| tell(py))).err();
        }
        interrupted.is_none()
    };
    let run = py.detach(|| simulate_custom(&Config::paper(params), &works, &mut hooks, &mut Silent, &mut watch));
    if let Some(error) = hooks.raised.or(interrupted) {
        return Err(error);
    }
    tables(&params, specs, &run.map_err(failed)?.into(), description.bound_s)
}
