//! `cosched pipeline show`.

use super::{EXIT_NO_PIPELINE, help};
use crate::context::Context;
use crate::out::{Failure, plain, print, print_json, say};
use clap::Args;
use cosched_api::parse::nearest;
use cosched_pipeline::live::{self, Listed, Snapshot};
use std::io::{self, IsTerminal};
use std::time::Duration;

const WATCH_PAUSE: Duration = Duration::from_millis(500);

#[derive(Args, Debug)]
#[command(after_help = help::SHOW)]
pub(crate) struct Show {
    /// Process ids or names of pipelines [default: all running ones]
    #[arg(value_name = "PID|NAME")]
    which: Option<String>,

    /// Refresh twice a second until it has ended
    #[arg(long, short)]
    watch: bool,
}

/// Shows the chosen pipelines.
pub(super) fn show(context: &Context, options: &Show) -> Result<u8, Failure> {
    let redraw = options.watch && !context.json && io::stdout().is_terminal();
    let mut shown = false;
    loop {
        let all = live::list();
        let chosen: Vec<&Listed> = all.iter().filter(|one| is_chosen(one, options.which.as_deref())).collect();
        if chosen.is_empty() {
            // It was watched until its end.
            return if shown { Ok(0) } else { Err(none(&all, options.which.as_deref())) };
        }
        shown = true;
        let code = draw(context, &chosen, redraw)?;
        if !options.watch {
            return Ok(code);
        }
        std::thread::sleep(WATCH_PAUSE);
    }
}

fn is_chosen(one: &Listed, which: Option<&str>) -> bool {
    let Some(which) = which else { return true };
    let has_name = one.answer.as_ref().is_ok_and(|live| live.report.name == which);
    has_name || one.pid.to_string() == which
}

/// Draws all of them; returns 1 if one of them did not answer.
fn draw(context: &Context, chosen: &[&Listed], redraw: bool) -> Result<u8, Failure> {
    let mut code = 0;
    let mut texts = Vec::new();
    for one in chosen {
        match &one.answer {
            Ok(live) if context.json => print_json(live)?,
            Ok(live) => texts.push(text(live)),
            Err(silence) => {
                code = 1;
                say(&format!("pipeline of process {}: {silence}", one.pid));
            }
        }
    }
    if texts.is_empty() {
        return Ok(code);
    }
    let all = texts.join("\n");
    if redraw {
        crate::picture::draw(&all)?;
    } else {
        print(&all)?;
    }
    Ok(code)
}

fn text(live: &Snapshot) -> String {
    format!("process {} of user {}: {}\n{}", live.pid, live.uid, plain(&live.command), live.report.text())
}

fn none(all: &[Listed], which: Option<&str>) -> Failure {
    let Some(which) = which else {
        let hint = "start one with the option `serve` as this user; root sees the pipelines of all users";
        return Failure::explained(EXIT_NO_PIPELINE, "no pipeline is running", "none answers", hint);
    };
    let names: Vec<&str> = all.iter().filter_map(|one| Some(one.answer.as_ref().ok()?.report.name.as_str())).collect();
    let hint = match nearest(which, names.iter().copied()) {
        Some(near) => format!("did you mean {}?", plain(near)),
        None => "`cosched pipeline list` lists the running ones".to_owned(),
    };
    let what = format!("no pipeline `{which}` is running");
    Failure::explained(EXIT_NO_PIPELINE, &what, "no running pipeline has this name or process id", &hint)
}
