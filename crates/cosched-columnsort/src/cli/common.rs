//! Converts options to the library's types.

use std::path::Path;

use cosched_columnsort::format::Format;
use cosched_columnsort::plan::{NoPlan, Plan, Wish};
use cosched_pipeline::Priorities;
use cosched_pipeline::file::IoOptions;

use super::args::{EngineArg, MatrixArgs, RecordArgs};
use super::out::{EXIT_USAGE, Problem};
use super::{machine, size};

/// The record format that the options describe.
pub(crate) fn format(args: &RecordArgs) -> Result<Format, Problem> {
    Format::new(args.record_size, args.key_offset, args.key_size).map_err(|e| {
        Problem::explained(
            EXIT_USAGE,
            "such records are not possible",
            e,
            "see --record-size, --key-offset and --key-size",
        )
    })
}

/// The number of records in a file.
pub(crate) fn records_of(path: &Path, format: &Format) -> Result<u64, Problem> {
    let what = format!("cannot sort {}", path.display());
    let meta = std::fs::metadata(path).map_err(|e| {
        Problem::explained(super::out::EXIT_FAILED, &what, e, "name a file of records that can be read")
    })?;
    if !meta.is_file() {
        let hint = "the size has to be known before the sort: write the records to a file first";
        return Err(Problem::explained(EXIT_USAGE, &what, "it is not a regular file", hint));
    }
    format.records_in(meta.len()).map_err(|e| {
        Problem::explained(EXIT_USAGE, &what, e, "the file may be cut off; or give the right --record-size")
    })
}

/// The options for reading and writing files.
pub(crate) fn io(engine: EngineArg) -> IoOptions {
    IoOptions { engine: engine.0, ..IoOptions::default() }
}

/// The default of the memory per process: a quarter of what is available on this machine, shared by
/// `processes` processes.
pub(crate) fn memory(args: &MatrixArgs, processes: u64) -> u64 {
    args.memory.unwrap_or_else(|| machine::memory_available_bytes() / 4 / processes)
}

/// A plan for the given options.
pub(crate) fn plan(
    args: &MatrixArgs,
    format: Format,
    records: u64,
    processes: u64,
    memory_bytes: u64,
    priorities: &Priorities,
) -> Result<Plan, Problem> {
    let (what, zero) = ("such a sort is not possible", "give 1 or more");
    for (name, value) in [("--incarnations", Some(args.incarnations)), ("--threads", args.threads)] {
        if value == Some(0) {
            return Err(Problem::explained(EXIT_USAGE, what, format!("{name} 0: no thread would sort"), zero));
        }
    }
    let wish = Wish {
        records,
        format,
        version: args.version,
        joined: args.passes == 3,
        processes,
        sorters: args.incarnations,
        // Autotune may raise the number of active sorters.
        sorters_max: if matches!(priorities, Priorities::Auto) {
            args.incarnations.max(machine::cpus())
        } else {
            args.incarnations
        },
        threads: args.threads.unwrap_or_else(machine::cpus),
        memory_bytes,
        buffers: args.buffers,
        block_bytes: args.block.map(|bytes| bytes as usize),
        rows: args.rows,
        columns: args.columns,
    };
    Plan::new(&wish).map_err(|no| Problem::explained(EXIT_USAGE, "such a sort is not possible", &no, &hint(&no)))
}

/// A hint with values that would work.
fn hint(no: &NoPlan) -> String {
    match no {
        NoPlan::Shape(bad) => {
            let nearest: Vec<_> = bad.nearest.iter().map(|(r, s)| format!("--rows {r} --columns {s}")).collect();
            format!("these sort: {}; or leave the choice to the program", nearest.join(", "))
        }
        NoPlan::Memory { needs_bytes, .. } | NoPlan::TooMuch { needs_bytes, .. } => {
            format!("give --memory {} or more", size::exact(*needs_bytes))
        }
        NoPlan::LongColumn { .. } => "take more columns".into(),
        NoPlan::FewBuffers(_) => "give --buffers 2 or more".into(),
        NoPlan::BadBlock { nearest, .. } => format!("give --block {nearest}B"),
    }
}
