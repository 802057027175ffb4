//! Progress of a simulation with the time left, on standard error.

use crate::progress;
use cosched_sim::Progress;

/// The callback by which a simulation asks whether to continue: it shows the progress, and always says yes.
pub(crate) fn watch(quiet: bool) -> impl FnMut(Progress) -> bool {
    let line = progress::Progress::of_parts(quiet);
    move |progress| {
        line.show_part(progress.task_iterations, || {
            let (ended, jobs) = progress.jobs;
            format!("{ended} of {jobs} jobs ended  simulated {:.1} s", progress.time_ns as f64 / 1e9)
        });
        true
    }
}
