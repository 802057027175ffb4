//! `cosched pipeline list`.

use crate::context::Context;
use crate::format;
use crate::out::{Failure, plain, print, print_json, terminal_width};
use crate::table::{Cell, Column, numbers, render, words};
use cosched_pipeline::live::{self, Listed};
use serde_json::{Value, json};

const COLUMNS: [Column; 8] = [
    numbers("PID", 0),
    words("NAME", 0),
    numbers("UID", 4),
    numbers("UP", 1),
    numbers("BLOCKS", 1),
    numbers("OF BEST", 2),
    words("LIMITS", 3),
    words("COMMAND", 0),
];

/// Prints all pipelines that this user may see.
pub(super) fn list(context: &Context) -> Result<u8, Failure> {
    let all = live::list();
    if context.json {
        print_json(&json!({ "pipelines": all.iter().map(as_json).collect::<Vec<_>>() }))?;
    } else if all.is_empty() {
        crate::out::say("no pipeline with the option `serve` is running");
    } else {
        let rows: Vec<Vec<Cell>> = all.iter().map(row).collect();
        print(&render(&COLUMNS, &rows, terminal_width()))?;
    }
    Ok(0)
}

fn row(one: &Listed) -> Vec<Cell> {
    let pid = one.pid.to_string();
    match &one.answer {
        Ok(live) => {
            let report = &live.report;
            vec![
                pid.into(),
                plain(&report.name).into(),
                live.uid.to_string().into(),
                format::duration_ms((report.elapsed_s * 1e3) as u64).into(),
                report.rounds.to_string().into(),
                format::percent(report.efficiency()).into(),
                plain(&report.bound.limiting).into(),
                plain(&live.command).into(),
            ]
        }
        Err(silence) => {
            let unknown = || Cell::from("–");
            let why = format!("({silence})");
            vec![pid.into(), unknown(), unknown(), unknown(), unknown(), unknown(), unknown(), why.into()]
        }
    }
}

fn as_json(one: &Listed) -> Value {
    match &one.answer {
        Ok(live) => json!({
            "pid": live.pid,
            "uid": live.uid,
            "name": live.report.name,
            "command": live.command,
            "elapsed_s": live.report.elapsed_s,
            "rounds": live.report.rounds,
            "efficiency": live.report.efficiency(),
            "limiting": live.report.bound.limiting,
        }),
        Err(silence) => json!({ "pid": one.pid, "error": silence.to_string() }),
    }
}
