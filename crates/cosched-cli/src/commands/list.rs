//! `cosched ps`.

use super::columns::{self, JobColumn, named, reason};
use super::options::Ps;
use super::select::Filter;
use crate::context::Context;
use crate::out::{Failure, print, say, terminal_width, use_colour};
use crate::table::{Cell, render};
use crate::{format, jobs};
use cosched_api::{Job, JobList, JobState};

/// The columns without --format.
const DEFAULT: [&str; 14] = [
    "id", "name", "user", "class", "policy", "state", "cpus", "usage", "cpu", "elapsed", "mem", "row", "share",
    "command",
];

/// `cosched ps`.
pub(crate) fn ps(context: &Context, options: &Ps) -> Result<u8, Failure> {
    if options.format.iter().any(|name| name == "help") {
        print(&columns::help())?;
        return Ok(0);
    }
    let wrong = |why: String| Failure { code: 2, message: why };
    let shown: Vec<&str> = match options.format.is_empty() {
        true => DEFAULT.to_vec(),
        false => options.format.iter().map(String::as_str).collect(),
    };
    let shown = shown.into_iter().map(named).collect::<Result<Vec<&JobColumn>, String>>().map_err(wrong)?;
    let sort = options.sort.iter().map(|word| sort_key(word)).collect::<Result<Vec<_>, String>>().map_err(wrong)?;
    let mut client = jobs::connect(context)?;
    let ended = options.state.iter().any(|state| state.has_ended());
    let mut list = client.jobs(options.all || ended)?.jobs;
    let filter = Filter { users: &options.user, states: &options.state, ..Filter::default() };
    list.retain(|job| filter.takes(job));
    list.sort_by(|a, b| {
        let orders = sort.iter().map(|(column, descending)| column.compare(a, b, *descending));
        orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    });
    let list = JobList { jobs: list };
    context.give(&list, || table(&list.jobs, &shown, options.format.is_empty(), terminal_width(), use_colour()))?;
    if let Some(cluster) = jobs::without_store(&mut client) {
        say(&format!(
            "the store of cluster {cluster} does not answer: the list shows the jobs that this daemon knows; jobs on \
             other nodes may be missing or have ended"
        ));
    }
    Ok(0)
}

/// `COLUMN`, or `-COLUMN` for the largest first.
fn sort_key(word: &str) -> Result<(&'static JobColumn, bool), String> {
    match word.strip_prefix('-') {
        Some(name) => Ok((named(name)?, true)),
        None => Ok((named(word)?, false)),
    }
}

/// By default, a waiting job shows what it waits for, and until when, in place of its command.
fn table(jobs: &[Job], shown: &[&JobColumn], default: bool, width: Option<usize>, colour: bool) -> String {
    let mut columns: Vec<_> = shown.iter().map(|column| column.column.clone()).collect();
    if default && jobs.iter().any(|job| why(job).is_some()) {
        columns.last_mut().expect("the list has columns").title = "COMMAND (REASON)".into();
    }
    let row = |job: &Job| -> Vec<Cell> {
        let mut cells: Vec<Cell> = shown.iter().map(|column| column.cell(job, colour)).collect();
        if let Some(why) = why(job).filter(|_| default) {
            *cells.last_mut().expect("the list has columns") = format!("({why})").into();
        }
        cells
    };
    render(&columns, &jobs.iter().map(row).collect::<Vec<_>>(), width)
}

fn why(job: &Job) -> Option<String> {
    let reason = reason(job).filter(|_| job.state != JobState::Ended)?;
    let expected = job.expected_start_unix_ms.map(|at| format!("; starts by {}", format::second(at)));
    Some(reason + &expected.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::tests::job;
    use cosched_api::ExitStatus;

    fn default(jobs: &[Job], width: Option<usize>, colour: bool) -> String {
        let shown: Vec<_> = DEFAULT.iter().map(|name| named(name).unwrap()).collect();
        table(jobs, &shown, true, width, colour)
    }

    #[test]
    fn the_table_says_what_is_known_and_a_dash_for_what_is_not() {
        let mut first = job(7, "a.out");
        first.cpu_percent = Some(99.6);
        first.memory_bytes = Some(3 << 29);
        (first.row, first.share) = (Some(0), Some(0.5));
        let mut second = job(12, "night");
        second.state = JobState::Ended;
        second.exit = Some(ExitStatus { code: None, signal: Some(9) });
        (second.started_unix_ms, second.ended_unix_ms) = (Some(1000), Some(66_000));
        let jobs = [first, second];
        assert_eq!(
            default(&jobs, None, false),
            "ID  NAME   USER  CLASS        POLICY  STATE          CPUS  CPU%   TIME  ELAPSED   MEM  ROW  SHARE  COMMAND\n \
             7  a.out  ann   interactive  gang    running           2   100  12.3s        -  1.5G    0    50%  mpirun -n 2 ./a.out\n\
             12  night  ann   interactive  gang    ended SIGKILL     2     -  12.3s    1m05s     -    -      -  mpirun -n 2 ./a.out\n"
        );
        // A node knows only its own part of a job that spans several nodes.
        let mut parts = [jobs[0].clone(), jobs[0].clone()];
        (parts[0].use_of_nodes, parts[1].use_of_nodes) = (Some(vec!["a".into()]), Some(vec![]));
        let text = default(&parts, None, false);
        assert!(text.contains("12.3s+") && text.contains("1.5G+"), "{text}");
        assert!(text.lines().nth(2).is_some_and(|line| !line.contains("12.3s") && !line.contains("1.5G")), "{text}");
        let narrow = default(&jobs, Some(80), false);
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        assert!(!narrow.contains("ROW") && narrow.contains("COMMAND"), "{narrow}");
        assert!(default(&jobs, None, true).contains("\x1b[32mrunning\x1b[0m"));
    }

    #[test]
    fn a_job_that_waits_shows_why_and_until_when() {
        let mut jobs = [job(7, "a.out"), job(8, "b.out")];
        jobs[1].state = JobState::Waiting;
        jobs[1].waits_for = Some("too little memory".into());
        jobs[1].expected_start_unix_ms = Some(1_700_000_000_000);
        let text = default(&jobs, None, false);
        assert!(
            text.contains("COMMAND (REASON)") && text.contains("(too little memory; starts by 2023-11-1"),
            "{text}"
        );
        let own: Vec<_> = ["id", "reason"].map(|name| named(name).unwrap()).into();
        assert_eq!(table(&jobs, &own, false, None, false), "ID  REASON\n 7  -\n 8  too little memory\n");
    }
}
