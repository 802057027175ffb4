//! A profile for people.

use crate::format::{grouped, short, size};
use crate::table::{Cell, numbers, render, words};
use cosched_study::profile::{By, Function, Profile, Task, iterations, length};

/// The maximum number of tasks shown; the file has all.
const TASKS_MAX: usize = 64;

/// A table of the tasks, followed by notes.
pub(crate) fn summary(profile: &Profile, width: Option<usize>) -> String {
    let mut text = head(profile);
    text.push_str(&table(profile, width));
    if profile.each.len() > TASKS_MAX {
        text.push_str(&format!("… and {} more\n", profile.each.len() - TASKS_MAX));
    }
    if let Some(network) = profile.network {
        text.push_str(&format!(
            "a message of n words of 8 bytes takes about {} + {} n us (from {})\n",
            short(network.alpha_us),
            short(network.beta_us_per_word),
            grouped(network.samples)
        ));
    }
    for warning in &profile.warnings {
        text.push_str(&format!("note: {warning}\n"));
    }
    text
}

fn head(profile: &Profile) -> String {
    let by = match (profile.by, &profile.library) {
        (By::Observation, _) => "by observation (no MPI calls were recorded)".to_owned(),
        (By::Mpi, Some(library)) => format!("by its calls of {library}"),
        (By::Mpi, None) => "by its calls of MPI".to_owned(),
    };
    let state = if profile.complete { "" } else { ", INCOMPLETE" };
    let s = if profile.tasks == 1 { "" } else { "s" };
    format!("{} task{s} in {:.3} s, recorded {by}{state}\n", profile.tasks, profile.elapsed_s)
}

fn table(profile: &Profile, width: Option<usize>) -> String {
    let mpi = profile.by == By::Mpi;
    let mut columns = vec![numbers("TASK", 0), numbers("COMPUTE", 0)];
    if mpi {
        columns.extend([numbers("IN MPI", 0), numbers("ON CPU", 3)]);
    }
    columns.extend([numbers("I/O", 0), numbers("WAITED", 2)]);
    if mpi {
        let rest = [
            numbers("MESSAGES", 0),
            numbers("BYTES", 1),
            numbers("ITERATIONS", 4),
            numbers("LINES", 5),
            words("CALLS", 1),
        ];
        columns.extend(rest);
    }
    let s = |value: f64| Cell::from(format!("{value:.3} s"));
    let row = |task: &Task| {
        let mut row: Vec<Cell> = vec![task.task.to_string().into(), s(task.compute_s)];
        if mpi {
            row.extend([s(task.message_s), s(task.message_cpu_s)]);
        }
        row.extend([s(task.io_s), s(task.wait_s)]);
        if mpi {
            let iterations = iterations(&task.operations).map_or("-".to_owned(), grouped);
            row.extend([grouped(task.messages), size(task.bytes), iterations].map(Cell::from));
            row.push(grouped(length(&task.operations) as u64).into());
            row.push(calls(task).into());
        }
        row
    };
    let rows: Vec<Vec<Cell>> = profile.each.iter().take(TASKS_MAX).map(row).collect();
    render(&columns, &rows, width)
}

/// The most frequent functions.
fn calls(task: &Task) -> String {
    let one = |function: &Function| {
        let name = function.name.strip_prefix("MPI_").unwrap_or(&function.name);
        format!("{name} {}", grouped(function.calls))
    };
    task.functions.iter().take(3).map(one).collect::<Vec<_>>().join(", ")
}
