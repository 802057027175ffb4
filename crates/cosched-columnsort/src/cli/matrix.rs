//! `plan` and `shape`: what a sort would do, without doing it.

use cosched_columnsort::plan::Plan;
use cosched_columnsort::shape::Shape;
use cosched_pipeline::Priorities;
use serde_json::json;

use super::args::{PlanArgs, ShapeArgs};
use super::out::{self, EXIT_USAGE, Problem};
use super::{common, size};

/// `cosched-columnsort plan`.
pub(crate) fn plan(args: &PlanArgs) -> Result<u8, Problem> {
    let format = common::format(&args.records)?;
    let records = match (&args.input, args.count) {
        (Some(input), _) => common::records_of(input, &format)?,
        (None, count) => count.unwrap_or(0),
    };
    let processes = args.processes.max(1);
    let memory = common::memory(&args.matrix, processes);
    let plan = common::plan(&args.matrix, format, records, processes, memory, &Priorities::Default)?;
    out::give(args.json, &json!(plan), &describe(&plan, false))
}

/// A description of a plan.
pub(crate) fn describe(plan: &Plan, separate: bool) -> String {
    let (shape, memory) = (plan.shape, plan.memory);
    let steps = match plan.passes.len() {
        1 => "1 pass".to_owned(),
        n => format!("{n} passes ({})", plan.passes.join(", ")),
    };
    let each = if shape.processes > 1 { format!(" on each of {} processes", shape.processes) } else { String::new() };
    let halves = match memory.halves {
        0 => String::new(),
        n => format!(", {n} half columns of {}", size::text(memory.half_bytes)),
    };
    // A single process writes the output over its working file.
    let disk = if shape.processes == 1 && !separate {
        format!("{}, the output's room among it", size::text(plan.output_bytes.max(plan.working_bytes)))
    } else {
        format!(
            "{} for the output, {}{each} for working",
            size::text(plan.output_bytes),
            size::text(plan.working_bytes)
        )
    };
    format!(
        "records  {} of {}, {}\n\
         matrix   {shape}, {steps}\n\
         memory   {}{each}: {} columns of {}, {} blocks of {}{halves}, {} for {}\n\
         disk     {disk}\n\
         to move  {}\n",
        shape.records,
        plan.format,
        size::text(plan.output_bytes),
        size::text(memory.total_bytes),
        memory.columns,
        size::text(memory.column_bytes),
        memory.blocks,
        size::text(memory.block_bytes),
        size::text(memory.sorter_bytes),
        if plan.sorters_max == 1 { "a sorter".to_owned() } else { format!("{} sorters", plan.sorters_max) },
        size::text(plan.moved_bytes),
    )
}

/// `cosched-columnsort shape`.
pub(crate) fn shape(args: &ShapeArgs) -> Result<u8, Problem> {
    let answer = Shape::new(args.records, args.rows, args.columns, args.processes);
    if args.json {
        let value = match &answer {
            Ok(shape) => json!({ "sorts": true, "shape": shape }),
            Err(bad) => json!({ "sorts": false, "why": bad.why.to_string(), "nearest": bad.nearest }),
        };
        out::print_json(&value)?;
        return Ok(if answer.is_ok() { 0 } else { EXIT_USAGE });
    }
    match answer {
        Ok(shape) => {
            out::print(&format!(
                "{shape} sort {} records and up to {}\n",
                args.records,
                u128::from(shape.rows) * u128::from(shape.columns)
            ))?;
            Ok(0)
        }
        Err(bad) => {
            let nearest: Vec<_> = bad.nearest.iter().map(|(r, s)| format!("--rows {r} --columns {s}")).collect();
            let what = format!("{} rows x {} columns do not sort {} records", args.rows, args.columns, args.records);
            Err(Problem::explained(EXIT_USAGE, &what, bad.why, &format!("these do: {}", nearest.join(", "))))
        }
    }
}
