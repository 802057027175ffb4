//! The columns that lists of jobs can show, and how jobs are sorted by them.

use crate::format;
use crate::table::{Cell, Column, Listing, numbers, words};
use cosched_api::{DecidedMatter, Job, JobState};
use std::cmp::Ordering;

/// One column of a list of jobs.
#[derive(Clone, Debug)]
pub(super) struct JobColumn {
    /// Its name for `--format` and `--sort`.
    pub(super) name: &'static str,
    pub(super) column: Column,
    about: &'static str,
    value: fn(&Job) -> Value,
}

/// A column's value for a job: a text to show, and a number to sort by if it has one.
struct Value(Option<String>, Option<f64>);

fn text(text: impl Into<String>) -> Value {
    Value(Some(text.into()), None)
}

fn number(number: Option<f64>, text: Option<String>) -> Value {
    Value(text, number)
}

fn moment(unix_ms: Option<u64>) -> Value {
    Value(unix_ms.map(format::second), unix_ms.map(|ms| ms as f64))
}

fn start(job: &Job) -> Value {
    let expected = job.expected_start_unix_ms.map(|at| ("by ", at));
    let begin = job.begin_unix_ms.filter(|_| job.state == JobState::Waiting).map(|at| ("from ", at));
    let known = job.started_unix_ms.map(|at| ("", at)).or(expected).or(begin);
    let Value(text, number) = moment(known.map(|(_, at)| at));
    Value(text.map(|text| format!("{}{text}", known.map_or("", |(word, _)| word))), number)
}

const fn column(name: &'static str, column: Column, about: &'static str, value: fn(&Job) -> Value) -> JobColumn {
    JobColumn { name, column, about, value }
}

/// Every column.
pub(super) const ALL: [JobColumn; 23] = [
    column("id", numbers("ID", 0), "number", |job| number(Some(job.id as f64), Some(job.id.to_string()))),
    column("name", words("NAME", 0), "name", |job| text(&*job.name)),
    column("user", words("USER", 3), "owner", |job| text(&*job.user)),
    column("class", words("CLASS", 2), "express, interactive, batch or standby", |job| text(job.class.name())),
    column("policy", words("POLICY", 1), "policy in force", |job| text(job.policy.name())),
    column("state", words("STATE", 0), "state, and how it has ended", |job| text(state(job))),
    column("cpus", numbers("CPUS", 6), "CPUs at a time", |job| {
        number(Some(job.cpus.into()), Some(job.cpus.to_string()))
    }),
    column("usage", numbers("CPU%", 0), "CPU usage over the last seconds, in percent of one CPU", |job| {
        number(job.cpu_percent, job.cpu_percent.map(|percent| format!("{percent:.0}")))
    }),
    column("cpu", numbers("TIME", 0), "CPU time", |job| {
        let text = format::measured(job, Some(format::duration_ms(job.cpu_time_ms)));
        number(Some(job.cpu_time_ms as f64), Some(text))
    }),
    column("elapsed", numbers("ELAPSED", 5), "time since it started, or from start to end", |job| {
        let elapsed = elapsed_ms(job, format::now_unix_ms());
        number(elapsed.map(|ms| ms as f64), elapsed.map(format::duration_ms))
    }),
    column("mem", numbers("MEM", 4), "memory in use", |job| of_memory(job, job.memory_bytes)),
    column("peak", numbers("PEAK", 4), "most memory that it used", |job| of_memory(job, job.memory_peak_bytes)),
    column("row", numbers("ROW", 8), "home row of the matrix", |job| {
        number(job.row.map(f64::from), job.row.map(|row| row.to_string()))
    }),
    column("share", numbers("SHARE", 7), "fraction of the time in which it owns its CPUs, and its limit", |job| {
        number(job.share.or(job.share_max), share(job))
    }),
    column("queue", words("QUEUE", 1), "queue", |job| Value(job.queue.clone(), None)),
    column("nodes", words("NODES", 1), "nodes", |job| {
        let names: Vec<&str> = job.nodes.iter().map(|node| node.name.as_str()).collect();
        Value((!names.is_empty()).then(|| names.join(",")), None)
    }),
    column("pid", numbers("PID", 1), "first process", |job| {
        let pid = Some(job.pid).filter(|pid| *pid != 0);
        number(pid.map(f64::from), pid.map(|pid| pid.to_string()))
    }),
    column("submitted", words("SUBMITTED", 1), "when it was submitted", |job| moment(Some(job.submitted_unix_ms))),
    column("start", words("START", 1), "when it started; `by`: at the latest, `from`: not before", start),
    column("ended", words("ENDED", 1), "when its last process ended", |job| moment(job.ended_unix_ms)),
    column("exit", words("EXIT", 1), "exit code, or the signal that ended it", |job| Value(exit(job), None)),
    column("reason", words("REASON", 0), "why it waits, is stopped or was ended", |job| Value(reason(job), None)),
    column("command", words("COMMAND", 0), "program and arguments", |job| {
        text(from(job).unwrap_or_else(|| format::command_line(&job.command)))
    }),
];

