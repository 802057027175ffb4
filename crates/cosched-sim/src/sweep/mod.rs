//! Sweeps: strategies × workloads × all varied parameters, one cell for each combination, on all cores, and the tables
//! of the results.
//!
//! A sweep is a list of cells in a fixed order. A cell's result depends only on its inputs, so the tables have the same
//! bytes for any number of threads, and a result that has been saved (in the journal) need not be computed again. All
//! strategies get the same job lists and the same draws (common random numbers), so they are compared in pairs.

mod describe;
mod error;
mod journal;
mod measure;
mod plan;
mod precision;
mod result;
mod run;
mod table;
#[cfg(test)]
mod tests;

pub use describe::{Description, Precision, SEEDS, SEEDS_MAX, Seeds};
pub use error::SweepError;
pub use journal::{Journal, line};
pub use measure::{MEASURES, Measure};
pub use plan::{Cell, LOAD, Plan, Wanted};
pub use precision::{recall_precisely, run_precisely};
pub use result::{CellResult, QUANTILES, Simulated, Taken};
pub use run::{Hooks, Simulate, SweepProgress, run};
pub use table::{Row, Table, write_csv};
