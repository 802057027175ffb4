//! `cosched workload`: shows, fits, generates and converts workloads.

mod args;
mod convert;
mod draw;
mod fit;
mod generate;
pub(crate) mod input;
mod output;
mod page;
mod show;
mod shown;

pub(crate) use args::Workload;
pub(crate) use output::write_to;

use crate::context::Context;
use crate::out::{Failure, say};
use args::{Window, WorkloadCommand};
use cosched_sim::workload::swf::Record;

/// Runs the subcommand; returns the exit code.
pub(crate) fn workload(context: &Context, options: &Workload) -> Result<u8, Failure> {
    match &options.command {
        WorkloadCommand::Show(options) => show::show(context, options),
        WorkloadCommand::Fit(options) => fit::fit(context, options),
        WorkloadCommand::Generate(options) => generate::generate(context, options),
        WorkloadCommand::Convert(options) => convert::convert(context, options),
    }
}

impl Window {
    /// Whether a record was submitted within the period.
    fn has(&self, record: &Record) -> bool {
        let submit = record.submit_s();
        self.from_s.is_none_or(|from| submit >= from) && self.to_s.is_none_or(|to| submit < to)
    }
}

/// Reports on standard error why jobs were left out.
pub(crate) fn say_left_out(reasons: &[(impl AsRef<str>, u64)]) {
    let counts: Vec<String> = reasons
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| format!("{} ({})", crate::format::grouped(*count), reason.as_ref()))
        .collect();
    if !counts.is_empty() {
        say(&format!("left out: {}", counts.join(", ")));
    }
}
