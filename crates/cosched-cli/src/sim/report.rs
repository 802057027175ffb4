//! `cosched sim report`: figures and tables of a sweep's results so far, without any simulation.

use super::cells::{self, Cells, recall};
use super::sweep::{Settings, journal, plan, title};
use crate::context::Context;
use crate::out::{Failure, say};
use clap::Args;
use cosched_sim::sweep::{Plan, Table, Taken};
use std::path::PathBuf;

/// Options of `cosched sim report`.
#[derive(Args, Debug)]
#[command(after_help = super::help::REPORT)]
pub(crate) struct Report {
    /// The sweep's description (TOML)
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) settings: Settings,

    /// The sweep's journal [default: FILE's name with .cells.jsonl, or sweep.cells.jsonl]
    #[arg(long, value_name = "FILE", help_heading = cells::RUNNING)]
    pub(crate) journal: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) cells: Cells,
}

pub(crate) fn report(context: &Context, options: &Report) -> Result<u8, Failure> {
    let file = options.file.as_deref();
    let plan = plan(file, &options.settings)?;
    let journal = journal(options.journal.as_deref(), file);
    let (plan, taken) = recall(&plan, &journal)?;
    let missing = taken.iter().filter(|taken| taken.result().is_none()).count();
    if missing == plan.cells.len() {
        return Err(Failure::explained(
            1,
            &format!("{} has none of this sweep's cells", journal.display()),
            "nothing was simulated yet, or only with other inputs",
            "run `cosched sim sweep` first, or give its journal with --journal",
        ));
    }
    if missing > 0 {
        say(&format!("{missing} of {} cells are not finished yet", plan.cells.len()));
    }
    cells::give(&title(file), &present(&plan, &taken), &options.cells, context.json)
}

/// The table of the finished cells.
fn present(plan: &Plan, taken: &[Taken]) -> Table {
    let (cells, results): (Vec<_>, Vec<_>) = plan
        .cells
        .iter()
        .zip(taken)
        .filter(|(_, taken)| taken.result().is_some())
        .map(|(cell, taken)| (cell.clone(), taken.clone()))
        .unzip();
    Table::new(&Plan { cells, ..*plan }, &results)
}
