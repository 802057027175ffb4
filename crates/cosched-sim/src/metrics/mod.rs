//! Metrics computed from outcomes: of each job, of a run, and of strategies compared with each other (D26;
//! docs/simulator.md has the definitions).
//!
//! Everything here is a pure function of the parameters, the job list and the outcome, so it gives the same bytes on
//! every machine.

mod batsim;
mod csv;
mod energy;
mod estimate;
mod job;
mod run;
mod steady;
mod student;
mod summary;

pub use batsim::{BatsimRow, SUCCESSFUL, interval_set, words_of, write_batsim_jobs, write_batsim_rows};
pub(crate) use batsim::{HEADER as JOBS_CSV_HEADER, intervals};
pub use csv::{seconds, write_jobs_csv};
pub use energy::{Energy, Meter, Watts};
pub use estimate::{Estimate, difference, mean, ratio};
pub use job::{BOUND_S, JobMetrics, job_metrics};
pub use run::{CpuShares, RunMetrics, Utilisation, run_metrics};
pub use steady::Steady;
pub use student::t_975;
pub use summary::{Summary, quantile};
