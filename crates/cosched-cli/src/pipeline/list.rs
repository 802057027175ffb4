//! `cosched pipeline list`.

use crate::context::Context;
use crate::format;
use crate::out::{Failure, plain, print, print_json, terminal_width};
use crate::table::Listing;
use cosched_pipeline::live::{self, Listed, Snapshot};
use serde_json::{Value, json};

/// Prints all pipelines that this user may see.
pub(super) fn list(context: &Context) -> Result<u8, Failure> {
    let all = live::list();
    if context.json {
        print_json(&json!({ "pipelines": all.iter().map(as_json).collect::<Vec<_>>() }))?;
    } else if all.is_empty() {
        crate::out::say("no pipeline with the option `serve` is running");
    } else {
        print(&table(&all).render(terminal_width()))?;
    }
    Ok(0)
}

fn table(all: &[Listed]) -> Listing<&Listed> {
    fn known(of: fn(&Snapshot) -> String) -> impl Fn(&Listed) -> String {
        move |one| one.answer.as_ref().map_or_else(|_| "–".to_owned(), of)
    }
    Listing::of(all)
        .numbers("PID", 0, |one| one.pid.to_string())
        .words("NAME", 0, known(|live| plain(&live.report.name)))
        .numbers("UID", 4, known(|live| live.uid.to_string()))
        .numbers("UP", 1, known(|live| format::duration_ms((live.report.elapsed_s * 1e3) as u64)))
        .numbers("BLOCKS", 1, known(|live| live.report.rounds.to_string()))
        .numbers("OF BEST", 2, known(|live| format::percent(live.report.efficiency())))
        .words("LIMITS", 3, known(|live| plain(&live.report.bound.limiting)))
        .words("COMMAND", 0, |one| {
            one.answer.as_ref().map_or_else(|silence| format!("({silence})"), |live| plain(&live.command))
        })
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
