//! The progress display: one changing line on a terminal, one line per set elsewhere.

use crate::format::duration_s;
use crate::jobset::Look;
use crate::progress;
use cosched_study::slowdown::plan::Cell;
use cosched_study::slowdown::record::{Ended, Run};
use cosched_study::slowdown::stats::median;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Shows the progress of the bench.
#[derive(Debug)]
pub(crate) struct Progress {
    line: progress::Progress,
    quiet: bool,
    started: Instant,
    /// The number of all sets, and of those finished.
    all: usize,
    behind: usize,
}

impl Progress {
    pub(crate) fn new(quiet: bool, all: usize) -> Progress {
        Progress { line: progress::Progress::new(quiet), quiet, started: Instant::now(), all, behind: 0 }
    }

    /// Called while a set runs; `left_s` is the estimated time for this and all later sets, if known.
    pub(crate) fn tick(&self, title: &str, look: &Look, left_s: Option<f64>) {
        self.line.show(|| {
            let left =
                left_s.map(|s| format!(", about {} left", duration_s((s - look.elapsed.as_secs_f64()).max(0.0))));
            format!(
                "[{}/{}] {title}: {}, {} of {} ended; {} so far{}",
                self.behind + 1,
                self.all,
                duration_s(look.elapsed.as_secs_f64()),
                look.ended.iter().flatten().count(),
                look.ended.len(),
                duration_s(self.started.elapsed().as_secs_f64()),
                left.unwrap_or_default()
            )
        });
    }

    /// A set has ended, or was left out.
    pub(crate) fn end(&mut self, title: &str, run: &Run) {
        self.behind += 1;
        let took = match run.outcome {
            Ended::Done => format!("{:.2} s", run.elapsed_s),
            other => format!(
                "{} ({})",
                other.name(),
                run.why.as_deref().unwrap_or_default().lines().next().unwrap_or_default()
            ),
        };
        let text = format!("[{}/{}] {title}, repetition {}: {took}", self.behind, self.all, run.repetition + 1);
        if self.line.is_seen() {
            // Only the lines of unsuccessful runs are kept.
            if run.outcome != Ended::Done {
                self.line.keep(&text);
            }
        } else if !self.quiet {
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// All measurements are done.
    pub(crate) fn done(&self) {
        self.line.done();
    }

    /// A set is left out.
    pub(crate) fn skip(&mut self) {
        self.behind += 1;
    }
}

/// How long these sets will take, estimated from earlier runs: a set that ran before takes as long again, any other one
/// as long as its jobs one after the other. `None` before anything is known.
pub(crate) fn estimate_s(cells: &[Cell], runs: &[Run]) -> Option<f64> {
    let times = |fits: &dyn Fn(&Run) -> bool| -> Vec<f64> {
        runs.iter().filter(|run| run.outcome == Ended::Done && fits(run)).map(|run| run.elapsed_s).collect()
    };
    let alone = median(&times(&|run| run.jobs == 1))?;
    let of = |cell: &Cell| median(&times(&|run| cell.is_of(run))).unwrap_or(f64::from(cell.jobs) * alone);
    Some(cells.iter().map(of).sum::<f64>() + Duration::from_millis(50).as_secs_f64() * cells.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_study::slowdown::plan::cells;
    use cosched_study::slowdown::samples::{head, run};

    #[test]
    fn estimates_from_what_is_known() {
        let head = head(&["gang"], &[2, 4], 1);
        let cells = cells(&head, 0);
        assert_eq!(estimate_s(&cells, &[]), None);
        let runs = [run("linux", 0, &[1.0]), run("gang", 0, &[2.5, 3.0])];
        // 1 + 3 + 4 · 1.
        assert!((estimate_s(&cells, &runs).unwrap() - 8.15).abs() < 1e-9);
    }
}
