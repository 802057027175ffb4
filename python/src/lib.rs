//! The native part of the Python package `cosched`. Its public interface is `cosched/pipeline.py`.

mod buffer;
mod export;
mod graph;
mod policy;
mod port;
mod running;
mod sim;
mod stage;
mod table;
mod thread;
mod workload;

use pyo3::prelude::*;

/// The module `cosched._native`.
#[pymodule]
mod _native {
    use super::buffer::Buffer;
    #[pymodule_export]
    use super::graph::Graph;
    #[pymodule_export]
    use super::policy::simulate_policy;
    #[pymodule_export]
    use super::port::Port;
    #[pymodule_export]
    use super::running::{Outcome, Running, report_text, report_trace};
    #[pymodule_export]
    use super::sim::{simulate_jobs, sweep_cells};
    #[pymodule_export]
    use super::stage::Flow;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::workload::{Jobs, fit_model};
    use super::*;

    /// Adds the version.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("Buffer", Buffer::exporting(module.py())?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
