//! `cosched top`: nodes and CPUs, the matrix, the jobs, and keys that control jobs: LLNL's xgang for a terminal.
//!
//! One thread talks to the daemon (`feed`), so that a slow or dead daemon does not block the keys; what is shown and
//! what keys mean is plain data (`view`, `keys`); `draw` renders it, in the same way for a terminal and for a pipe. The
//! current row of the matrix follows from the clock, so it moves without requests to the daemon.

#[cfg(feature = "top")]
mod draw;
#[cfg(feature = "top")]
mod feed;
#[cfg_attr(not(feature = "top"), expect(dead_code))]
mod help;
#[cfg(feature = "top")]
mod keys;
#[cfg(feature = "top")]
mod once;
#[cfg_attr(not(feature = "top"), expect(dead_code))]
mod sort;
#[cfg(feature = "top")]
mod terminal;
#[cfg(feature = "top")]
mod view;

use crate::context::Context;
use crate::out::Failure;
use clap::{ArgAction, Args};
use cosched_api::parse;
use sort::Sort;
use std::time::Duration;

/// Shorter intervals would cost more than they show, longer ones make the display look dead.
const INTERVAL: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60);

#[derive(Args, Debug)]
#[command(after_help = help::TOP)]
pub(crate) struct Top {
    /// Refresh interval, 100ms to 60s
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(crate) interval: Duration,

    /// Print one screen as text and exit, for pipes
    #[arg(long, action = ArgAction::SetTrue)]
    pub(crate) once: bool,

    /// Only jobs with this text in their id, name, user, class, state or command
    #[arg(long, short, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) filter: String,

    /// Sort the jobs by id, cpu, memory, share, class, user or name
    #[arg(long, value_name = "KEY", value_enum, default_value_t = Sort::Id, hide_possible_values = true)]
    pub(crate) sort: Sort,
}

/// `cosched top`.
#[cfg(feature = "top")]
pub(crate) fn top(context: &Context, options: &Top) -> Result<u8, Failure> {
    match (context.json, options.once) {
        (true, once) => once::json(context, options, once),
        (false, true) => once::text(context, options),
        (false, false) => terminal::run(context, options),
    }
}

/// `cosched top` of a build that has no display.
#[cfg(not(feature = "top"))]
pub(crate) fn top(_: &Context, _: &Top) -> Result<u8, Failure> {
    Err(Failure::not_built("cosched top"))
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = parse::duration(text).map_err(|e| e.to_string())?;
    if INTERVAL.contains(&interval) { Ok(interval) } else { Err("give a time from 100ms to 60s".into()) }
}

#[cfg(all(test, feature = "top"))]
mod tests;
