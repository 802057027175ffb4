//! A profile for people.

use crate::format::{grouped, or_dash, short, size};
use crate::table::Listing;
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
    let s = |value: f64| format!("{value:.3} s");
    let mut table = Listing::of(profile.each.iter().take(TASKS_MAX))
        .numbers("TASK", 0, |task| task.task.to_string())
        .numbers("COMPUTE", 0, |task| s(task.compute_s));
    if mpi {
        table = table.numbers("IN MPI", 0, |task| s(task.message_s)).numbers("ON CPU", 3, |task| s(task.message_cpu_s));
    }
    table = table.numbers("I/O", 0, |task| s(task.io_s)).numbers("WAITED", 2, |task| s(task.wait_s));
    if mpi {
        table = table
            .numbers("MESSAGES", 0, |task| grouped(task.messages))
            .numbers("BYTES", 1, |task| size(task.bytes))
            .numbers("ITERATIONS", 4, |task| or_dash(iterations(&task.operations).map(grouped)))
            .numbers("LINES", 5, |task| grouped(length(&task.operations) as u64))
            .words("CALLS", 1, calls);
    }
    table.render(width)
}

/// The most frequent functions.
fn calls(task: &Task) -> String {
    let one = |function: &Function| {
        let name = function.name.strip_prefix("MPI_").unwrap_or(&function.name);
        format!("{name} {}", grouped(function.calls))
    };
    task.functions.iter().take(3).map(one).collect::<Vec<_>>().join(", ")
}
