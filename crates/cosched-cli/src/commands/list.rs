//! `cosched ps`.

use crate::context::Context;
use crate::out::{Failure, print, print_json, say, terminal_width, use_colour};
use crate::table::{Cell, Column, numbers, render, words};
use crate::{format, jobs};
use cosched_api::{DecidedMatter, Job, JobState};

const COLUMNS: [Column; 13] = [
    numbers("ID", 0),
    words("NAME", 0),
    words("USER", 3),
    words("CLASS", 2),
    words("POLICY", 1),
    words("STATE", 0),
    numbers("CPUS", 5),
    numbers("CPU%", 0),
    numbers("TIME", 0),
    numbers("MEM", 4),
    numbers("ROW", 7),
    numbers("SHARE", 6),
    words("COMMAND", 0),
];

/// `cosched ps`.
pub(crate) fn ps(context: &Context, all: bool) -> Result<u8, Failure> {
    let mut client = jobs::connect(context)?;
    let list = client.jobs(all)?;
    if context.json {
        print_json(&list)?;
    } else {
        print(&table(&list.jobs, terminal_width(), use_colour()))?;
    }
    if let Some(cluster) = jobs::without_store(&mut client) {
        say(&format!(
            "the store of cluster {cluster} does not answer: the list shows the jobs that this daemon knows; jobs on \
             other nodes may be missing or have ended"
        ));
    }
    Ok(0)
}

fn table(jobs: &[Job], width: Option<usize>, colour: bool) -> String {
    let rows: Vec<Vec<Cell>> = jobs.iter().map(|job| row(job, colour)).collect();
    render(&COLUMNS, &rows, width)
}

fn row(job: &Job, colour: bool) -> Vec<Cell> {
    let or_dash = |value: Option<String>| Cell::from(format::or_dash(value));
    let state_colour = match job.state {
        _ if !colour => "",
        JobState::Running => "\x1b[32m",
        JobState::Asleep | JobState::Dropped | JobState::Ended => "\x1b[2m",
        JobState::Suspended | JobState::Waiting => "\x1b[33m",
        JobState::Lost | JobState::Unknown => "\x1b[31m",
    };
    vec![
        job.id.to_string().into(),
        job.name.as_str().into(),
        job.user.as_str().into(),
        format::class(job.class).into(),
        job.policy.name().into(),
        Cell { text: state_and_exit(job), colour: state_colour },
        job.cpus.to_string().into(),
        or_dash(job.cpu_percent.map(|percent| format!("{percent:.0}"))),
        format::measured(job, Some(format::duration_ms(job.cpu_time_ms))).into(),
        format::measured(job, job.memory_bytes.map(format::size)).into(),
        or_dash(job.row.map(|row| row.to_string())),
        or_dash(share(job)),
        from(job).unwrap_or_else(|| format::command_line(&job.command)).into(),
    ]
}

/// Where an adopted job comes from, in the place of a command.
fn from(job: &Job) -> Option<String> {
    let adopted = job.adopted.as_ref()?;
    let from = adopted.from.as_ref().or(adopted.cgroup.as_ref())?;
    Some(format!("adopted: {from}"))
}

/// `33%`, and `33%/50%` with the share that it has at most.
fn share(job: &Job) -> Option<String> {
    match (job.share.map(format::percent), job.share_max.map(format::exact_percent)) {
        (share, None) => share,
        (share, Some(most)) => Some(format!("{}/{most}", share.unwrap_or_else(|| "-".into()))),
    }
}

/// `running`, `ended 0`, `ended SIG9`, `ended SIG9 OOM`, `ended SIG15 time limit`, `suspended by root`.
fn state_and_exit(job: &Job) -> String {
    let limit = job.ended_why.as_deref().is_some_and(|why| why.starts_with("time limit"));
    format!("{}{}", state_and_status(job), if limit { " time limit" } else { "" })
}

fn state_and_status(job: &Job) -> String {
    let state = job.state.name();
    match job.exit.map(|exit| (exit.code, exit.signal)) {
        Some((Some(code), _)) => format!("{state} {code}"),
        Some((None, Some(9))) if job.out_of_memory.is_some() => format!("{state} SIG9 OOM"),
        Some((None, Some(signal))) => format!("{state} SIG{signal}"),
        _ => match job.decided.iter().find(|decision| decision.matter == DecidedMatter::Suspension) {
            Some(decision) if job.state == JobState::Suspended => format!("{state} by {}", decision.user),
            _ => state.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::tests::job;
    use cosched_api::{Decision, ExitStatus};

    #[test]
    fn the_table_says_what_is_known_and_a_dash_for_what_is_not() {
        let mut first = job(7, "a.out");
        first.cpu_percent = Some(99.6);
        first.memory_bytes = Some(3 << 29);
        (first.row, first.share) = (Some(0), Some(0.5));
        let mut second = job(12, "night");
        second.state = JobState::Ended;
        second.exit = Some(ExitStatus { code: None, signal: Some(9) });
        let jobs = [first, second];
        assert_eq!(
            table(&jobs, None, false),
            "ID  NAME   USER  CLASS        POLICY  STATE       CPUS  CPU%   TIME   MEM  ROW  SHARE  COMMAND\n \
             7  a.out  ann   interactive  gang    running        2   100  12.3s  1.5G    0    50%  mpirun -n 2 ./a.out\n\
             12  night  ann   interactive  gang    ended SIG9     2     -  12.3s     -    -      -  mpirun -n 2 ./a.out\n"
        );
        let mut killed = jobs[1].clone();
        killed.out_of_memory = Some(cosched_api::OutOfMemory { killed: 1, limit_bytes: None });
        assert_eq!(state_and_exit(&killed), "ended SIG9 OOM");
        killed.out_of_memory = None;
        killed.ended_why = Some("time limit of its queue".into());
        assert_eq!(state_and_exit(&killed), "ended SIG9 time limit");
        let mut stopped = jobs[0].clone();
        stopped.state = JobState::Suspended;
        assert_eq!(state_and_exit(&stopped), "suspended");
        stopped.decided = vec![Decision { matter: DecidedMatter::Suspension, uid: 0, user: "root".into() }];
        assert_eq!(state_and_exit(&stopped), "suspended by root");
        // Of jobs on several nodes a node knows its own part.
        let mut parts = [jobs[0].clone(), jobs[0].clone()];
        (parts[0].use_of_nodes, parts[1].use_of_nodes) = (Some(vec!["a".into()]), Some(vec![]));
        let text = table(&parts, None, false);
        assert!(text.contains("12.3s+  1.5G+"), "{text}");
        assert!(text.lines().nth(2).is_some_and(|line| !line.contains("12.3s") && !line.contains("1.5G")), "{text}");
        let narrow = table(&jobs, Some(80), false);
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        assert!(!narrow.contains("ROW") && narrow.contains("COMMAND"), "{narrow}");
        assert!(table(&jobs, None, true).contains("\x1b[32mrunning\x1b[0m"));
    }
}
