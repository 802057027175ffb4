//! `cosched events`: what happens at the daemon, line by line.

use crate::context::Context;
use crate::format;
use crate::jobs;
use crate::out::{Failure, plain, print, print_json, say};
use clap::Args;
use cosched_api::{Client, ClientError, EventKind, StreamEvent, StreamRequest};
use std::time::Duration;

/// Between attempts to reach a daemon that is away.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

#[derive(Args, Debug)]
#[command(after_help = crate::commands::help::EVENTS)]
pub(crate) struct Events {
    /// Continue with what happens from now on, until interrupted; also over a restart of the daemon
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Only events after the one with this id (field `id` of --json) [default: all that the daemon remembers]
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,
}

/// `cosched events`
pub(crate) fn events(context: &Context, options: &Events) -> Result<u8, Failure> {
    let mut client = jobs::connect(context)?;
    let mut after = options.after.clone().unwrap_or_else(|| "0".to_owned());
    loop {
        let request = StreamRequest { after: Some(after.clone()), follow: options.follow };
        let ended = show(context, &client, &request, &mut after);
        match ended {
            Err(Stop::Failed(failure)) => return Err(failure),
            Err(Stop::Away(e)) if !options.follow => return Err(e.into()),
            Ok(()) if !options.follow => return Ok(0),
            Ok(()) | Err(Stop::Away(_)) => say("the daemon went away; waiting for it to return"),
        }
        client = again(context);
    }
}

enum Stop {
    /// The connection to the daemon is lost.
    Away(ClientError),
    Failed(Failure),
}

fn show(context: &Context, client: &Client, request: &StreamRequest, after: &mut String) -> Result<(), Stop> {
    let stop = |e| match e {
        e @ ClientError::Unreachable { .. } => Stop::Away(e),
        e => Stop::Failed(e.into()),
    };
    for event in client.stream(request).map_err(stop)? {
        let event = event.map_err(stop)?;
        let shown = if context.json { print_json(&event) } else { tell(&event) };
        shown.map_err(Stop::Failed)?;
        *after = event.id;
    }
    Ok(())
}

fn again(context: &Context) -> Client {
    loop {
        std::thread::sleep(RETRY_PAUSE);
        if let Ok(client) = jobs::connect(context) {
            return client;
        }
    }
}

fn tell(event: &StreamEvent) -> Result<(), Failure> {
    if event.kind == EventKind::Gap {
        say(&format!("events are missing here: {}", event.gap.as_deref().unwrap_or_default()));
        return Ok(());
    }
    print(&format!("{}  {}\n", format::moment(event.unix_ms), line(event).trim_end()))
}

/// `job 7 (a.out, ann)  began`
fn line(event: &StreamEvent) -> String {
    if let Some(job) = &event.job {
        let who = format!("job {} ({}, {})", job.id, plain(&job.name), plain(&job.user));
        return format!("{who}  {}  {}", job.what, plain(&job.detail));
    }
    if let Some(plan) = &event.plan {
        let slot_ms = plan.slot_length_ns as f64 / 1e6;
        let rows = plan.matrix.rows.len();
        return format!(
            "plan {}  {rows} rows, cycle of {} slots of {slot_ms} ms",
            plan.generation, plan.matrix.cycle_slots
        );
    }
    let problems = event.problems.iter().flatten().map(|problem| plain(&problem.what)).collect::<Vec<_>>();
    if problems.is_empty() { "problems  none".to_owned() } else { format!("problems  {}", problems.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(of: serde_json::Value) -> StreamEvent {
        serde_json::from_value(of).expect("the literal is an event")
    }

    #[test]
    fn an_event_is_a_line_that_steers_no_terminal() {
        let job = serde_json::json!({"unix_ms": 1, "kind": "job", "job": {
            "what": "ended", "detail": "exit code 0", "id": 7, "name": "a\u{1b}[2J", "uid": 1, "user": "ann", "class": "batch",
            "cpus": 2, "state": "ended"}});
        assert_eq!(line(&event(job)), "job 7 (a\\u{1b}[2J, ann)  ended  exit code 0");
        let none = serde_json::json!({"unix_ms": 1, "kind": "problems", "problems": []});
        assert_eq!(line(&event(none)), "problems  none");
    }
}
