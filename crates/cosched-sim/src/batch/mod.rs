//! Batch scheduling (space sharing) of a log: what operators use today, and what coscheduling is compared with.
//!
//! At each instant all ends come first, then all submissions, then one pass over the queue (docs/workloads.md, Backfilling):
//! the order alone changes mean slowdowns by per cents, so it is fixed, and named in every result.

mod engine;
mod fair;
mod filter;
mod places;
mod queue;
mod report;
mod summary;

pub use cosched_core::cluster::FairShare;
pub use engine::{EventOrder, Policy, Schedule, simulate};
pub use fair::simulate_fair;
pub use filter::{BatchJob, Dropped, Filter};
pub use places::{Places, allocate};
pub use report::write_jobs_csv;
pub use summary::{Summary, summarise};

#[cfg(test)]
mod tests;
