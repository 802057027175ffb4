//! Batch scheduling of a log: what operators use today, by space sharing, and what is proposed instead (`shared`).
//!
//! At each instant all ends come first, then all submissions, then one pass over the queue (docs/workloads.md, Backfilling):
//! the order alone changes mean slowdowns by per cents, so it is fixed, and named in every result.

mod conservative;
mod decided;
mod engine;
mod failures;
mod fair;
mod filter;
mod intervals;
mod places;
mod profile;
mod queue;
mod report;
mod shared;
mod summary;

pub use cosched_core::cluster::FairShare;
pub use decided::{Decided, DecidedError, DecidedJob, HOSTS_MAX, JobEnd, simulate_decided};
pub use engine::{EventOrder, Policy, Schedule, simulate};
pub use failures::{Checkpoint, Drawn, FailureReport, Failures, OUTAGES_MAX, Source, simulate_failing};
pub use fair::simulate_fair;
pub use filter::{BatchJob, Dropped, Filter};
pub use intervals::Places;
pub use places::allocate;
pub use report::write_jobs_csv;
pub use shared::{Malleable, Oversubscribe, ROWS_MAX, RoundRobin, Sharing, SoftGang, simulate_shared};
pub use summary::{Summary, summarise};

#[cfg(test)]
mod tests;