/// The names of all columns.
pub(crate) fn column_names() -> impl Iterator<Item = &'static str> {
    ALL.into_iter().map(|column| column.name)
}

/// The column of a name.
pub(super) fn named(name: &str) -> Result<&'static JobColumn, String> {
    const COLUMNS: &[JobColumn] = &ALL;
    let names = || COLUMNS.iter().map(|column| column.name);
    COLUMNS.iter().find(|column| column.name == name).ok_or_else(|| {
        let hint = cosched_api::parse::nearest(name, names()).map(|near| format!("; did you mean `{near}`?"));
        format!("no column `{name}`{}; `--format help` lists them", hint.unwrap_or_default())
    })
}

/// What `--format help` prints.
pub(super) fn help() -> String {
    Listing::of(&ALL)
        .words("COLUMN", 0, |column| column.name)
        .words("TITLE", 0, |column| column.column.title.as_ref())
        .words("CONTENTS", 0, |column| column.about)
        .render(None)
}

impl JobColumn {
    /// The cell for a job.
    pub(super) fn cell(&self, job: &Job, colour: bool) -> Cell {
        let colour = if colour && self.name == "state" { colour_of(job) } else { "" };
        Cell { text: format::or_dash((self.value)(job).0), colour }
    }

    /// The order of two jobs by this column; unknown values come last.
    pub(super) fn compare(&self, a: &Job, b: &Job, descending: bool) -> Ordering {
        let (Value(text_a, number_a), Value(text_b, number_b)) = ((self.value)(a), (self.value)(b));
        let turned = |order: Ordering| if descending { order.reverse() } else { order };
        match (number_a, number_b) {
            (Some(a), Some(b)) => turned(a.total_cmp(&b)),
            (None, None) => match (text_a, text_b) {
                (Some(a), Some(b)) => turned(a.cmp(&b)),
                (a, b) => b.is_some().cmp(&a.is_some()),
            },
            (a, b) => b.is_some().cmp(&a.is_some()),
        }
    }
}

/// Where an adopted job comes from, shown in place of a command.
fn from(job: &Job) -> Option<String> {
    let adopted = job.adopted.as_ref()?;
    let from = adopted.from.as_ref().or(adopted.cgroup.as_ref())?;
    Some(format!("adopted: {from}"))
}

fn of_memory(job: &Job, bytes: Option<u64>) -> Value {
    number(bytes.map(|bytes| bytes as f64), Some(format::measured(job, bytes.map(format::size))))
}

/// From its start to its end, or until now.
pub(super) fn elapsed_ms(job: &Job, now_unix_ms: u64) -> Option<u64> {
    let until = job.ended_unix_ms.unwrap_or(now_unix_ms);
    job.started_unix_ms.map(|start| until.saturating_sub(start))
}

/// `33%`, and `33%/50%` with the maximum share.
fn share(job: &Job) -> Option<String> {
    match (job.share.map(format::percent), job.share_max.map(format::exact_percent)) {
        (share, None) => share,
        (share, Some(most)) => Some(format!("{}/{most}", share.unwrap_or_else(|| "-".into()))),
    }
}

/// `0`, `SIGHUP`, `SIGKILL OOM`.
pub(super) fn exit(job: &Job) -> Option<String> {
    match job.exit.map(|exit| (exit.code, exit.signal))? {
        (Some(code), _) => Some(code.to_string()),
        (None, Some(9)) if job.out_of_memory.is_some() => Some("SIGKILL OOM".to_owned()),
        (None, signal) => signal.map(format::signal),
    }
}

/// `running`, `stopped`, `ended 0`, `ended SIGHUP`, `ended SIGTERM time limit`, `exited 0, 2 left` when processes outlive the main one, `suspended by root`.
fn state(job: &Job) -> String {
    let state = job.state.name();
    let suspended = || job.decided.iter().find(|decision| decision.matter == DecidedMatter::Suspension);
    match (job.state, exit(job)) {
        (JobState::Ended | JobState::Lost, Some(exit)) => {
            let limit = job.ended_why.as_deref().is_some_and(|why| why.starts_with("time limit"));
            format!("{state} {exit}{}", if limit { " time limit" } else { "" })
        }
        (JobState::Running, Some(exit)) => match job.processes {
            Some(left) => format!("exited {exit}, {left} left"),
            None => format!("exited {exit}"),
        },
        (JobState::Running, None) if job.stopped => "stopped".to_owned(),
        (JobState::Suspended, _) => {
            suspended().map_or(state.to_owned(), |decision| format!("{state} by {}", decision.user))
        }
        _ => state.to_owned(),
    }
}

