//! The orders in which jobs are listed.

use clap::ValueEnum;
use cosched_api::Job;
use std::cmp::Ordering;

/// By what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    Id,
    /// The largest first, as all numbers but ids.
    Cpu,
    Memory,
    /// What it received against what was due: the poorest first.
    Share,
    Class,
    User,
    Name,
}

impl Sort {
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    pub(super) fn next(self) -> Sort {
        let all = Sort::value_variants();
        all[(self as usize + 1) % all.len()]
    }

    /// Equal jobs are ordered by their ids.
    pub(super) fn compare(self, a: &Job, b: &Job) -> Ordering {
        let order = match self {
            Sort::Id => Ordering::Equal,
            Sort::Cpu => b.cpu_percent.unwrap_or(0.0).total_cmp(&a.cpu_percent.unwrap_or(0.0)),
            Sort::Memory => b.memory_bytes.cmp(&a.memory_bytes),
            Sort::Share => ratio(a).total_cmp(&ratio(b)),
            Sort::Class => a.class.cmp(&b.class),
            Sort::User => a.user.cmp(&b.user),
            Sort::Name => a.name.cmp(&b.name),
        };
        order.then(a.id.cmp(&b.id))
    }
}

/// Received share relative to the due one; jobs to which nothing is due come last.
fn ratio(job: &Job) -> f64 {
    match (job.share_received, job.share_due) {
        (Some(received), Some(due)) if due > 0.0 => received / due,
        _ => f64::INFINITY,
    }
}
