//! Tables of columns, which Arrow's readers (pyarrow, pandas, Polars, DuckDB) take without a copy.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use cosched_sim::metrics::{JobMetrics, job_metrics};
use cosched_sim::{JobSpec, Outcome};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use std::sync::Arc;

/// Columns of the same length.
#[pyclass(frozen, module = "cosched._native")]
pub(crate) struct Table(RecordBatch);

impl Table {
    fn new(columns: Vec<(&str, ArrayRef)>) -> PyResult<Table> {
        let columns = columns.into_iter().map(|(name, column)| (name, column, true));
        RecordBatch::try_from_iter_with_nullable(columns).map(Table).map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// One row per job, in the order of the list; values of events that did not happen are null. The columns are those of `cosched
    /// sim run --parquet`.
    pub(crate) fn of_run(jobs: &[JobSpec], outcome: &Outcome, bound_s: f64) -> PyResult<Table> {
        let mut ended: Vec<Option<JobMetrics>> = vec![None; jobs.len()];
        for job in job_metrics(jobs, outcome, bound_s) {
            ended[job.index] = Some(job);
        }
        let metric = |get: fn(&JobMetrics) -> Option<f64>| -> ArrayRef {
            Arc::new(ended.iter().map(|job| get(job.as_ref()?)).collect::<Float64Array>())
        };
        let mut columns = job_columns(jobs);
        columns.extend([
            ("start_ns", whole(outcome.jobs.iter().map(|job| job.start_ns))),
            ("finish_ns", whole(outcome.jobs.iter().map(|job| job.finish_ns))),
            ("wait_s", metric(|job| Some(job.wait_s))),
            ("response_s", metric(|job| Some(job.response_s))),
            ("execution_s", metric(|job| Some(job.execution_s))),
            ("slowdown", metric(|job| job.slowdown)),
            ("bounded_slowdown", metric(|job| Some(job.bounded_slowdown))),
        ]);
        Table::new(columns)
    }

    /// Columns of a list of jobs.
    pub(crate) fn of_jobs(jobs: &[JobSpec]) -> PyResult<Table> {
        Table::new(job_columns(jobs))
    }
}

fn job_columns(jobs: &[JobSpec]) -> Vec<(&'static str, ArrayRef)> {
    let words =
        |of: fn(&JobSpec) -> &'static str| -> ArrayRef { Arc::new(StringArray::from_iter_values(jobs.iter().map(of))) };
    vec![
        ("id", whole((0..jobs.len()).map(|id| Some(id as u64)))),
        ("tasks", whole(jobs.iter().map(|job| Some(job.tasks.into())))),
        ("type", words(|job| job.kind.name())),
        ("class", words(|job| job.class.name())),
        ("exec_ns", whole(jobs.iter().map(|job| Some(job.exec_ns)))),
        ("arrival_ns", whole(jobs.iter().map(|job| Some(job.arrival_ns)))),
    ]
}

/// Fits, because simulated times are below 2⁶³ ns, 292 years.
fn whole(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(values.map(|value| value.map(|value| value as i64)).collect::<Int64Array>())
}

#[pymethods]
impl Table {
    /// From columns: lists of strings, or of numbers; None becomes null.
    #[new]
    fn of_columns(columns: Vec<(String, Bound<'_, PyList>)>) -> PyResult<Table> {
        let made: Vec<(&str, ArrayRef)> =
            columns.iter().map(|(name, values)| Ok((name.as_str(), column(name, values)?))).collect::<PyResult<_>>()?;
        Table::new(made)
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// The names of the columns.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// A column as a list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let array = self.0.column_by_name(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?.as_any();
        if let Some(numbers) = array.downcast_ref::<Float64Array>() {
            PyList::new(py, numbers)
        } else if let Some(numbers) = array.downcast_ref::<Int64Array>() {
            PyList::new(py, numbers)
        } else if let Some(words) = array.downcast_ref::<StringArray>() {
            PyList::new(py, words)
        } else {
            Err(PyTypeError::new_err(name.to_owned()))
        }
    }

    /// The Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol allows a producer to ignore the requested schema.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }
}

fn column(name: &str, values: &Bound<'_, PyList>) -> PyResult<ArrayRef> {
    if let Ok(numbers) = values.extract::<Vec<Option<i64>>>() {
        return Ok(Arc::new(Int64Array::from(numbers)));
    }
    if let Ok(numbers) = values.extract::<Vec<Option<f64>>>() {
        return Ok(Arc::new(Float64Array::from(numbers)));
    }
    let words: PyResult<Vec<Option<String>>> = values.extract();
    let words = words.map_err(|_| PyTypeError::new_err(format!("column {name}: neither numbers nor strings")))?;
    Ok(Arc::new(StringArray::from(words)))
}