/// Why the job does not run, or was ended.
pub(super) fn reason(job: &Job) -> Option<String> {
    match job.state {
        JobState::Waiting => job.waits_for.clone(),
        JobState::Running if job.stopped => {
            Some("a signal has stopped it, as Ctrl-Z; `fg` or SIGCONT continues it".to_owned())
        }
        JobState::Ended => job.ended_why.clone(),
        _ => None,
    }
}

fn colour_of(job: &Job) -> &'static str {
    match job.state {
        JobState::Running if job.stopped => "\x1b[33m",
        JobState::Running => "\x1b[32m",
        JobState::Asleep | JobState::Dropped | JobState::Ended => "\x1b[2m",
        JobState::Suspended | JobState::Waiting => "\x1b[33m",
        JobState::Lost | JobState::Unknown => "\x1b[31m",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::tests::job;
    use cosched_api::{Decision, ExitStatus, OutOfMemory};

    #[test]
    fn a_state_says_how_a_job_ended_or_why_it_stands() {
        let mut one = job(1, "a");
        assert_eq!(state(&one), "running");
        one.stopped = true;
        assert_eq!(state(&one), "stopped");
        assert!(reason(&one).unwrap().contains("Ctrl-Z"));
        (one.exit, one.processes) = (Some(ExitStatus { code: Some(0), signal: None }), Some(1));
        assert_eq!(state(&one), "exited 0, 1 left");
        one.state = JobState::Ended;
        assert_eq!(state(&one), "ended 0");
        one.exit = Some(ExitStatus { code: None, signal: Some(1) });
        assert_eq!(state(&one), "ended SIGHUP");
        one.exit = Some(ExitStatus { code: None, signal: Some(9) });
        one.out_of_memory = Some(OutOfMemory { killed: 1, limit_bytes: None });
        assert_eq!(state(&one), "ended SIGKILL OOM");
        (one.out_of_memory, one.ended_why) = (None, Some("time limit of its queue".into()));
        assert_eq!(state(&one), "ended SIGKILL time limit");
        let mut stopped = job(2, "b");
        stopped.state = JobState::Suspended;
        assert_eq!(state(&stopped), "suspended");
        stopped.decided = vec![Decision { matter: DecidedMatter::Suspension, uid: 0, user: "root".into() }];
        assert_eq!(state(&stopped), "suspended by root");
    }

    #[test]
    fn a_start_that_is_to_come_says_so() {
        let mut one = job(1, "a");
        (one.state, one.started_unix_ms, one.begin_unix_ms) = (JobState::Waiting, None, Some(90_000_000));
        let shown = |job: &Job| start(job).0.unwrap();
        assert!(shown(&one).starts_with("from 19"), "{}", shown(&one));
        one.expected_start_unix_ms = Some(100_000_000);
        assert!(shown(&one).starts_with("by 19"), "{}", shown(&one));
        one.started_unix_ms = Some(95_000_000);
        assert!(shown(&one).starts_with("19"), "{}", shown(&one));
    }

    #[test]
    fn numbers_are_sorted_as_numbers_and_what_is_unknown_comes_last() {
        let mut jobs = [job(1, "b"), job(2, "a"), job(3, "c")];
        (jobs[0].cpu_percent, jobs[1].cpu_percent) = (Some(9.0), Some(100.0));
        let mut sorted = |name: &str, descending| {
            let column = named(name).unwrap();
            jobs.sort_by(|a, b| column.compare(a, b, descending));
            jobs.iter().map(|job| job.id).collect::<Vec<_>>()
        };
        assert_eq!(sorted("usage", false), [1, 2, 3]);
        assert_eq!(sorted("usage", true), [2, 1, 3]);
        assert_eq!(sorted("name", false), [2, 1, 3]);
        assert_eq!(sorted("id", true), [3, 2, 1]);
        assert!(named("elapsde").unwrap_err().contains("did you mean `elapsed`?"));
        assert!(help().lines().count() == ALL.len() + 1 && help().contains("elapsed"));
    }

    #[test]
    fn the_start_of_a_job_that_waits_is_the_expected_one() {
        let mut one = job(1, "a");
        let start = |job: &Job| named("start").unwrap().cell(job, false).text;
        assert_eq!(start(&one), "-");
        one.expected_start_unix_ms = Some(1_700_000_000_000);
        assert!(start(&one).starts_with("by 2023-11-1"));
        one.started_unix_ms = Some(1_700_000_000_000);
        assert!(start(&one).starts_with("2023-11-1"));
        assert_eq!((elapsed_ms(&one, 1_700_000_065_000), elapsed_ms(&job(2, "b"), 5)), (Some(65_000), None));
        one.ended_unix_ms = Some(1_700_000_001_000);
        assert_eq!(elapsed_ms(&one, u64::MAX), Some(1000));
    }
}
