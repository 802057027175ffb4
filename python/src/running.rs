//! Running graphs. Waiting is done without the interpreter lock, and reacts to signals.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ::cosched_pipeline::{Cause, Control, Failure, Report};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// How often a waiting thread checks for signals.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(50);

type Ended = Result<Report, Failure>;

/// A running graph.
#[pyclass(frozen, module = "cosched._native")]
pub(crate) struct Running {
    control: Control,
    /// The channel for the end of the run; None once it has been taken.
    end: Mutex<Option<Receiver<Ended>>>,
}

/// How a run ended.
#[pyclass(frozen, get_all, module = "cosched._native")]
pub(crate) struct Outcome {
    /// The report, as JSON.
    report: String,
    /// The kind of failure: "stage", "misuse", "stopped", "stalled" or "fault"; None if there was none.
    failure: Option<&'static str>,
    /// The failure in one sentence.
    message: String,
    /// The stage that failed.
    stage: Option<String>,
    /// The exception that the stage raised.
    exception: Option<Py<PyAny>>,
}

impl Running {
    /// A run, with a thread that waits for its end.
    pub(crate) fn new(running: ::cosched_pipeline::Running) -> PyResult<Running> {
        let control = running.control();
        let (sender, end) = channel();
        std::thread::Builder::new().name("pipeline-end".into()).spawn(move || {
            // There is no receiver any more if the interpreter has ended.
            let _ = sender.send(running.wait());
        })?;
        Ok(Running { control, end: Mutex::new(Some(end)) })
    }
}

fn json(report: &Report) -> PyResult<String> {
    serde_json::to_string(report).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// A report in JSON as a table for people.
#[pyfunction]
pub(crate) fn report_text(json: &str) -> PyResult<String> {
    Ok(report(json)?.text())
}

/// A report in JSON as a Chrome trace.
#[pyfunction]
pub(crate) fn report_trace(json: &str) -> PyResult<String> {
    Ok(report(json)?.chrome_trace().to_string())
}

fn report(json: &str) -> PyResult<Report> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(format!("this is not a report: {error}")))
}

impl Outcome {
    fn new(py: Python<'_>, ended: Ended) -> PyResult<Outcome> {
        let failure = match ended {
            Ok(report) => {
                let report = json(&report)?;
                return Ok(Outcome { report, failure: None, message: String::new(), stage: None, exception: None });
            }
            Err(failure) => failure,
        };
        let (report, message) = (json(&failure.report)?, failure.to_string());
        let (kind, exception) = match failure.cause {
            Cause::Stage(error) => {
                ("stage", error.downcast::<PyErr>().ok().map(|error| error.into_value(py).into_any()))
            }
            Cause::Misuse(_) => ("misuse", None),
            Cause::Stopped => ("stopped", None),
            Cause::Stalled(_) => ("stalled", None),
            Cause::Graph(_) | Cause::Panic(_) => ("fault", None),
        };
        Ok(Outcome { report, failure: Some(kind), message, stage: failure.stage, exception })
    }
}

#[pymethods]
impl Running {
    /// Waits until the run has ended. An exception from a signal handler (KeyboardInterrupt) stops the run, and is raised
    /// when all its threads have ended.
    fn wait(&self, py: Python<'_>) -> PyResult<Outcome> {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        let end = end.ok_or_else(|| PyRuntimeError::new_err("another thread waits or has waited for this run"))?;
        let (ended, interrupted) = wait_for(py, end, &self.control)?;
        match interrupted {
            Some(interrupted) => Err(interrupted),
            None => Outcome::new(py, ended),
        }
    }

    /// Stops the run as soon as each stage has finished its current buffer.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.control.stop());
    }

    /// Stops the run and waits for its threads, unless `wait` was called.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.end());
    }

    /// A report of what has been done so far, as JSON.
    fn snapshot(&self, py: Python<'_>) -> PyResult<String> {
        json(&py.detach(|| self.control.snapshot()))
    }
}

impl Running {
    /// Stops the run and waits for its threads, unless `wait` was called.
    fn end(&self) {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(end) = end {
            self.control.stop();
            let _ = end.recv();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Its threads may be waiting for the interpreter lock, which the thread that drops this value holds.
        let detached = Python::try_attach(|py| py.detach(|| self.end()));
        if detached.is_none() {
            self.control.stop();
        }
    }
}

/// Waits for the end, and returns the first exception that a signal handler raised before it.
fn wait_for(py: Python<'_>, mut end: Receiver<Ended>, control: &Control) -> PyResult<(Ended, Option<PyErr>)> {
    let mut interrupted = None;
    loop {
        let end = &mut end;
        match py.detach(move || end.recv_timeout(LOOK_FOR_SIGNALS)) {
            Ok(ended) => return Ok((ended, interrupted)),
            Err(RecvTimeoutError::Disconnected) => return Err(PyRuntimeError::new_err("the run was lost")),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(signal) = py.check_signals() {
            interrupted.get_or_insert(signal);
            control.stop();
        }
    }
}
